/* SPDX-License-Identifier: BSD-2-Clause */
/* oom_kills.h: processes of a session's cgroup that the kernel killed because memory ran out. */
#ifndef TROCAR_CONSUMER_SESSION_OOM_KILLS_H
#define TROCAR_CONSUMER_SESSION_OOM_KILLS_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/abi.h"

#define OOM_KILL_CGROUP_BYTES 256

/* One killed process, as in its "oom" line. */
struct oom_kill {
	uint32_t pid;
	char comm[COMM_BYTES];
	bool has_memory; /* the next two are known */
	uint64_t rss_bytes, swap_bytes;
	enum oom_limit limit;
	uint64_t limit_bytes;			  /* 0: unknown, or no limit */
	char limit_cgroup[OOM_KILL_CGROUP_BYTES]; /* "" if the path is unknown */
};

/* The OOM kills of a session. */
struct oom_kills {
	uint64_t count;
	uint64_t lines; /* kills with the session's id in their line */
	struct oom_kill first;
};

static inline void oom_kills_add(struct oom_kills *all, const struct oom_kill *kill)
{
	if (!all->count++)
		all->first = *kill;
}

#endif
