# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The broker as systemd starts it: nothing ticks that is not needed, and what is needed comes at once.

# Windows of half a second, which the kernel lets only root open.
window_ms=500 threshold_ms=150 times=50
# A tick, at 97 Hz.
tick_ms=10.31
quick_rule='{ "name": "shop", "match": { '$by_cgroup' },
	"when": [ { "pressure": "cpu", "some_ms": '$threshold_ms', "window_ms": '$window_ms' } ],
	"capture": { "pre_ms": 0, "during_ms": 100, "cooldown_ms": 0 } }'

# sampling: "BY EVENTS MISSING", as the consumer says it now.
sampling() { trocar status --json | grep -o '"sampling":.*' | awk "$values { print text(\"by\"), text(\"events\"), text(\"missing\") }"; }
# ticks: how often the pinned sampler has run, while the kernel counts it.
ticks() { bpftool -j prog show pinned "$bpf_dir/sampler" | awk "$values { print number(\"run_cnt\") }"; }
not() { ! "$@"; }
no_event() { [[ $(sampling) == *" 0 "* ]]; }
# The consumer's loop waits 100 ms for an answer, and a start of the broker takes longer; what it asked for follows when
# the answer is there: so it is the state that counts, not what watch.start says.
armed() { [ "$(sampling)" = "broker $(nproc) 0" ]; }
triggered() { trocar watches --json | grep '"by": *"trigger"'; }
broker_up() { active trocar-broker.service; }
broker_gone() { inactive trocar-broker.service; }
# attached NAME: a program of ours of that name hangs on something.
attached() { bpftool link show | grep -E "prog $(bpftool prog show pinned "$bpf_dir/$1" | head -n 1 | cut -d: -f1)( |$)"; }

# What is there while nothing is watched.
idle() {
	local before after
	check "no watch, and no sampling event" until_true 3 no_event
	check "the broker leaves when nobody asks" until_true 20 broker_gone
	check "the socket stays" active trocar-broker.socket
	check "no program is at the scheduler" not attached count_switches
	in_machine || return
	sysctl -q kernel.bpf_stats_enabled=1
	before=$(ticks)
	sleep 10
	after=$(ticks)
	sysctl -q kernel.bpf_stats_enabled=0
	same "ticks in ten seconds with nothing watched" $((after - before)) 0
}

# Seconds until the broker has left; its own limit is 10.
leaves() {
	local began=$SECONDS
	check "nobody asks: it leaves" until_true 20 broker_gone
	say "it left after $((SECONDS - began)) s"
}

holds_admin() { [ $((0x$(awk '/^CapEff/ { print $2 }' "/proc/$1/status") >> 21 & 1)) = 1 ]; }

# Debian's third level of perf_event_paranoid wants CAP_SYS_ADMIN for each perf_event_open(2).
paranoid() {
	local level=$1 mark broker
	sysctl -q kernel.perf_event_paranoid="$level"
	check "perf_event_paranoid=$level: the broker is not there" until_true 20 broker_gone
	mark=$(mono_ns)
	shop 600
	check "a service comes, and is watched" until_true 5 line_after "$mark" watch.start
	check "every CPU has its event, by the broker" until_true 2 armed
	check "which came back for that" broker_up
	check "its pressure is followed by a trigger" until_true 2 triggered
	broker=$(property trocar-broker.service MainPID)
	if holds_admin "$broker"; then said=kept; else said=dropped; fi
	same "its CAP_SYS_ADMIN" $said "$([ "$level" -gt 2 ] && echo kept || echo dropped)"
	matches "seccomp filters it, and it cannot gain privileges" \
		"$(grep -E '^(NoNewPrivs|Seccomp):' "/proc/$broker/status" | tr '\t\n' '  ')" 'NoNewPrivs: 1 Seccomp: 2'
	check "a stall becomes a session" until_true 5 line_after "$mark" session.end
	systemctl stop shop
	check "without a watch the events are closed" until_true 5 no_event
}

# Bursts of pressure in the service's cgroup, each with what an independent witness saw: when the stall crossed the
# threshold, the kernel's own notice, the switch to capture, the first sample; beside our lines.
measure() {
	local mark slot
	mark=$(mono_ns)
	systemctl stop shop 2>/dev/null
	systemd-run -q --unit shop -p TasksMax=64 burn_cpu 600 1 600
	check "a service is watched" until_true 5 line_after "$mark" watch.start
	check "by a trigger" until_true 2 triggered
	slot=$(pick "$lines.few" watch.start 1 'print text("slot")' | tail -n 1)
	check "$times crossings are witnessed" bench-crossings "/sys/fs/cgroup$(property shop ControlGroup)" "$bpf_dir" "$slot" \
		$((threshold_ms * 1000)) $((window_ms * 1000)) "$times" 20
	grep '^{' /ci/said >"$results/bursts"
	systemctl stop shop
	sleep 1
	grep -F '"type":"pressure"' "$lines" >"$results/crossings"
	jq -n --slurpfile bursts "$results/bursts" --slurpfile lines "$results/crossings" -f /ci/crossings.jq >"$results/latencies"
}

# measured KEY: of the medians.
measured() { jq -r ".$1" "$results/latencies"; }

crossings() {
	measure
	figure "crossings with a window of $window_ms ms" "$(measured whole)"
	figure "crossing to the kernel's notice, median, ms" "$(measured crossing_to_notice_ms)"
	figure "crossing to pressure line, median, ms" "$(measured crossing_to_line_ms)"
	figure "pressure line to first sample, median, ms" "$(measured line_to_sample_ms)"
	check "at least nine in ten crossings have their line" [ "$(measured whole)" -ge $((times * 9 / 10)) ]
	check "from the crossing to the line: at most 150 ms" jq -e '.crossing_to_line_ms <= 150' "$results/latencies"
	# One tick where a CPU is a CPU (half of one measured); an emulated one waits for the host's.
	check "from the line to the first sample: one tick, three emulated" jq -e ".line_to_sample_ms <= 3 * $tick_ms" "$results/latencies"
}

# The runbook's "failed": one that ends at once ends its socket, and takes no CPU from then on.
failing() {
	local mark unit=trocar-broker.service.d
	mkdir -p /run/systemd/system/$unit
	printf '[Service]\nExecStart=\nExecStart=/bin/false\n' >/run/systemd/system/$unit/wrong.conf
	systemctl daemon-reload
	systemctl stop trocar-broker.service
	mark=$(mono_ns)
	check "a broker that ends at once: the consumer starts all the same" systemctl restart trocar-consumer
	check "the socket has failed" until_true 30 inactive trocar-broker.socket
	matches "systemctl status says of what" "$(systemctl status --no-pager trocar-broker.socket)" 'Result: [a-z-]*limit-hit'
	check "the consumer goes on, and says what is missing" until_true 5 line_after "$mark" agent.start \
		'/"feature":"broker"/'
	rm -r /run/systemd/system/$unit
	systemctl daemon-reload
	systemctl reset-failed trocar-broker.socket trocar-broker.service
	mark=$(mono_ns)
	check "with the fault gone, as the runbook says" systemctl restart trocar-loader
	check "the consumer has it again" until_true 5 line_after "$mark" agent.start '!/"feature":"broker"/'
}

# Without its socket the consumer says so, and samples nothing; the drop-in for such hosts lets the loader's events tick.
without() {
	local mark
	systemctl mask --runtime --now trocar-broker.socket 2>/dev/null
	systemctl stop trocar-broker.service
	mark=$(mono_ns)
	systemctl restart trocar-consumer
	check "without the broker it starts, and says what is missing" until_true 5 line_after "$mark" agent.start \
		'/"feature":"broker"/'
	mkdir -p /run/systemd/system/trocar-loader.service.d
	cp /ci/no-broker.conf /run/systemd/system/trocar-loader.service.d/
	systemctl daemon-reload
	check "with the drop-in of docs/operations.md the loader's events tick" systemctl restart trocar-loader
	mark=$(mono_ns)
	shop 600
	check "and a session comes" until_true 10 line_after "$mark" session.end
	check "which says so" line_after "$mark" session.start '/"sampling":{"by":"always"/'
	systemctl stop shop
	rm -r /run/systemd/system/trocar-loader.service.d
	systemctl unmask --runtime trocar-broker.socket
	systemctl daemon-reload
	mark=$(mono_ns)
	check "with the socket back" systemctl restart trocar-loader
	check "the consumer has it again" until_true 5 line_after "$mark" agent.start '!/"feature":"broker"/'
}

# A worker that no signal ends, of a broker that has left: played by a process that systemd is to leave alone.
beside_stuck() {
	local mark stuck
	mark=$(mono_ns)
	shop 600
	check "a service is watched" until_true 5 line_after "$mark" watch.start
	check "by the broker" until_true 5 broker_up
	sleep 300 &
	stuck=$!
	echo $stuck >"/sys/fs/cgroup$(property trocar-broker.service ControlGroup)/cgroup.procs"
	systemctl stop shop
	check "the broker leaves, and systemd waits for nothing of it" until_true 20 broker_gone
	check "what hangs is left" kill -0 $stuck
	mark=$(mono_ns)
	shop 600
	check "the next service is watched" until_true 5 line_after "$mark" watch.start
	check "every CPU has its event, by the next broker" until_true 5 armed
	systemctl stop shop
	kill $stuck
	wait $stuck 2>/dev/null
}

echo '{ "version": 1, "rules": [] }' >/etc/trocar/rules.json
systemctl start trocar-consumer
follow
check "the broker's socket came with the consumer" until_true 5 active trocar-broker.socket
same "it is root's, for the group of the consumer" "$(stat -c '%U %G %a' /run/trocar/broker.sock)" "root trocar 660"
check "rules with a window of $window_ms ms are in force" rules "$quick_rule"
# A container's root may neither write these settings, which are the whole machine's, nor open short windows; what
# systemd alone decides needs no kernel of its own.
if in_machine; then
	steps idle beside_stuck "paranoid 2" "paranoid 3" crossings leaves
else
	steps idle beside_stuck without failing
fi
systemctl stop trocar-consumer
sleep 1
cp "$lines" "$results/broker.jsonl"
systemctl stop trocar-loader
check "with the loader the socket goes" until_true 3 test ! -e /run/trocar/broker.sock
