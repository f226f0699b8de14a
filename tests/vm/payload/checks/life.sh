# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# What happens to a service in a year: clocks, stopped processes, full file systems, limits, storms.

# Seconds (before the factor of emulation) within which a stalling service must have its session.
patience=20
[ "$slow" = 1 ] || patience=3

# answers: the control socket does, with the same process as before.
answers() { trocar status >/dev/null && [ "$(consumer_pid)" = "$pid" ]; }
total() { trocar status --json | grep -o '"totals":.*' | awk "$values { print text(\"$1\") }"; }

prepare() {
	echo '{ "version": 1, "rules": [] }' >/etc/trocar/rules.json
	systemctl start trocar-consumer
	pid=$(consumer_pid)
	check "the rule of the checks is in force" rules "$shop_rule"
	check "a service is started" shop 600
	check "its stall becomes a session" until_true $patience line session.end
}

# Stacks of 120 frames, which are split into lines of 8 KiB: the journal has every line, and whole. The host
# looks at what journalctl says, with tests/pipeline/journald-check.
journal() {
	check "a rule for deep stacks is in force" rules '{ "name": "deep", "match": { "comm": "deep" } },'"$shop_rule"
	systemd-run -q --unit deep -p CPUQuota=$quota deep 600 120
	check "a process with deep stacks is watched" until_true 5 line watch.start 'text("cgroup") ~ /deep/'
	check "its stacks are captured" trocar capture --rule deep --during-ms 1000
	check "in lines of several parts" until_true 5 line stack 'text("rule") == "deep" && number("parts") > 1'
	systemctl stop deep
	check "the journal has as many lines as were written" until_true 3 all_lines
	journalctl --all -u trocar-consumer -b -o json --no-pager >"$results/journal.json"
	check "the rule of the checks is in force again" rules "$shop_rule"
}

# Every line that the consumer has written by now has come through the journal.
all_lines() {
	local written
	written=$(total lines)
	echo "$written written, $(wc -l <"$lines") in the journal"
	[ "$(wc -l <"$lines")" -ge "$written" ]
}

clock_step() {
	local mark
	mark=$(mono_ns)
	date -s '+1 hour' >/dev/null
	check "the clock steps an hour on: a session after it" until_true $patience line_after "$mark" session.end
	matches "its times are the new ones" "$(awk "$values number(\"mono_ns\") > $mark { ts = text(\"ts\") } END { print ts }" "$lines.few")" \
		"^$(date -u +%Y-%m-%dT%H)"
	mark=$(mono_ns)
	date -s '-2 hours' >/dev/null
	check "two hours back: a session after it" until_true $patience line_after "$mark" session.end
	date -s '+1 hour' >/dev/null
	check "the consumer is the same" answers
	matches "no line of these times is a loss" "$(total lines_dropped)" '^0$'
}

# The dead-man word is stale after 20 s: the programs idle, and say how often they did. A minute in a machine.
stopped_process() {
	local before seconds=25
	! in_machine || seconds=60
	before=$(total stale_ticks)
	kill -STOP "$pid"
	sleep $seconds
	kill -CONT "$pid"
	check "stopped for $seconds s, it goes on" until_true 3 answers
	until_true 3 eval '[ "$(total stale_ticks)" -gt '"$before"' ]' &&
		ok "ticks of the time without a consumer are counted" ||
		fail "ticks of the time without a consumer are counted" <<<"before $before, now $(total stale_ticks)"
	check "and it captures again" until_true $patience line_after "$(mono_ns)" session.end
}

# Every value of both. unprivileged_bpf_disabled=1 is final until the next boot, so it is the last.
settings() {
	local pair
	for pair in "0 2" "1 0" "2 0" "3 1"; do
		sysctl -q "kernel.perf_event_paranoid=${pair% *}" "kernel.unprivileged_bpf_disabled=${pair#* }"
		check "perf_event_paranoid, unprivileged_bpf_disabled $pair: both units start" systemctl restart trocar-loader
		check "perf_event_paranoid, unprivileged_bpf_disabled $pair: the consumer is up" until_true 5 active trocar-consumer
	done
	pid=$(consumer_pid)
	check "and it captures" until_true $patience line_after "$(mono_ns)" session.end
}

# The journal is in /run too: what is written meanwhile may be lost there, the consumer may not.
full_run() {
	head -c 2G /dev/zero >/run/full 2>/dev/null
	same "/run is full" "$(df --output=avail /run | tail -1 | tr -d ' ')" 0
	check "the consumer answers" answers
	systemctl restart trocar-consumer
	check "it can be restarted" until_true 5 active trocar-consumer
	rm /run/full
	pid=$(consumer_pid)
	check "with room again it answers" until_true 5 answers
	check "and captures" until_true $patience line_after "$(mono_ns)" session.end
}

# Those that are empty go; true when all are gone.
remove_churned() {
	rmdir /sys/fs/cgroup/churn/*/ 2>/dev/null
	[ -z "$(compgen -G '/sys/fs/cgroup/churn/*/')" ]
}

# A thousand cgroups that come and go in batches, one process in each batch: that one is watched for a moment.
churn_cgroups() {
	local i mark
	mark=$(mono_ns)
	check "a rule for them is in force" \
		rules '{ "name": "churn", "match": { "cgroup_prefix": "/churn" } },'"$shop_rule"
	mkdir /sys/fs/cgroup/churn
	for ((i = 0; i < 10; i++)); do
		mkdir /sys/fs/cgroup/churn/{1..100}
		(echo "$BASHPID" >/sys/fs/cgroup/churn/1/cgroup.procs && exec sleep 0.01)
		until_true 1 remove_churned
	done
	check "1,000 cgroups have come and gone" rmdir /sys/fs/cgroup/churn
	check "the consumer answers" answers
	check "some of them were watched" line_after "$mark" watch.start 'text("cgroup") ~ "^/churn"'
	until_true 2 eval '! trocar watches --json | grep -q /churn' &&
		ok "no watch of them is left" || fail "no watch of them is left" <<<"$(trocar watches)"
	check "and it captures" until_true $patience line_after "$(mono_ns)" session.end
}

# A bomb in a watched cgroup, held by its unit's TasksMax. A container whose host keeps the pids controller has
# no such limit, and a bomb without one takes the host along.
fork_bomb() {
	local mark
	grep -qw pids /sys/fs/cgroup/cgroup.controllers || {
		skip "a fork bomb under TasksMax=40" "no pids controller in this container"
		return
	}
	mark=$(mono_ns)
	systemctl stop shop
	systemd-run -q --unit shop -p TasksMax=40 -p User=nobody -p LimitNPROC=60 -p CPUQuota=$quota \
		bash -c 'bomb() { bomb | bomb & }; bomb; exec burn_cpu 600 4 0'
	check "a fork bomb under TasksMax=40: its stall becomes a session" \
		until_true $patience line_after "$mark" session.end
	check "it answers" answers
	systemctl kill -s KILL shop
	systemctl stop shop 2>/dev/null
	until_true 2 eval '! trocar watches --json | grep -q shop' &&
		ok "with its end the watch ends" || fail "with its end the watch ends" <<<"$(trocar watches)"
	shop 600
	check "and the next service is captured" until_true $patience line_after "$(mono_ns)" session.end
}

memory_limit() {
	local mark
	mark=$(mono_ns)
	in_machine || {
		skip "the unit's memory limit" "no memory controller in this container"
		return
	}
	systemctl set-property --runtime trocar-consumer MemoryHigh=infinity MemoryMax=1M
	check "at its memory limit the kernel ends it, and systemd says so" \
		until_true 5 sh -c 'journalctl -u trocar-consumer -b --no-pager | grep -q oom-kill'
	systemctl set-property --runtime trocar-consumer MemoryHigh=192M MemoryMax=256M
	systemctl reset-failed trocar-consumer 2>/dev/null
	systemctl start trocar-consumer
	check "with room again it is back" until_true 5 line_after "$mark" agent.start
	check "and it captures" until_true $patience line_after "$(mono_ns)" session.end
}

follow
if in_machine; then
	steps prepare journal clock_step stopped_process settings full_run churn_cgroups fork_bomb memory_limit
else
	steps prepare journal stopped_process fork_bomb memory_limit
fi
pid=$(consumer_pid)
say "$(trocar status --json | grep -o '"totals":{[^}]*}')"
figure "consumer resident, KiB" "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")"
systemctl stop trocar-consumer
sleep 1
cp "$lines" "$results/life.jsonl"
systemctl stop shop trocar-loader
