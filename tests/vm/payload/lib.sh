# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What the checks inside share. Sourced by /ci/run before each of them; $0 is the check's name.

results=/ci/results
failures=0
slow=${slow:-1}
bpf_dir=/run/trocar/bpf
loader=/usr/sbin/trocar-loader
consumer=$(echo /usr/lib*/trocar/trocar-consumer)
control=/run/trocar/control.sock

say() { echo "# $*"; }
ok() { echo "ok - $0: $*"; }
skip() { echo "ok - $0: $1 # SKIP $2"; }

# fail WHAT: with what standard input says below it, if there is any.
fail() {
	echo "not ok - $0: $1"
	head -c 6000 | sed 's/^/# /'
	failures=$((failures + 1))
}

finish() { exit $((failures > 0)); }

# check WHAT COMMAND...: one TAP line; what the command printed is shown when it failed. Not in a subshell.
check() {
	local what=$1
	shift
	if "$@" >/run/check.said 2>&1; then ok "$what"; else fail "$what" </run/check.said; fi
}

# same WHAT SEEN EXPECTED
same() {
	if [ "$2" = "$3" ]; then ok "$1"; else fail "$1" <<<"seen:     $2
expected: $3"; fi
}

# matches WHAT TEXT PATTERN (extended)
matches() {
	if grep -qE -- "$3" <<<"$2"; then ok "$1"; else fail "$1" <<<"seen:     $2
expected: $3"; fi
}

# until_true SECONDS COMMAND...: true as soon as the command is; SECONDS count on a real machine.
until_true() {
	local limit=$(($1 * slow * 10)) i
	shift
	for ((i = 0; i < limit; i++)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}

# The ids of the BPF programs behind the pinned links and iterators, in order. By pins and not by name: a
# container shares the kernel's list of programs with the whole machine.
program_ids() {
	local pin
	for pin in "$bpf_dir"/*; do
		bpftool -j link show pinned "$pin" 2>/dev/null | jq -r '.prog_id // empty'
	done | sort -nu | tr '\n' ' '
}

# count FILE TYPE [JQ-CONDITION]: event lines of that type.
count() {
	jq -c --arg type "$2" "select(.type == \$type and (${3:-true}))" "$1" 2>/dev/null | wc -l
}

has() { [ "$(count "$@")" -gt 0 ]; }

# cap_lines PID: its capabilities as the kernel tells them, on one line.
cap_lines() {
	awk '/^Cap/ { printf "%s ", $2 }' "/proc/$1/status"
}
zeros="0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "

# no_trace IDS: nothing of ours is pinned, and the programs IDS have left the kernel, which frees one a moment
# after its last user has gone.
no_trace() {
	[ ! -e "$bpf_dir/abi" ] && until_true 3 none_lives "$1" && return
	ls -la "$bpf_dir"
	bpftool prog show
	return 1
}

none_lives() {
	local id
	for id in $1; do
		! bpftool prog show id "$id" >/dev/null 2>&1 || return 1
	done
}

# A user and the groups, where no package made them.
make_users() {
	getent passwd trocar >/dev/null || printf 'u trocar - "trocar consumer"\ng trocar-admin -\n' |
		systemd-sysusers - >/dev/null 2>&1
}
