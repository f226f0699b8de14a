# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What the checks inside share. Sourced by /ci/run before each of them; $0 is the check's name.

results=/ci/results
failures=0
slow=${slow:-1}
pause=0.1
[ "$slow" = 1 ] || pause=0.5
bpf_dir=/run/trocar/bpf
loader=/usr/sbin/trocar-loader
consumer=$(echo /usr/lib*/trocar/trocar-consumer)
control=/run/trocar/control.sock

say() { echo "# $*"; }
# figure NAME VALUE: a row of the tables that the run prints at its end.
figure() { echo "# $1 = $2"; }
ok() { echo "ok - $0: $*"; }
skip() { echo "ok - $0: $1 # SKIP $2"; }

# fail WHAT: with what standard input says below it, if there is any.
fail() {
	echo "not ok - $0: $1"
	head -c 6000 | sed 's/^/# /'
	failures=$((failures + 1))
}

# steps NAME...: each in turn, with its time.
steps() {
	local step began
	for step in "$@"; do
		began=$SECONDS
		$step
		say "$step: $((SECONDS - began)) s"
	done
}

finish() { exit $((failures > 0)); }

# check WHAT COMMAND...: one TAP line; what the command printed is shown when it failed. Not in a subshell.
check() {
	local what=$1 began=$SECONDS
	shift
	if "$@" >/ci/said 2>&1; then ok "$what"; else fail "$what" </ci/said; fi
	[ $((SECONDS - began)) -lt 5 ] || say "that took $((SECONDS - began)) s"
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
	local limit=$((SECONDS + $1 * slow))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $limit ] || return 1
		sleep "$pause"
	done
}

# The ids of the BPF programs behind the pinned links and iterators, in order. By pins and not by name: a
# container shares the kernel's list of programs with the whole machine. Each call of bpftool loads a program
# of its own to find processes by, so there is one call.
program_ids() {
	bpftool -f link show 2>/dev/null | awk -v dir="$bpf_dir/" '
		/^[0-9]+: / { for (i = 1; i < NF; i++) if ($i == "prog") id = $(i + 1) }
		$1 == "pinned" && index($2, dir) == 1 { print id }' | sort -nu | tr '\n' ' '
}

# What a condition on an event line may say besides what awk has: the first value of a key, as text or as a number.
# Not by jq, which takes half a second to begin where all is emulated.
values='function text(key, rest) {
		if (!match($0, "\"" key "\":"))
			return ""
		rest = substr($0, RSTART + RLENGTH, 400)
		if (sub(/^"/, "", rest))
			sub(/".*/, "", rest)
		else
			sub(/[],}].*/, "", rest)
		return rest
	}
	function number(key) { return text(key) + 0 }'

# pick FILE TYPE CONDITION STATEMENT: awk's statement for each event line of that type for which the condition holds.
pick() {
	awk -v start="{\"v\":1,\"type\":\"$2\"," "$values
		index(\$0, start) == 1 && (${3:-1}) { $4 }" "$1"
}

# count FILE TYPE [CONDITION]: event lines of that type.
count() { pick "$1" "$2" "${3-}" print | wc -l; }
has() { [ -n "$(pick "$1" "$2" "${3-}" "print NR; exit")" ]; }

# cap_lines PID: its capabilities as the kernel tells them, on one line.
cap_lines() {
	awk '/^Cap/ { printf "%s ", $2 }' "/proc/$1/status"
}
# A virtual machine with all of root's rights, and not a container.
in_machine() { [ "$slow" -gt 1 ]; }

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
	bpftool prog show | awk -v ids=" $1 " '/^[0-9]+: / { sub(/:/, "", $1); if (index(ids, " " $1 " ")) lives = 1 }
		END { exit lives }'
}

# A user and the groups, where no package made them.
make_users() {
	getent passwd trocar >/dev/null || printf 'u trocar - "trocar consumer"\ng trocar-admin -\n' |
		systemd-sysusers - >/dev/null 2>&1
}

# ---- the units

property() { systemctl show -P "$2" "$1"; }
consumer_pid() { property trocar-consumer MainPID; }
active() { [ "$(property "$1" ActiveState)" = active ]; }
inactive() { [[ $(property "$1" ActiveState) =~ ^(inactive|failed)$ ]]; }

# The event lines of the unit as the journal gives them, followed into a file: to ask the journal each time is
# slow. Those that are not stacks are in $lines.few too: the others are many, and long. Ended by the end of the check.
lines=/ci/lines.$0
follow() {
	: >"$lines" >"$lines.few"
	journalctl -u trocar-consumer -b -o cat --no-pager -n all -f | awk -W interactive -v all="$lines" -v few="$lines.few" '
		/^{"v":/ { print >all; fflush(all); if (!/^{"v":1,"type":"stack",/) { print >few; fflush(few) } }' &
	trap 'kill $(jobs -p) 2>/dev/null' EXIT
}

# file_of TYPE: where its lines are.
file_of() { [ "$1" = stack ] && echo "$lines" || echo "$lines.few"; }

# line TYPE [CONDITION]: there is such a line by now. If not, shows the last one of that type.
line() {
	has "$(file_of "$1")" "$@" && return
	pick "$(file_of "$1")" "$1" 1 "last = \$0 } END { print last"
	return 1
}

# line_after MARK TYPE [CONDITION]: the same, of lines younger than MARK (mono_ns).
line_after() { line "$2" "number(\"mono_ns\") > $1 && (${3:-1})"; }
mono_ns() { awk '{ printf "%.0f\n", $1 * 1e9 }' /proc/uptime; }

# another PID: the consumer is up and is not that process any more.
another() {
	local pid
	pid=$(consumer_pid)
	[ "$pid" != 0 ] && [ "$pid" != "$1" ] && active trocar-consumer
}

# rules JSON: the operator changes the file; true when it is in force.
rules() {
	local mark
	mark=$(mono_ns)
	echo "{ \"version\": 1, \"rules\": [ $1 ] }" >/etc/trocar/rules.new
	mv /etc/trocar/rules.new /etc/trocar/rules.json
	until_true 5 line_after "$mark" rules.applied
}

# A container's cgroups have another path for the kernel than for who is inside, so a rule by cgroup is matched
# there by the scan alone, every 30 s.
by_cgroup='"cgroup_prefix": "/system.slice/shop"'
[ "$slow" -gt 1 ] || by_cgroup='"comm": "burn_cpu"'
shop_rule='{ "name": "shop", "match": { '$by_cgroup' },
	"when": [ { "pressure": "cpu", "some_ms": 150, "window_ms": 500 } ],
	"capture": { "pre_ms": 3000, "during_ms": 2000, "cooldown_ms": 1000 } }'

# shop SECONDS [CALM [PROPERTY]]: a service that wants more CPU than it may have, in the unit shop.service. Where CPUs are
# emulated it may have little: what it burns is a CPU of the host's, all the time.
quota=50%
[ "$slow" = 1 ] || quota=20%
shop() {
	systemctl stop shop 2>/dev/null
	systemctl reset-failed shop 2>/dev/null
	systemd-run -q --unit shop -p CPUQuota=$quota -p "${3:-TasksMax=64}" burn_cpu "$1" 4 "${2:-0}"
}

# ---- machines that we refuse

# refused LINE: this line, and no half of anything, from `check`, from `load`, and from systemd.
refused() {
	local pattern=$1 said
	said=$("$loader" check)
	same "trocar-loader check: not fine" $? 4
	matches "and says why" "$said" "$pattern"
	said=$("$loader" load --bpf-dir /run/refused 2>&1)
	same "trocar-loader load fails" $? 1
	matches "and says why" "$said" "$pattern"
	check "and leaves nothing" test ! -e /run/refused
	same "the loader's unit has failed" "$(property trocar-loader ActiveState)" failed
	matches "systemctl status says why" "$(systemctl status --no-pager -l -n 40 trocar-loader)" "$pattern"
	check "the consumer's unit is down" inactive trocar-consumer
	same "and was not tried again and again" "$(property trocar-consumer NRestarts)" 0
	matches "systemctl status says for want of what" \
		"$(systemctl status --no-pager -l trocar-consumer)" 'Dependency failed'
	check "nothing of ours is pinned" sh -c '[ -z "$(ls -A /run/trocar/bpf 2>/dev/null)" ]'
	systemctl reset-failed
}
