# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154
# The DaemonSet's containers, run by crun as a kubelet's runtime would: each from a bundle made from the manifest
# (tests/vm/pod-bundles), with cgroup v2 alone and so a cgroup namespace of its own; rules from a ConfigMap.

here=/ci/pod
volumes=$here/volumes
kubelet=/var/lib/kubelet/seccomp
bpf_dir=/sys/fs/bpf/trocar
events=$results/pod.jsonl
shop=/kubepods/burstable/pod0c7a96d1-3f5e-4b3a-a3a8-6f9e6d2b1c55/$(printf '%064d' 7)

# The root of this machine is the one that the kernel began with, from which pivot_root(2) is refused.
crun() { command crun --root /run/crun --cgroup-manager cgroupfs "$@"; }
ends() { crun run --no-pivot --bundle "$here/$1" "$1"; }
# stays NAME OUTPUT: a container in the background.
stays() { crun run --no-pivot --detach --bundle "$here/$1" "$1" >>"$2" 2>>"$results/pod.$1" </dev/null; }
# in_consumer COMMAND...: as kubectl exec does, by the container's user.
in_consumer() { crun exec --user 64321:64321 consumer "$@" 2>&1; }
state() { crun state "$1" 2>/dev/null | sed -n 's/.*"status": "\([a-z]*\)".*/\1/p'; }
stopped() { [ "$(state "$1")" != running ]; }

# config_map NUMBER: its rules, from standard input, as the kubelet renews a volume: a new folder, and one rename.
config_map() {
	mkdir "$volumes/rules/..2026_$1" && cat >"$volumes/rules/..2026_$1/rules.json" &&
		ln -s "..2026_$1" "$volumes/rules/..data_tmp" && mv -T "$volumes/rules/..data_tmp" "$volumes/rules/..data" &&
		ln -sf ..data/rules.json "$volumes/rules/rules.json"
}

# What the kubelet does before it starts the first container.
prepare() {
	systemctl stop trocar-consumer trocar-broker.socket trocar-broker trocar-loader
	mkdir -p $volumes/{run,rules} $kubelet $bpf_dir
	chmod 0777 $volumes/run
	# The image has the profiles too, where Containerfile puts them.
	mkdir -p /usr/share/trocar && cp -r $here/seccomp /usr/share/trocar/
	mount --bind /usr $here/root/usr
	echo '{ "version": 1, "rules": [] }' | config_map 1
	: >"$events"
}

start() {
	check "the container profile" ends profile
	check "puts the profiles where the kubelet takes them from" diff -r $here/seccomp $kubelet
	check "the container loader" ends loader
	check "leaves its pins on the node" test -e $bpf_dir/abi
	[ -e $bpf_dir/abi ] || return
	check "the container broker" stays broker "$results/pod.broker"
	check "listens" until_true 10 test -S $volumes/run/broker.sock
	check "the container consumer" stays consumer "$events"
	check "is ready" until_true 20 has "$events" rules.applied
}

# What the kernel says of the consumer, and where it is.
confined() {
	local pid
	pid=$(crun state consumer | sed -n 's/.*"pid": \([0-9]*\).*/\1/p')
	same "the consumer has no capability in any set" "$(cap_lines "$pid")" "$zeros"
	matches "it is the manifest's user" "$(grep '^Uid:' "/proc/$pid/status")" '^Uid:.64321.64321.64321.64321$'
	matches "it gains no privileges" "$(grep '^NoNewPrivs:' "/proc/$pid/status")" '1$'
	matches "under two filters of calls, the profile and its own" "$(grep '^Seccomp_filters:' "/proc/$pid/status")" '[^0-9]([2-9]|1[0-9])$'
	check "its root is read-only" sh -c "grep -q ' / / ro[, ]' /proc/$pid/mountinfo || awk '\$5 == \"/\" && \$6 ~ /^ro(,|$)/ { found = 1 } END { exit !found }' /proc/$pid/mountinfo"
	check "its cgroup namespace is not the node's" sh -c "[ \"\$(readlink /proc/$pid/ns/cgroup)\" != \"\$(readlink /proc/1/ns/cgroup)\" ]"
	same "its memory is limited" "$(cat "/sys/fs/cgroup$(sed 's/^0:://' "/proc/$pid/cgroup")/memory.max")" $((256 << 20))
	check "the broker is there for it" has "$events" agent.start '/"broker":true/'
	matches "kubectl exec: trocar status" "$(in_consumer trocar status)" '0 rules'
}

# new_cgroup PATH: with the controllers of its parents, as the kubelet has them.
new_cgroup() {
	local at=/sys/fs/cgroup name
	for name in ${1//\// }; do
		echo "+cpu +memory" >$at/cgroup.subtree_control
		at=$at/$name
		mkdir -p $at
	done
}

# A pod whose container wants more CPU than it may have; the rule is the manifest's own.
stall() {
	check "the changed ConfigMap is in force" config_map 2 <$here/rules.json
	check "and the agent says so" until_true 10 has "$events" rules.applied 'number("count") == 2'
	new_cgroup $shop
	echo "${quota%\%}000 100000" >/sys/fs/cgroup$shop/cpu.max
	(
		echo "$BASHPID" >/sys/fs/cgroup$shop/cgroup.procs
		exec burn_cpu 120 4 4
	) >/dev/null 2>&1 &
	work=$!
	check "a stall of another pod becomes a session" until_true 30 has "$events" session.end "text(\"cgroup\") == \"$shop\""
	say "$(pick "$events" session.end "text(\"cgroup\") == \"$shop\"" 'print text("verdict") ": " text("headline")' | head -n 1)"
	check "which is not inconclusive" has "$events" session.end "text(\"cgroup\") == \"$shop\" && text(\"verdict\") != \"inconclusive\""
	check "of a pod and a container" has "$events" session.end '/"pod_uid":"0c7a96d1-3f5e-4b3a-a3a8-6f9e6d2b1c55"/ && /"container_id":"0+7"/'
	check "its hot function is named" has "$events" stack '/"frames":\[{"fn":"spin_on_checkout/'
	capture
	kill $work 2>/dev/null
	wait $work 2>/dev/null
}

# The whole pod, whose processes are all in a cgroup below.
capture() {
	local pod=${shop%/*}
	matches "kubectl exec: trocar capture" "$(in_consumer trocar capture --cgroup "$pod" --during-ms 1000)" 'session [0-9a-f]+'
	check "of the whole pod" until_true 2 has "$events" session.end "text(\"cgroup\") == \"$pod\""
	check "it has what ran in its container" has "$events" stack "text(\"cgroup\") == \"$pod\" && text(\"in_cgroup\") == \"$shop\""
}

finish_pod() {
	if ! has "$events" rules.applied; then
		fail "the agent runs" <"$results/pod.consumer"
		return
	fi
	crun kill consumer TERM
	check "the consumer ends" until_true 20 stopped consumer
	check "with its last line" has "$events" agent.stop
	crun kill broker TERM
	check "the broker ends" until_true 15 stopped broker
	check "and takes its socket along" test ! -e $volumes/run/broker.sock
	check "the second manifest unloads" ends unload
	check "nothing is pinned" sh -c "[ -z \"\$(ls -A $bpf_dir)\" ]"
	# The loop waits 100 ms for the broker, which in an emulated machine may be too short: then sampling comes back.
	matches "no error was told of" "$(pick "$events" error "$slow == 1 || text(\"code\") != \"sampling_missing\"" print)" '^$'
	! has "$events" error 'text("code") == "sampling_missing"' ||
		check "sampling came back" grep -q 'every CPU has its event again' "$results/pod.consumer"
	head -c 3000 "$results/pod.consumer" "$results/pod.broker" | sed 's/^/# /'
}

steps prepare start
# Without an agent there is nothing to wait for.
! has "$events" rules.applied || steps confined stall
steps finish_pod
