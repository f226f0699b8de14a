# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The main job by hand, without units: load, a confined consumer, a stall, its session, unload.

events=$results/basic.jsonl
group=/sys/fs/cgroup/ci-basic
rules=/run/basic/rules.json
bpf_dir=/run/basic/bpf

prepare() {
	make_users
	install -d -m 0755 /run/basic
	install -d -m 0750 -o trocar -g trocar /run/basic/control
	cat >$rules <<-'JSON'
		{ "version": 1, "rules": [ { "name": "shop",
		  "match": { "comm": "burn_cpu", "cgroup_prefix": "/ci-basic" },
		  "when": [ { "pressure": "cpu", "some_ms": 300, "window_ms": 1000 } ],
		  "capture": { "pre_ms": 4000, "during_ms": 3000, "cooldown_ms": 1000 }, "labels": { "team": "ci" } } ] }
	JSON
	: >"$events" && chown trocar "$events"
}

start() {
	setpriv --reuid trocar --regid trocar --init-groups --bounding-set -all --inh-caps -all \
		"$consumer" --rules $rules --output "$events" --socket /run/basic/control/control.sock \
		--no-rules-watch --bpf-dir "$bpf_dir" </dev/null >"$results/basic.consumer" 2>&1 &
	pid=$!
	until_true 5 has "$events" rules.applied
}

# Four threads of burn_cpu in a cgroup with half a CPU, after a calm while.
stall() {
	! in_machine || echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group
	[ ! -e $group/cpu.max ] || echo "${quota%\%}000 100000" >$group/cpu.max
	(
		echo "$BASHPID" >$group/cgroup.procs
		exec /usr/local/bin/burn_cpu 60 4 4
	) >/dev/null 2>&1 &
	work=$!
	until_true 20 has "$events" session.end
}

session() {
	check "a stall becomes a session" stall
	# On a busy machine the first stall comes before there is anything from before it; then it is the next session.
	check "stacks of before the stall" until_true 20 has "$events" stack 'text("phase") == "before"'
	kill $work 2>/dev/null
	wait $work 2>/dev/null
	check "its process was matched at its exec" has "$events" process.match 'text("found") == "exec"'
	check "stacks of during the stall" has "$events" stack 'text("phase") == "during"'
	check "the hot function is named, at a leaf" \
		has "$events" stack 'text("phase") == "during" && /"frames":\[{"fn":"spin_on_checkout/'
	check "a user frame has its module and offset" \
		has "$events" stack '/{[^{}]*"module":"\/usr\/local\/bin\/burn_cpu",[^{}]*"offset":[1-9][^{}]*"kind":"user"/'
	say "$(pick "$events" session.end 1 'print text("verdict") ": " text("headline")' | head -n 1)"
	if in_machine; then
		check "the quota is the first that is said" \
			has "$events" session.end "text(\"headline\") ~ /^CPU quota of ${quota%\%} % used up: /"
		check "the facts are those of cgroup2" \
			has "$events" facts 'text("source") == "cpu" && text("from") == "v2"'
	fi
	check "nothing was lost without a name" \
		has "$events" session.end 'text("verdict") ~ /^(complete|partial)$/'
}

prepare
$loader check >"$results/basic.check" 2>&1
same "trocar-loader check: everything required is there" $? 0
began=$(date +%s%N)
check "trocar-loader load" "$loader" load --always oncpu --bpf-dir "$bpf_dir"
figure "load, ms" $((($(date +%s%N) - began) / 1000000))
check "the pins are there" test -e $bpf_dir/abi
ids=$(program_ids)
matches "the programs are in the kernel" "$ids" '^([0-9]+ ){5}'
check "the consumer starts as its own user" start
same "it has no capability in any set" "$(cap_lines $pid)" "$zeros"
matches "seccomp filters it, and it cannot gain privileges" \
	"$(grep -E '^(NoNewPrivs|Seccomp):' /proc/$pid/status | tr '\t\n' '  ')" 'NoNewPrivs: 1 Seccomp: 2'
session
kill -TERM $pid
wait $pid
same "it ends on SIGTERM" $? 0
check "it says its totals" has "$events" agent.stop
"$loader" load --bpf-dir "$bpf_dir" >"$results/basic.second" 2>&1
matches "a second load refuses" "$?" '^[1-9]'
check "trocar-loader unload" "$loader" unload --bpf-dir "$bpf_dir"
check "nothing of ours is left" no_trace "$ids"
same "the private mount has gone too" "$(grep -c " $bpf_dir " /proc/mounts)" 0
rmdir $group
