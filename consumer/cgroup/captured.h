/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * captured.h: the cgroups that running sessions capture, for modules that must not take resources
 * from a session. Independent of sessions. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CAPTURED_H
#define TROCAR_CONSUMER_CGROUP_CAPTURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURED_MAX 16 /* sessions at once */

struct captured {
	struct captured_cgroup {
		uint64_t id;
		const char *path; /* borrowed */
	} cgroups[CAPTURED_MAX];
	size_t count;
};

/*
 * Adds the cgroup of a session that begins; the same cgroup may be added several times. `path`,
 * below the cgroup2 mount, is borrowed until captured_remove. 0 or -ENOSPC beyond CAPTURED_MAX.
 */
int captured_add(struct captured *c, uint64_t cgroup_id, const char *path);

/*
 * Removes the element that captured_add added with the same pointer `path`; does nothing if there
 * is none.
 */
void captured_remove(struct captured *c, const char *path);

/*
 * Returns whether a running session captures the cgroup: its id was added, or `path` (NULL:
 * unknown) is that of an added cgroup or below it.
 */
bool captured_holds(const struct captured *c, uint64_t cgroup_id, const char *path);

#endif
