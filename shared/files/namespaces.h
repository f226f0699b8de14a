/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * namespaces.h: whether this process sees all processes, all cgroups and the times of the host, and
 * the processes that /proc hides from it. In a pid namespace of its own the kernel's iterators list
 * only the processes of that namespace; in a cgroup namespace of its own the usual mount of cgroup2
 * is the namespace's part of the hierarchy.
 */
#ifndef TROCAR_SHARED_FILES_NAMESPACES_H
#define TROCAR_SHARED_FILES_NAMESPACES_H

#include <stdbool.h>

/* Returns NULL when it sees all processes, else why not: a clause, a literal. */
const char *namespaces_hide_processes(void);

/*
 * Returns NULL when /proc shows it the processes of other users, else why not: a clause, a literal.
 * hidepid= of the mount hides them from all but root and the group that gid= names (proc(5)).
 */
const char *namespaces_hide_proc(void);

/*
 * Finds the mount of /proc in `text`, the content of /proc/self/mounts. Returns whether it hides
 * the processes of other users; *ret_group is whether it shows them to a group.
 */
bool namespaces_proc_hides(const char *text, bool *ret_group);

/*
 * Returns NULL when CLOCK_MONOTONIC and CLOCK_BOOTTIME are the kernel's, which BPF programs read;
 * else why not: a clause, a literal.
 */
const char *namespaces_shift_clocks(void);

/*
 * Returns NULL when it sees all cgroups below `mount`, where cgroup2 is mounted, by the host's
 * paths; else why not: a clause, a literal.
 */
const char *namespaces_hide_cgroups(const char *mount);

#endif
