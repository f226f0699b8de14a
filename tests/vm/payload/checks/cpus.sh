# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# A CPU that goes away takes its sampling event along, and brings none back: the next session looks, and has one.

switch=/sys/devices/system/cpu/cpu1/online
asked_rule='{ "name": "shop", "match": { '$by_cgroup' }, "capture": { "pre_ms": 0, "cooldown_ms": 0 } }'

# captured EVENTS: a session on request is complete, with so many events.
captured() {
	local mark
	mark=$(mono_ns)
	trocar capture --rule shop --during-ms 2000
	until_true 1 line_after "$mark" session.end
	line_after "$mark" session.start "/\"sampling\":{\"by\":\"broker\"/ && number(\"events\") == $1 && number(\"missing\") == 0" &&
		line_after "$mark" session.end 'text("verdict") == "complete"'
}

# session EVENTS WHAT. Once more where the broker, which had left, did not answer within a second: emulation may take
# longer to start it.
session() { check "$2: a session is complete, with $1 events and none missing" until_true 4 captured "$1"; }

# On CPU 1 alone, so that every sample is of its event.
on_cpu1() {
	local mark
	mark=$(mono_ns)
	quota=50% shop 600 0 CPUAffinity=1
	check "$1: a service on CPU 1 alone is watched" until_true 5 line_after "$mark" watch.start
	session 2 "$1"
	check "$1: its samples are there" line_after "$mark" session.end 'number("emitted") > 20'
}

comes_and_goes() {
	on_cpu1 "at first"
	echo 0 >$switch
	same "CPU 1 is offline" "$(cat /sys/devices/system/cpu/online)" 0
	session 1 "without it"
	echo 1 >$switch
	session 2 "with it again"
	on_cpu1 "with it again"
	# Between two looks: the list is the same, the event is dead.
	echo 0 >$switch
	echo 1 >$switch
	on_cpu1 "gone and back unseen"
	systemctl stop shop
}

if ! in_machine || [ ! -w $switch ]; then
	skip "CPUs that come and go" "they are the whole machine's"
	finish
fi
echo '{ "version": 1, "rules": [] }' >/etc/trocar/rules.json
systemctl start trocar-consumer
follow
check "rules are in force" rules "$asked_rule"
steps comes_and_goes
systemctl stop trocar-consumer
sleep 1
cp "$lines" "$results/cpus.jsonl"
systemctl stop trocar-loader
