# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# For tests/vm/lines: redis under load, watched, in a session that is asked for again as soon as it ends. It says which
# functions lie where, and then runs until the machine is ended.

rule='{ "name": "shop", "match": { "cgroup_prefix": "/system.slice/shop" },
	"capture": { "signals": ["oncpu"], "pre_ms": 0, "cooldown_ms": 0 } }'

ask() {
	while sleep 3; do
		trocar capture --rule shop --during-ms 60000
	done >/dev/null 2>&1
}

systemctl start trocar-consumer
follow
check "rules are in force" rules "$rule"
systemd-run -q --unit shop redis-server --save ""
until_true 10 redis-cli ping
redis-benchmark -n 1000000000 -c 8 -t get,set -l -q >/dev/null 2>&1 &
ask &
check "stacks by a table" until_true 10 line stack '/redis/'
echo 1 >/proc/sys/net/core/bpf_jit_kallsyms
echo @symbols
cat /proc/kallsyms | gzip -1 | base64
echo @end
echo @ready
sleep 1000
