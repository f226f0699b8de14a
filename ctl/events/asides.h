/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * asides.h: lines that belong to no shown session: held-back triggers, errors, rejected rules. Each
 * kind has one row, with its count and its last line.
 */
#ifndef TROCAR_CTL_EVENTS_ASIDES_H
#define TROCAR_CTL_EVENTS_ASIDES_H

#include "ctl/events/store.h"

/* Without padding, as all keys of pools. */
struct aside_kind {
	uint32_t type;	/* enum event_type: EVENT_HELD, EVENT_ERROR, EVENT_REJECTED */
	uint32_t what;	/* text: why the trigger was held back, or the error's code */
	uint32_t of;	/* text: the resource, or the kind of trigger */
	uint32_t where; /* text: the cgroup of a held trigger */
};

struct aside {
	uint64_t count; /* lines; of held triggers: the triggers that the lines stand for */
	uint64_t largest_ms, sum_ms; /* of held triggers */
	uint32_t line;		     /* a text: the last line */
	uint64_t time_ns;	     /* of the last line */
};

struct asides {
	struct pool kinds;
	struct aside *rows; /* one per kind */
	uint32_t space;
};

void asides_init(struct asides *a, struct store *store);
void asides_done(struct asides *a);

/* Counts the line from which `event` was read. 0, -ENOMEM, -ENOSPC. */
int asides_take(struct asides *a, struct store *store, const struct event *event, uint64_t time_ns,
		const char *line, size_t bytes);

/* Returns the kind of a row, below a->kinds.count. */
const struct aside_kind *asides_kind(const struct asides *a, uint32_t row);

#endif
