/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * namespaces.h: whether this process sees all processes and all cgroups of the host. In a pid
 * namespace of its own the kernel's iterators list only the processes of that namespace; in a
 * cgroup namespace of its own the usual mount of cgroup2 is the namespace's part of the hierarchy.
 */
#ifndef TROCAR_SHARED_FILES_NAMESPACES_H
#define TROCAR_SHARED_FILES_NAMESPACES_H

/* Returns NULL when it sees all processes, else why not: a clause, a literal. */
const char *namespaces_hide_processes(void);

/*
 * Returns NULL when it sees all cgroups below `mount`, where cgroup2 is mounted, by the host's
 * paths; else why not: a clause, a literal.
 */
const char *namespaces_hide_cgroups(const char *mount);

#endif
