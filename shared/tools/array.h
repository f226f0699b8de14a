/* SPDX-License-Identifier: BSD-2-Clause */
/* array.h: grows an array on the heap. */
#ifndef TROCAR_SHARED_TOOLS_ARRAY_H
#define TROCAR_SHARED_TOOLS_ARRAY_H

#include <stddef.h>

/*
 * Grows the array to at least `wanted` elements of `bytes` each. `items` is the address of the
 * pointer to the first element (NULL before the first call), which the caller owns; *space is the
 * capacity in elements. Doubles the capacity, so that appending one by one takes linear time. 0 or
 * -ENOMEM: the array is unchanged.
 */
int array_reserve(void *items, size_t *space, size_t wanted, size_t bytes);

#endif
