# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# A crowd of processes that a rule matches when the agent starts: it is ready at once, no turn is long, and each
# process is told of. Kernels before 6.7 find them by walks over all tasks. By hand, without units.

events=$results/crowd.jsonl
group=/sys/fs/cgroup/ci-crowd
rules=/run/crowd/rules.json
bpf_dir=/run/crowd/bpf
socket=/run/crowd/control/control.sock
# A sleeping process costs so much memory of the kernel, measured; the agent and its lines need the rest.
each_kib=200
rest_kib=400000

most=10000

# How many processes fit, up to the goal.
fitting() {
	awk -v each=$each_kib -v rest=$rest_kib -v most=$most '/^MemAvailable:/ {
		n = int(($2 - rest) / each / 100) * 100
		print (n > most ? most : n) }' /proc/meminfo
}

# The crowd, in a cgroup that limits no tasks. Its one line says that all are there.
gather() {
	mkdir -p $group
	(
		echo "$BASHPID" >$group/cgroup.procs
		exec /usr/local/bin/crowd 600 processes "$many"
	) >/run/crowd/there 2>&1 &
	work=$!
	until_true 8 grep -q there /run/crowd/there && return
	cat /run/crowd/there
	return 1
}

prepare() {
	make_users
	install -d -m 0755 /run/crowd
	install -d -m 0750 -o trocar -g trocar /run/crowd/control
	cat >$rules <<-'JSON'
		{ "version": 1, "rules": [ { "name": "crowd", "match": { "comm": "crowd" } } ] }
	JSON
	: >"$events" && chown trocar "$events"
}

# Ready is what the service manager is told: the rules are in force and the control socket answers.
start() {
	setpriv --reuid trocar --regid trocar --init-groups --bounding-set -all --inh-caps -all \
		"$consumer" --rules $rules --output "$events" --socket $socket --health-seconds 1 \
		--lines-per-minute 1000000 --no-rules-watch --bpf-dir "$bpf_dir" \
		</dev/null >"$results/crowd.consumer" 2>&1 &
	pid=$!
	until_true 10 grep -q "ready:" "$results/crowd.consumer"
}

told_of_all() { [ "$(grep -c '"type":"process.match"' "$events")" -gt "$many" ]; }

# Milliseconds of CPU time of a process.
cpu_ms() {
	awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' "/proc/$1/stat"
}

longest_turn() { pick "$events" health 1 'if (number("longest_turn_ms") > most) most = number("longest_turn_ms") } END { print most + 0'; }

prepare
many=$(fitting)
figure "crowd, processes" "$many"
matches "there is memory for thousands" "$many" '^[0-9]{4,}$'
began=$SECONDS
check "the crowd is there" gather
there_s=$((SECONDS - began))
figure "crowd, there after s" $there_s
check "trocar-loader load" "$loader" load --always oncpu --bpf-dir "$bpf_dir"
began=$(date +%s%N)
check "the consumer starts" start
ready=$((($(date +%s%N) - began) / 1000000))
figure "crowd, ready after ms" $ready
check "ready within a second, as emulation counts them" test $ready -le $((1000 * slow))
check "each is told of" until_true 30 told_of_all
figure "crowd, all told of after ms" $((($(date +%s%N) - began) / 1000000))
figure "crowd, CPU ms" "$(cpu_ms $pid)"
sleep 2 # the line health of the last turns
kill -TERM $pid
wait $pid
same "it ends on SIGTERM" $? 0
same "so many were matched" "$(grep -c '"type":"process.match"' "$events")" $((many + 1))
turn=$(longest_turn)
figure "crowd, longest turn ms" "$turn"
# Measured 53 to 67 ms where all is emulated, some 20 times slower, and up to 770 ms beside other work on the host. One
# turn that took all of the crowd would last as long as all of its CPU time, half a minute.
limit=50
! in_machine || limit=2000
figure "crowd, a turn may take ms" "$limit"
check "no turn is longer than it may be" test "$turn" -gt 0 -a "$turn" -le $limit
check "trocar-loader unload" "$loader" unload --bpf-dir "$bpf_dir"
kill $work
wait $work 2>/dev/null
# Thousands of lines are alike: some are enough to be validated outside.
awk '/"type":"process.match"/ && ++n > 100 { next } { print }' "$events" >"$events.few" && mv "$events.few" "$events"
