/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * namespaces.h: finds out whether this process sees all processes, all cgroups and the times of the
 * host, and whether /proc hides processes from it. In a separate pid namespace the kernel's
 * iterators list only the processes of that namespace; in a separate cgroup namespace the usual
 * mount of cgroup2 is that namespace's part of the hierarchy.
 */
#ifndef TROCAR_SHARED_FILES_NAMESPACES_H
#define TROCAR_SHARED_FILES_NAMESPACES_H

#include <stdbool.h>

/* Returns NULL if this process sees all processes, else the reason: a clause, a literal. */
const char *namespaces_hide_processes(void);

/*
 * Returns NULL if /proc shows this process the processes of other users, else the reason: a clause,
 * a literal. The mount option hidepid= hides them from all but root and the group in gid=
 * (proc(5)).
 */
const char *namespaces_hide_proc(void);

/*
 * Finds the mount of /proc in `text`, the content of /proc/self/mounts. Returns whether the mount
 * hides the processes of other users; *ret_group is whether it shows them to a group.
 */
bool namespaces_proc_hides(const char *text, bool *ret_group);

/*
 * Returns NULL if CLOCK_MONOTONIC and CLOCK_BOOTTIME are the kernel's own clocks, which BPF
 * programs read; else the reason: a clause, a literal.
 */
const char *namespaces_shift_clocks(void);

/*
 * Returns NULL if this process sees all cgroups below `mount`, the mount point of cgroup2, by the
 * host's paths; else the reason: a clause, a literal.
 */
const char *namespaces_hide_cgroups(const char *mount);

#endif
