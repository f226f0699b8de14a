# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The last check of a machine's first life: it is rebooted as `systemctl reboot` does it, with a service stalling
# and a consumer watching it. What is seen at the end of the shutdown is said by /ci/at-shutdown, and what comes
# of it in the second life by rebooted.sh. The state that outlives is what a disk would hold: /etc/trocar,
# /var/lib/trocar and the machine's id.

last_unit() {
	cat >/etc/systemd/system/ci-last.service <<-'UNIT'
		[Unit]
		Description=Stopped when all of trocar has been
		DefaultDependencies=no
		Conflicts=shutdown.target
		Before=shutdown.target run-trocar-bpf.mount trocar-loader.service trocar-consumer.service
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=/bin/true
		ExecStop=/ci/at-shutdown
		StandardOutput=append:/ci/out
		StandardError=inherit
	UNIT
	systemctl daemon-reload && systemctl start ci-last
}

systemctl start trocar-consumer
follow
check "a rule for after the reboot is in force" rules "${shop_rule/\"shop\"/\"kept\"}"
check "a service stalls while the machine goes down" shop 600
check "it is watched" until_true 20 line watch.start
program_ids >/ci/ids
cp /proc/sys/kernel/random/boot_id /ci/boot_id
check "what looks at the end of the shutdown is in place" last_unit
echo rebooted >/ci/plan
: >/ci/reboot
