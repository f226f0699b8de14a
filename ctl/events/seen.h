/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seen.h: detects repeated lines. Pipelines deliver lines at least once: after a restart or a
 * timeout they repeat lines, which would count twice. The agent never gives two lines of one type
 * and session the same `mono_ns`.
 */
#ifndef TROCAR_CTL_EVENTS_SEEN_H
#define TROCAR_CTL_EVENTS_SEEN_H

#include "ctl/events/event.h"
#include "ctl/events/pool.h"

struct seen {
	struct pool lines;
};

void seen_init(struct seen *s, struct pool_budget *budget);
void seen_done(struct seen *s);

/*
 * Adds the line from which `event` was read to the lines of `group`; *ret_again: the group already
 * had it. Lines without `mono_ns` are equal if their bytes are equal. 0, -ENOMEM, -ENOSPC.
 */
int seen_note(struct seen *s, const struct event *event, const char *line, size_t bytes,
	      uint32_t group, bool *ret_again);

#endif
