/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subscriptions.h: event lines held for clients of the control socket that asked for them, beside
 * the output. Each subscription holds a bounded number of bytes, fetched by asking again and again;
 * what has no room is counted. One that is not asked for is given up.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_SUBSCRIPTIONS_H
#define TROCAR_CONSUMER_OUTPUT_SUBSCRIPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/json/jsonw.h"

#define SUBSCRIPTIONS_MAX   4
#define SUBSCRIPTIONS_BYTES (4u << 20)		 /* held for each */
#define SUBSCRIPTIONS_TAKE  (1u << 20)		 /* given out at a time; one line may go beyond */
#define SUBSCRIPTIONS_NS    (10 * 1000000000ULL) /* without a question: given up */

struct subscriptions;

/* None yet. 0 or -ENOMEM. */
int subscriptions_new(struct subscriptions **ret_subscriptions);
void subscriptions_free(struct subscriptions *subscriptions);

/* Holds `lines` whole lines for everyone who asked. Any thread; costs one load while nobody did. */
void subscriptions_put(void *subscriptions, const char *data, size_t bytes, uint64_t lines);

/* Begins one at `now_ns`; *ret_id is never 0. 0; -EBUSY: as many as there may be. */
int subscriptions_open(struct subscriptions *subscriptions, uint64_t now_ns, uint64_t *ret_id);

/*
 * Writes to `w` the keys lines (an array of the lines), omitted (how many had no room since the
 * last time) and more (ask again at once), and forgets them. 0; -ENOENT: there is no such one.
 */
int subscriptions_take(struct subscriptions *subscriptions, uint64_t id, uint64_t now_ns,
		       struct jsonw *w);

#endif
