/* SPDX-License-Identifier: BSD-2-Clause */
/* map_batch.h: reads maps, at once or in parts, and empties them. Main thread only. */
#ifndef TROCAR_CONSUMER_KERNEL_MAP_BATCH_H
#define TROCAR_CONSUMER_KERNEL_MAP_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sizes of a map. */
struct map_sizes {
	size_t key_bytes, value_bytes;
	uint32_t room; /* in elements */
};

/*
 * Reads a map into two new arrays. `ret_keys` and `ret_values` are the addresses of the pointers to
 * their first elements; the caller owns the arrays, and has one even for a map without elements.
 * Returns 0, -ENOMEM or -errno of bpf(2).
 */
int map_batch_read(int fd, const struct map_sizes *sizes, void *ret_keys, void *ret_values,
		   uint32_t *ret_count);

#define MAP_BATCH_PART 256 /* elements in one part of most maps */

/* A part of a map. All 0 before the first one. */
struct map_part {
	uint32_t count; /* its elements */
	bool more;	/* another part follows */
	bool begun;	/* private, like the next member */
	uint32_t token;
};

/*
 * Reads the next part of a hash map into the arrays, which have space for `room` elements. Returns
 * 0 or -errno of bpf(2).
 */
int map_batch_part(int fd, void *keys, void *values, uint32_t room, struct map_part *part);

/* Deletes the elements that one reading finds in a map. */
void map_batch_empty(int fd, const struct map_sizes *sizes);

/*
 * Deletes each entry of a hash map or a trie, with one call for each. BPF programs may delete
 * entries in the meantime; entries that they add in the meantime may stay. Returns 0, -ENOMEM or
 * -errno of bpf(2).
 */
int map_batch_clear(int fd, size_t key_bytes);

#endif
