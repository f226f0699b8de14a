/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * captured.h: the cgroups that running sessions capture, for those who must leave alone what a
 * session is made of. Knows no session. Main thread only.
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
 * A session of that cgroup begins; one cgroup may stand there several times. `path` below the
 * cgroup2 mount is borrowed until captured_remove. -ENOSPC beyond CAPTURED_MAX.
 */
int captured_add(struct captured *c, uint64_t cgroup_id, const char *path);

/* The session that added this very `path` ends; nothing happens when none did. */
void captured_remove(struct captured *c, const char *path);

/*
 * Whether a running session captures the cgroup: it is one of them, or `path` (NULL: not known)
 * lies below one.
 */
bool captured_holds(const struct captured *c, uint64_t cgroup_id, const char *path);

#endif
