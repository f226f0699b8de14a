# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Requests to a disk where cgroup v2 has the controller io: what a service left in the page cache is told as its own
# when a kernel thread writes it back later, to the byte that the kernel's own account of the cgroup (io.stat) has.

where=/srv/disk
group=/sys/fs/cgroup/system.slice/shop.service
pages=$((100 * 65536))

make_disk() {
	insmod /ci/modules/loop.ko && truncate -s 64M /ci/disk.img && disk=$(losetup --find --show /ci/disk.img) &&
		mkfs.ext4 -q "$disk" && mkdir -p $where && mount "$disk" $where
	number=$(cat "/sys/block/${disk#/dev/}/dev")
}

# counted: bytes that the cgroup wrote to the disk, by the kernel.
counted() { awk -v disk="$number" '$1 == disk { for (i = 2; i <= NF; i++) if (sub(/^wbytes=/, "", $i)) { print $i; found = 1 } }
	END { if (!found) print 0 }' $group/io.stat; }

service() {
	rules '{ "name": "shop", "match": { "cgroup_prefix": "/system.slice/shop" },
		"capture": { "pre_ms": 0, "cooldown_ms": 0, "signals": ["oncpu", "block"] } }' &&
		systemd-run -q --unit shop -p IOAccounting=yes -p MemoryAccounting=yes sh -c "
			until [ -e /ci/go ]; do sleep 0.5; done
			dd if=/dev/zero of=$where/data bs=64k count=100 2>/dev/null
			touch /ci/written
			sleep 1000" &&
		until_true 5 line watch.start 'text("cgroup") == "/system.slice/shop.service"'
}

# told KEY: a number of the line about what the service wrote to the disk.
told() { jq -s "map(select(.type == \"disk\" and .number == \"$number\" and .op == \"write\"))[-1]$1" "$lines.few"; }

# granted: how often the broker has attached the programs of a signal.
granted() { trocar status --json | jq '.broker.granted.signal_attach // 0'; }
granted_since() { [ "$(granted)" -gt "$1" ]; }

writes_back() {
	local before granted
	check "a service of its own, with a watch" service
	before=$(counted) granted=$(granted)
	check "its session, with block" trocar capture --rule shop --during-ms 30000
	check "has begun" until_true 3 line session.start
	# Emulated, that takes seconds; what is written before nobody counts.
	check "and counts requests" until_true 3 granted_since "$granted"
	touch /ci/go
	check "the service wrote into the page cache" until_true 10 test -e /ci/written
	check "somebody else has it written back" sync -f $where
	check "the session ends" until_true 10 line session.end
	check "what it wrote is told" until_true 3 line disk
	same "nothing was lost" "$(jq -sc 'map(select(.type == "session.end"))[-1].ledger.block.lost' "$lines.few")" '{}'
	same "as many bytes as io.stat has" "$(told .bytes)" "$(($(counted) - before))"
	matches "it made them while a kernel thread wrote for it" "$(told .written_back.requests)" '^[1-9]'
	check "all that it had left" test "$(told .written_back.bytes)" -ge $pages
	say "$(told "" | jq -c '{requests, bytes, written_back, everybody}')"
}

follow
check "a disk of a file" make_disk
steps writes_back
systemctl stop shop
cp "$lines" "$results/disk.jsonl"
umount $where && losetup --detach "$disk"
