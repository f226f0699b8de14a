# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The two units as systemd starts them at boot, what they do, and how they end.

# Both units were started at boot, before this; the consumer after the loader had done its work.
order() {
	local loaded started
	loaded=$(property trocar-loader ExecMainExitTimestampMonotonic)
	started=$(property trocar-consumer ExecMainStartTimestampMonotonic)
	echo "loader done at $loaded us, consumer started at $started us"
	[ "$loaded" -gt 0 ] && [ "$started" -ge "$loaded" ]
}

# Milliseconds from the start of PID 1 to the first line of type $1.
since_boot() {
	pick "$lines.few" "$1" 1 "printf \"%d\\n\", number(\"mono_ns\") / 1e6 - $(systemctl show -P UserspaceTimestampMonotonic) / 1e3; exit"
}

# What README's install section says behind `meson install`; here all of it is in place, and stays so.
readme_install() {
	systemd-sysusers && systemd-tmpfiles --create trocar.conf && systemctl daemon-reload &&
		systemctl enable --now trocar-consumer
}

boot() {
	local pid
	check "the commands of README's install section" readme_install
	check "the loader's unit is active after boot" until_true 5 active trocar-loader
	check "the consumer's unit is active after boot" until_true 5 active trocar-consumer
	check "the consumer starts when the loader is done" order
	pid=$(consumer_pid)
	same "the consumer has no capability in any set" "$(cap_lines "$pid")" "$zeros"
	same "it is the user trocar" "$(stat -c %U "/proc/$pid")" trocar
	echo kept >/tmp/perf-0.map
	check "it sees /tmp of the machine, where runtimes leave names" grep -q kept "/proc/$pid/root/tmp/perf-0.map"
	check "and may not write there" grep -E ' /tmp ro,' "/proc/$pid/mountinfo"
	rm /tmp/perf-0.map
	same "no process of the loader is left" "$(property trocar-loader MainPID)" 0
	same "nothing was started twice" "$(property trocar-consumer NRestarts)" 0
	matches "the unit says what it does" "$(property trocar-consumer StatusText)" '^[0-9]+ rules, '
	matches "nothing failed at boot" "$(systemctl --failed --no-legend --plain)" '^$'
	check "no ordering cycle at boot" sh -c '! journalctl -b --no-pager | grep -i "ordering cycle"'
	check "trocar status answers" trocar status
	check "trocar check finds nothing that is required missing" trocar check
	check "its first line is in the journal" until_true 3 line agent.start
	figure "boot to the first line, ms" "$(since_boot agent.start)"
}

both_phases() { line stack 'text("phase") == "before"' && line stack 'text("phase") == "during"'; }

session() {
	check "a changed rules file is taken up" rules "$shop_rule"
	check "a service is started" shop 120 4
	check "its stall of 500 ms windows becomes a session" until_true 20 line session.end 'text("rule") == "shop"'
	# A quota keeps threads from their CPU: that is their queue, and no wait of their own.
	# Its threads share the quota. Threads that were born in a session are there for less of it: another one tells.
	! in_machine || check "the time under its quota is in its threads' queue" until_true 30 line pool 'text("rule") == "shop" &&
		number("queue_ns") > number("running_ns") && !number("born") &&
		number("running_ns") * number("threads") > number("wall_ns") * ('"${quota%\%}"' - 5) / 100 &&
		number("running_ns") * number("threads") < number("wall_ns") * ('"${quota%\%}"' + 5) / 100'
	check "the window is the rule's" until_true 5 line pressure 'number("window_ms") == 500 && number("measured_ms") < 1000'
	# Of the first, or, where the machine is so busy that it came at once, of the next.
	check "stacks of before and during" until_true 20 both_phases
	say "found by $(pick "$lines.few" process.match 'text("rule") == "shop"' 'print text("found"); exit')"
	figure "boot to the first session, ms" "$(since_boot session.start)"
}

within() { [ "$3" -ge "$1" ] && [ "$3" -le "$2" ]; }

# since NANOSECONDS PROPERTY: milliseconds from then to that moment of the consumer's unit.
since() { echo $((($(property trocar-consumer "$2") * 1000 - $1) / 1000000)); }

# Systemd has a second to start it anew; until it has said READY=1 takes as long as the machine is busy.
killed() {
	local pid ids began started_ms
	pid=$(consumer_pid)
	ids=$(program_ids)
	began=$(mono_ns)
	kill -KILL "$pid"
	check "a consumer that was killed comes back" until_true 20 another "$pid"
	started_ms=$(since "$began" ExecMainStartTimestampMonotonic)
	figure "killed to started, ms" "$started_ms"
	figure "killed to back, ms" "$(since "$began" ActiveEnterTimestampMonotonic)"
	check "started within a second, as emulation counts them" within 1 $((1000 * slow)) "$started_ms"
	same "its programs in the kernel went on" "$(program_ids)" "$ids"
	check "the gap is said" until_true 3 line_after "$began" agent.start 'number("gap_ms") > 0'
	check "a session after it" until_true 20 line_after "$began" session.end
}

stopped() {
	local ids
	ids=$(program_ids)
	check "systemctl stop trocar-loader under a running consumer" systemctl stop trocar-loader
	check "the consumer has stopped as well" until_true 3 inactive trocar-consumer
	check "nothing of ours is left" no_trace "$ids"
	check "no mount" until_true 3 sh -c "! grep ' $bpf_dir ' /proc/mounts"
	check "the mount's unit has stopped too" until_true 3 inactive run-trocar-bpf.mount
	matches "no unit failed" "$(systemctl --failed --no-legend --plain | grep trocar)" '^$'
}

follow
steps boot session killed stopped
cp "$lines" "$results/units.jsonl"
systemctl stop shop
