/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seen.h: which lines were there before. Pipelines deliver at least once: after a restart or a
 * timeout the same lines come again, and would count twice. The agent gives no two lines of one
 * type and session the same `mono_ns`.
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
 * Notes the line, of which `event` was read, among those of `group`; *ret_again: it is one of them.
 * A line without `mono_ns` is the same as another one when it has the same bytes. 0, -ENOMEM,
 * -ENOSPC.
 */
int seen_note(struct seen *s, const struct event *event, const char *line, size_t bytes,
	      uint32_t group, bool *ret_again);

#endif
