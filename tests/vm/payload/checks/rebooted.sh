# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The second life of a machine: nobody has done anything but boot it.

follow
[ "$(cat /ci/boot_id)" != "$(cat /proc/sys/kernel/random/boot_id)" ] && ok "it is another boot" ||
	fail "it is another boot" </ci/boot_id
check "the loader's unit is active" until_true 5 active trocar-loader
check "the consumer's unit is active" until_true 5 active trocar-consumer
same "nothing was started twice" "$(property trocar-consumer NRestarts)" 0
check "its first line is in the journal" until_true 3 line agent.start
check "after an orderly end no gap is said" line agent.start '!/"gap_ms":/'
check "the rules of before the reboot are in force" line rules.applied 'number("count") == 1'
check "a service stalls" shop 120
check "and is captured by them" until_true 20 line session.end 'text("rule") == "kept"'
systemctl stop trocar-consumer
sleep 1
cp "$lines" "$results/rebooted.jsonl"
systemctl stop shop trocar-loader
