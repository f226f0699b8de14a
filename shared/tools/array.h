/* SPDX-License-Identifier: BSD-2-Clause */
/* array.h: grows an array on the heap, sorts it, and finds an element in it. */
#ifndef TROCAR_SHARED_TOOLS_ARRAY_H
#define TROCAR_SHARED_TOOLS_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

/*
 * Grows the array to at least `wanted` elements of `bytes` each. `items` is the address of the
 * pointer to the first element (NULL before the first call), which the caller owns; *space is the
 * capacity in elements. Doubles the capacity, so that appending one by one takes linear time. 0 or
 * -ENOMEM: the array is unchanged.
 */
int array_reserve(void *items, size_t *space, size_t wanted, size_t bytes);

/* Sorts like qsort(3); an empty array may be NULL. */
static inline void array_sort(void *items, size_t count, size_t bytes,
			      int (*compare)(const void *a, const void *b))
{
	if (count)
		qsort(items, count, bytes, compare);
}

/* Finds an element like bsearch(3): NULL if there is none. An empty array may be NULL. */
static inline void *array_find(const void *key, const void *items, size_t count, size_t bytes,
			       int (*compare)(const void *key, const void *item))
{
	return count ? bsearch(key, items, count, bytes, compare) : NULL;
}

/*
 * Evaluates to the first index from `from` on for which `is_below` is false, or to `to` if there is
 * none. `is_below` is an expression of the index `i`, a new variable; where it is false it is false
 * for all higher indexes too.
 */
#define LOWER_BOUND(i, from, to, is_below)                    \
	({                                                    \
		size_t low_ = (from), high_ = (to);           \
		while (low_ < high_) {                        \
			size_t i = low_ + (high_ - low_) / 2; \
			if (is_below)                         \
				low_ = i + 1;                 \
			else                                  \
				high_ = i;                    \
		}                                             \
		low_;                                         \
	})

#endif
