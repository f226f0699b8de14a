/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subscriptions.h: holds event lines for subscribed control clients, in addition to the output.
 * Each subscription holds a bounded number of bytes, which its client fetches by polling; lines
 * that do not fit are counted. A subscription ends with the connection that began it, or when its
 * client stops polling.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_SUBSCRIPTIONS_H
#define TROCAR_CONSUMER_OUTPUT_SUBSCRIPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonw;

#define SUBSCRIPTIONS_MAX   4
#define SUBSCRIPTIONS_BYTES (4u << 20)		 /* held for each subscription */
#define SUBSCRIPTIONS_TAKE  (1u << 20)		 /* returned per call, or one longer line */
#define SUBSCRIPTIONS_NS    (10 * 1000000000ULL) /* ends when not polled for this long */

struct subscriptions;

/* Makes an empty set of subscriptions. 0 or -ENOMEM. */
int subscriptions_new(struct subscriptions **ret_subscriptions);
void subscriptions_free(struct subscriptions *subscriptions);

/* Holds `lines` whole lines for every subscription. Any thread; costs one load if there is none. */
void subscriptions_put(void *subscriptions, const char *data, size_t bytes, uint64_t lines);

/*
 * Begins a subscription of a connection at `now_ns`; *ret_id is never 0. Returns 0; -EBUSY: all are
 * in use.
 */
int subscriptions_open(struct subscriptions *subscriptions, uint64_t connection, uint64_t now_ns,
		       uint64_t *ret_id);

/* Ends the subscriptions of a connection. */
void subscriptions_close(void *subscriptions, uint64_t connection);

/*
 * Writes the keys lines (an array of the lines), omitted (the number of lines that did not fit
 * since the last call) and more (poll again at once) to `w`, and releases those lines. Returns 0;
 * -ENOENT: the connection has no such subscription.
 */
int subscriptions_take(struct subscriptions *subscriptions, uint64_t connection, uint64_t id,
		       uint64_t now_ns, struct jsonw *w);

#endif
