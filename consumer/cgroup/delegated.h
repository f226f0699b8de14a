/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * delegated.h: finds the directory that an administrator delegated to a user, for cgroups below it.
 * The user can make any number of cgroups there, so sums by cgroup hide the user's time: times are
 * added up by directory instead. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_DELEGATED_H
#define TROCAR_CONSUMER_CGROUP_DELEGATED_H

#include <stddef.h>
#include <stdint.h>

struct cgroups;

#define DELEGATED_MAX 256 /* directories of one list */

/* The first directory on a path that belongs to a user other than root. */
struct delegated {
	char *path; /* owned */
	uint64_t id;
	uint32_t uid;
};

/* The directories found while one report is made. All 0 before. */
struct delegated_list {
	struct delegated *items; /* owned */
	size_t count;
	char *roots; /* owned; last directory found to be root's all the way; NULL: none */
};

/*
 * Returns the number of the directory of `path` in the list, plus 1. Returns 0 if the whole path is
 * root's, if it no longer exists, or if the list is full. The directories above siblings are looked
 * up once.
 */
size_t delegated_find(struct delegated_list *list, struct cgroups *cgroups, const char *path);

void delegated_done(struct delegated_list *list);

#endif
