#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# trocar-loader for real: load, refuse, replace, unload, and the undo of loads that fail or are cut short.
# usage: load_test.sh LOADER TROCAR. Leaves nothing behind; 77 when it cannot run here.
loader=$1
command=$2
# A sanitizer's runtime makes system calls that the loader's filter kills; the plain build is tested.
if grep -q __asan_init "$loader"; then
	echo "skipped: the loader's system-call filter does not allow what a sanitizer's runtime does"
	exit 77
fi
top=$(mktemp -d /run/trocar-load-test.XXXXXX) || exit 77
dir=$top/sub/bpf
failed=0
one_task=

finish() {
	"$loader" unload --bpf-dir "$dir" >/dev/null 2>&1
	[ -z "$one_task" ] || rmdir "$one_task" 2>/dev/null
	rm -rf "$top"
}
trap finish EXIT
trap 'exit 1' INT TERM

[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
"$loader" check >/dev/null || { echo "skipped: the kernel lacks something: trocar-loader check"; exit 77; }

say() { echo "not ok: $*"; failed=1; }
expect() { # WANTED-STATUS WORD COMMAND...
	wanted=$1 word=$2
	shift 2
	said=$("$@" 2>&1)
	got=$?
	[ "$got" = "$wanted" ] || say "$*: status $got, not $wanted: $said"
	case $said in *"$word"*) ;; *) say "$*: does not say '$word': $said" ;; esac
}
nothing_left() {
	[ ! -e "$top/sub" ] || say "$1: $top/sub is left"
	! grep -q " $dir " /proc/mounts || say "$1: a mount is left"
}
load() { "$loader" load --bpf-dir "$dir" --group 65534 --always oncpu "$@"; }

expect 2 usage "$loader"
expect 2 usage "$loader" frobnicate
expect 2 "--hz 0: want a number from 5 to 999" "$loader" load --hz 0
expect 0 "trocar-loader" "$loader" version
expect 0 "--samples-ring-kib" "$loader" help
# The command's check is the loader's.
for form in "" --json; do
	[ "$(TROCAR_LOADER=$loader "$command" check $form)" = "$("$loader" check $form)" ] || say "trocar check $form"
done
expect 1 "cannot run $top/none" env TROCAR_LOADER="$top/none" "$command" check
expect 1 "groupadd" "$loader" load --bpf-dir "$dir" --group no-such-group
nothing_left "unknown group"

# What lies at the pins' place and is no bpffs is named, and is no other version.
mkdir "$top/plain" && touch "$top/plain/abi" "$top/file"
for place in plain file; do
	expect 1 "the pin $top/$place/abi cannot be read" "$loader" load --bpf-dir "$top/$place" --group 65534
done
case $said in *"already loaded"*) say "a plain file is taken for a set: $said" ;; esac
rm -r "$top/plain" "$top/file"

expect 0 "nothing is loaded" "$loader" unload --bpf-dir "$dir"
expect 0 "loaded at" load --hz 49
[ "$(stat -c %a:%u:%g "$dir")" = 750:0:65534 ] || say "modes of the directory"
[ "$(stat -c %a:%u:%g "$dir/control")" = 660:0:65534 ] || say "modes of control"
for pin in abi counters totals switches broker; do
	[ "$(stat -c %a:%u:%g "$dir/$pin")" = 640:0:65534 ] || say "modes of $pin"
done
[ "$(stat -c %a:%u:%g "$dir/tasks")" = 640:0:65534 ] || say "modes of tasks"
[ "$(stat -c %a:%u:%g "$dir/on_exec")" = 600:0:0 ] || say "modes of on_exec"
[ "$(ls "$dir" | grep -c '^sampler_cpu')" = "$(getconf _NPROCESSORS_ONLN)" ] || say "samplers"
pins=$(ls "$dir" | grep -vc '[.]')
before=$(stat -c %i "$dir/control")
expect 3 "49 Hz" load
expect 0 "replacing the old set" load --replace --hz 97
expect 3 "97 Hz" load
[ "$(stat -c %i "$dir/control")" != "$before" ] || say "the set was not replaced"
[ "$(ls "$dir" | grep -vc '[.]')" = "$pins" ] || say "replace left something over"

# A replacement that fails leaves the old set as it was.
before=$(stat -c %i "$dir/control")
expect 1 "Too many open files" prlimit --nofile=44 "$loader" load --bpf-dir "$dir" --group 65534 --replace
[ "$(stat -c %i "$dir/control")" = "$before" ] || say "a failed replacement touched the old set"
[ ! -e "$dir/new" ] || say "a failed replacement left its set"

# A file that is not ours keeps the directory.
mkdir "$dir/stranger"
expect 1 "other files" "$loader" unload --bpf-dir "$dir"
rmdir "$dir/stranger"
expect 0 "unloaded" "$loader" unload --bpf-dir "$dir"
nothing_left "unload"
expect 0 "nothing is loaded" "$loader" unload --bpf-dir "$dir"

# Where the kernel makes no second thread for it, one thread loads all.
for mount in $(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts); do
	[ -z "$one_task" ] && one_task=$(mktemp -d "$mount/trocar-load-test.XXXXXX" 2>/dev/null) || continue
	[ -e "$one_task/pids.max" ] && echo 1 >"$one_task/pids.max" && break
	rmdir "$one_task"
	one_task=
done
if [ -n "$one_task" ]; then
	expect 0 "loaded at" sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$one_task" \
		"$loader" load --bpf-dir "$dir" --group 65534 --always oncpu
	[ "$(ls "$dir" | grep -vc '[.]')" = "$pins" ] || say "one thread has not loaded all"
	expect 0 "unloaded" "$loader" unload --bpf-dir "$dir"
else
	echo "not tried: the load by one thread: no cgroup limits the number of tasks here"
fi

# Out of descriptors, earlier and later: whatever was done is undone.
for files in 8 16 24 32 40 44 48; do
	prlimit --nofile=$files "$loader" load --bpf-dir "$dir" --group 65534 >/dev/null 2>&1 &&
		say "$files descriptors were enough"
	nothing_left "$files descriptors"
done

# Interrupted and killed at any moment: an interruption undoes, after a kill `unload` and `load` clean up.
for ms in 00 03 06 09 12 15; do
	"$loader" load --bpf-dir "$dir" --group 65534 >/dev/null 2>&1 &
	sleep 0.$ms
	kill -TERM $! 2>/dev/null
	wait $! 2>/dev/null
	case $? in
	0) "$loader" unload --bpf-dir "$dir" 2>/dev/null || say "unload after $ms" ;;
	*) nothing_left "interrupted after 0.$ms s" ;;
	esac
	"$loader" load --bpf-dir "$dir" --group 65534 >/dev/null 2>&1 &
	sleep 0.$ms
	kill -KILL $! 2>/dev/null
	wait $! 2>/dev/null
	load >/dev/null 2>&1
	case $? in 0 | 3) ;; *) say "load after a kill at 0.$ms s" ;; esac
	"$loader" unload --bpf-dir "$dir" 2>/dev/null || say "unload after a kill at 0.$ms s"
	nothing_left "killed after 0.$ms s"
done

# The mount is another's: the pins go, the next load takes it as it stands.
load 2>/dev/null
expect 0 "pins are gone" "$loader" unload --bpf-dir "$dir" --keep-mount
[ -z "$(ls "$dir" | grep -v '[.]')" ] || say "--keep-mount left a pin"
grep -q " $dir bpf " /proc/mounts || say "--keep-mount took the mount away"
expect 0 "nothing is loaded" "$loader" unload --bpf-dir "$dir" --keep-mount
expect 0 "loaded at" load
expect 0 "unloaded" "$loader" unload --bpf-dir "$dir"
nothing_left "keep-mount"
expect 0 "nothing is loaded" "$loader" unload --bpf-dir "$dir" --keep-mount

# In use for a moment, as while bpftool walks through bpffs: it waits.
load 2>/dev/null
(cd "$dir" && exec sleep 0.5) &
sleep 0.1
expect 0 "unloaded" "$loader" unload --bpf-dir "$dir"
wait $!
nothing_left "in use for a moment"

# In use: it says so, keeps the mount, and finishes when it may.
load 2>/dev/null
(cd "$dir" && exec sleep 20) &
sleep 0.2
expect 1 "in use" "$loader" unload --bpf-dir "$dir"
kill $!
wait $! 2>/dev/null
expect 0 "unloaded" "$loader" unload --bpf-dir "$dir"
nothing_left "in use"

# Somebody ends the mount all the time, as a service manager ends an idle one of its own: the load holds it
# from its first look on. What is taken away all the same (umount --lazy) has its cause named.
ends_the_mount() { # COMMAND... while the mount is ended again and again
	(while :; do umount $lazy "$dir" 2>/dev/null; done) &
	ender=$!
	"$@"
	kill $ender
	wait $ender 2>/dev/null
}
for lazy in "" "" "" ""; do
	mkdir -p "$dir" && mount -t bpf bpf "$dir"
	ends_the_mount expect 0 "loaded at" load
	"$loader" unload --bpf-dir "$dir" 2>/dev/null || say "unload of a mount that was ended"
	nothing_left "ended mount"
done
lazy=--lazy
ends_the_mount expect 1 "was taken away" load
nothing_left "mount taken away"

# Two at a time: one of them steps back.
mkdir -p "$top/sub"
mkdir -m 700 "$dir-lock"
flock -F "$dir-lock" sleep 3 &
holder=$!
sleep 0.2
expect 1 "another trocar-loader holds the lock, process $holder" load
expect 1 "another trocar-loader holds the lock, process $holder" "$loader" unload --bpf-dir "$dir"
kill $holder 2>/dev/null
wait $holder 2>/dev/null
rmdir "$dir-lock"

# What others may lock locks nothing: their folder, and what they put where the lock will be.
chmod 1777 "$top/sub"
chmod 755 "$top"
for lock in --shared --exclusive; do
	setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "
		mkdir -m 700 '$dir-lock' && touch '$dir-lock/file'
		exec flock $lock -F '$dir-lock' flock $lock -F '$top/sub' sleep 30" &
	holder=$!
	sleep 0.3
	expect 0 "loaded at" load
	expect 0 "replacing the old set" load --replace
	expect 0 "unloaded" "$loader" unload --bpf-dir "$dir"
	[ ! -e "$dir-lock" ] || say "the lock is left"
	kill $holder
	wait $holder 2>/dev/null
	rm -rf "$dir"-lock-*
done
exit $failed
