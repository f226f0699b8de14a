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
	bpftool -f -j link show 2>/dev/null | jq -r --arg dir "$bpf_dir/" \
		'.[] | select(any(.pinned[]?; startswith($dir))) | .prog_id' | sort -nu | tr '\n' ' '
}

# count FILE TYPE [JQ-CONDITION]: event lines of that type. By grep first: jq reads slowly where all is emulated.
count() {
	grep -F "{\"v\":1,\"type\":\"$2\"," "$1" | jq -c "select(${3:-true})" 2>/dev/null | wc -l
}

has() { [ "$(count "$@")" -gt 0 ]; }

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
	bpftool -j prog show | jq -e --arg ids "$1" \
		'map(.id) as $live | $ids | split(" ") | map(select(. != "") | tonumber) | all(IN($live[]) | not)'
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
# slow. Ended by the end of the check.
lines=/ci/lines.$0
follow() {
	journalctl -u trocar-consumer -b -o cat --no-pager -n all -f | grep --line-buffered '^{"v":' >"$lines" &
	trap 'kill $(jobs -p) 2>/dev/null' EXIT
}

# line TYPE [JQ-CONDITION]: there is such a line by now. If not, shows the last one of that type.
line() {
	has "$lines" "$@" && return
	grep -F "\"type\":\"$1\"" "$lines" | tail -n 1
	return 1
}

# line_after MARK TYPE [CONDITION]: the same, of lines younger than MARK (mono_ns).
line_after() { line "$2" ".mono_ns > $1 and (${3:-true})"; }
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

# shop SECONDS [CALM]: a service under a quota of half a CPU, in the unit shop.service.
shop() {
	systemctl stop shop 2>/dev/null
	systemctl reset-failed shop 2>/dev/null
	systemd-run -q --unit shop -p CPUQuota=50% -p "${3:-TasksMax=64}" burn_cpu "$1" 4 "${2:-0}"
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
