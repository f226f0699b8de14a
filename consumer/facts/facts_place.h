/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_place.h: where the facts of a watched cgroup are read. On hybrid hosts some controllers are
 * in v1 hierarchies; there the cgroup is that of the watch's processes, by /proc/PID/cgroup. Main
 * thread only.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_PLACE_H
#define TROCAR_CONSUMER_FACTS_FACTS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/facts/facts.h"

#define FACTS_PLACE_PIDS  32 /* processes that are asked for their v1 cgroups */
#define FACTS_PLACE_PATHS 8  /* different v1 cgroups that are distinguished */

/* Where one source is read. */
struct facts_place_source {
	enum facts_where where; /* FACTS_V2 or FACTS_V1 */
	char *path;		/* owned: of the cgroup; NULL: not known, or no hierarchy has it */
	/* Of the processes that were asked, and of these those in `path`; both 0 for FACTS_V2. */
	uint32_t asked, inside;
	bool above; /* `path` is above the watch's cgroup, and has the limit that counts */
};

struct facts_place {
	struct facts_place_source source[FACTS_SOURCE_COUNT_];
};

void facts_place_done(struct facts_place *p);

/* Copies it. 0 or -ENOMEM; *ret_place is released by facts_place_done only on success. */
int facts_place_copy(const struct facts_place *p, struct facts_place *ret_place);

bool facts_place_same(const struct facts_place *a, const struct facts_place *b);

/*
 * Finds the cgroup of `controller` in `text`, the content of /proc/PID/cgroup (proc(5)). False when
 * it has none that fits into `space`, or it is outside of this process's cgroup namespace ("/..").
 * Fuzzed (tests/fuzz/consumer/facts.c).
 */
bool facts_place_parse(const char *text, size_t bytes, const char *controller, char *ret_path,
		       size_t space);

/* Writes at most FACTS_PLACE_PIDS matched processes of the cgroup2 root; returns how many. */
typedef size_t (*facts_place_call)(void *context, uint32_t pids[FACTS_PLACE_PIDS]);

/*
 * Finds the place of the cgroup at `path` of cgroup2: for the sources in v1 hierarchies (`where`)
 * that of most of its processes. `of_root` selects those of the root: a watch of the root is one of
 * matched processes only. 0 or -ENOMEM.
 */
int facts_place_find(struct cgroups *cgroups, const char *path,
		     const enum facts_where where[FACTS_SOURCE_COUNT_], facts_place_call of_root,
		     void *context, struct facts_place *ret_place);

#endif
