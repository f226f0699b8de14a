/* SPDX-License-Identifier: BSD-2-Clause */
/* array.h: grows an array on the heap. */
#ifndef TROCAR_SHARED_TOOLS_ARRAY_H
#define TROCAR_SHARED_TOOLS_ARRAY_H

#include <stddef.h>

/*
 * Makes room for `wanted` elements of `bytes` each. `items` is the address of the pointer to the
 * first one (NULL before the first call), which the caller owns; *space is for how many there is
 * room. Doubles, so that adding one after the other takes linear time. 0 or -ENOMEM: then the array
 * is as before.
 */
int array_reserve(void *items, size_t *space, size_t wanted, size_t bytes);

#endif
