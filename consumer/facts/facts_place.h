/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_place.h: the cgroups from which the facts of a watched cgroup are read. On hybrid hosts
 * some controllers are in v1 hierarchies; the cgroup there is that of the watch's processes, by
 * /proc/PID/cgroup. Main thread only.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_PLACE_H
#define TROCAR_CONSUMER_FACTS_FACTS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/facts/facts.h"

#define FACTS_PLACE_PIDS  32 /* processes per lookup of v1 cgroups */
#define FACTS_PLACE_PATHS 8  /* different v1 cgroups that are distinguished */

/* The place of one source. */
struct facts_place_source {
	enum facts_where where; /* FACTS_V2 or FACTS_V1 */
	char *path;		/* owned: of the cgroup; NULL: unknown, or in no hierarchy */
	/* Number of processes looked up, and of those in `path`; both 0 for FACTS_V2. */
	uint32_t asked, inside;
	bool above; /* `path` is above the watch's cgroup, and has the effective limit */
};

struct facts_place {
	struct facts_place_source source[FACTS_SOURCE_COUNT_];
};

void facts_place_done(struct facts_place *p);

/* Copies the place. Returns 0 or -ENOMEM; *ret_place needs facts_place_done only on success. */
int facts_place_copy(const struct facts_place *p, struct facts_place *ret_place);

bool facts_place_same(const struct facts_place *a, const struct facts_place *b);

/*
 * Finds the cgroup of `controller` in `text`, the content of /proc/PID/cgroup (proc(5)). Returns
 * false if there is none that fits into `space`, or if it is outside of this process's cgroup
 * namespace ("/.."). Fuzzed (tests/fuzz/consumer/facts.c).
 */
bool facts_place_parse(const char *text, size_t bytes, const char *controller, char *ret_path,
		       size_t space);

/* Writes at most FACTS_PLACE_PIDS matched processes of the cgroup2 root; returns their number. */
typedef size_t (*facts_place_call)(void *context, uint32_t pids[FACTS_PLACE_PIDS]);

/*
 * Finds the place of the cgroup at `path` of cgroup2: for sources in v1 hierarchies (`where`), the
 * cgroup of most of its processes. `of_root` selects the processes of the root, because a watch of
 * the root has matched processes only. Returns 0 or -ENOMEM. Release with facts_place_done.
 */
int facts_place_find(struct cgroups *cgroups, const char *path,
		     const enum facts_where where[FACTS_SOURCE_COUNT_], facts_place_call of_root,
		     void *context, struct facts_place *ret_place);

#endif
