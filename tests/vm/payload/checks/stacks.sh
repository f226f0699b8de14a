# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# Walks of the kernel's stacks, each compared with the kernel's own answer: on this kernel, on a disk of its own, beside
# a tracer of functions, and while modules come and go.

folder=/lib/modules/$(uname -r)/ci

compare() {
	TROCAR_PERIOD_NS=80000 TROCAR_COMPARED=$(cat /ci/compared) test-bpf-kernel_scenes >"$results"/stacks 2>&1
}

# scene NAME: how many were compared in that scene.
scene() { sed -n "s/^$1: \\([0-9]*\\) compared, none wrong.*/\\1/p" "$results"/stacks; }

systemctl stop trocar-consumer trocar-loader
lsmod | grep -q '^loop ' && rmmod loop
check "modules that come and go" sh -c "mkdir -p $folder && cp /ci/modules/*.ko $folder/ && depmod -a && modprobe loop"
check "each walk is the kernel's own" compare
grep compared "$results"/stacks | sed 's/^/# /'
for name in alone ext4 "beside a tracer of functions" "modules come and go"; do
	check "$name" test "$(scene "$name")" -gt 100
done
