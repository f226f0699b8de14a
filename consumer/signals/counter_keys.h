/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counter_keys.h: shared code for signals that read a map of counters at the begin and at the end
 * of a session: finds a key in the other reading, and computes the growth of a counter. Pure.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_COUNTER_KEYS_H
#define TROCAR_CONSUMER_SIGNALS_COUNTER_KEYS_H

#include <stddef.h>
#include <stdint.h>

/* The sorted keys of a reading. All zero: no keys. */
struct counter_keys {
	const void **items; /* owned; each points into the reading */
	const char *first;  /* first key of the reading, in the reading's order */
	size_t count, bytes;
};

/*
 * Sorts the `count` keys of `bytes` bytes each at `keys` (borrowed). Keys must have no padding,
 * because they are compared byte by byte. Returns 0 or -ENOMEM. Release with counter_keys_done.
 */
int counter_keys_sort(const void *keys, size_t count, size_t bytes, struct counter_keys *ret_keys);
void counter_keys_done(struct counter_keys *k);

/*
 * Returns the index of the key in the reading, or the number of keys if the reading does not have
 * it.
 */
size_t counter_keys_find(const struct counter_keys *k, const void *key);

/*
 * Returns the element of `values`, of `bytes` bytes each in the reading's order, that the key has;
 * `none` if the reading does not have it.
 */
const void *counter_keys_value(const struct counter_keys *k, const void *key, const void *values,
			       size_t bytes, const void *none);

/*
 * Returns the growth of a counter. A counter that shrank was reset in the meantime: all of `now` is
 * growth.
 */
static inline uint64_t counter_keys_growth(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

#endif
