/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counter_keys.h: what signals have in common that read a map of counters at the begin and the end
 * of a session: the search for a key in the other reading, and the growth of a counter. Pure.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_COUNTER_KEYS_H
#define TROCAR_CONSUMER_SIGNALS_COUNTER_KEYS_H

#include <stddef.h>
#include <stdint.h>

/* The keys of a reading, in order. All zero: none. */
struct counter_keys {
	const void **items; /* owned; each points into the reading */
	const char *first;  /* the reading's first key */
	size_t count, bytes;
};

/*
 * Sorts the `count` keys of `bytes` each that a reading has at `keys` (borrowed), without padding:
 * they are compared byte by byte. 0 or -ENOMEM. Release with counter_keys_done.
 */
int counter_keys_sort(const void *keys, size_t count, size_t bytes, struct counter_keys *ret_keys);
void counter_keys_done(struct counter_keys *k);

/* Returns the place of the key in the reading; `count` of the keys where it is not there. */
size_t counter_keys_find(const struct counter_keys *k, const void *key);

/* Returns the growth of a counter; one that was emptied in the meantime has begun anew. */
static inline uint64_t counter_keys_growth(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

#endif
