/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/kernel/map_batch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* Passes an array to the pointer at `ret_items`, without its unused memory. */
static void hand_over(void **items, uint32_t count, size_t bytes, void *ret_items)
{
	void *smaller = reallocarray(*items, MAX(count, 1u), bytes);

	memcpy(ret_items, smaller ? &smaller : items, sizeof(*items));
	*items = NULL;
}

int map_batch_read(int fd, const struct map_sizes *sizes, void *ret_keys, void *ret_values,
		   uint32_t *ret_count)
{
	_cleanup_free_ void *keys = calloc(sizes->room, sizes->key_bytes);
	_cleanup_free_ void *values = calloc(sizes->room, sizes->value_bytes);
	uint32_t next, count = sizes->room;

	if (!keys || !values)
		return -ENOMEM;
	/* ENOENT: the end of the map. */
	if (bpf_map_lookup_batch(fd, NULL, &next, keys, values, &count, NULL) < 0 &&
	    errno != ENOENT)
		return -errno;
	hand_over(&keys, count, sizes->key_bytes, ret_keys);
	hand_over(&values, count, sizes->value_bytes, ret_values);
	*ret_count = count;
	return 0;
}

int map_batch_part(int fd, void *keys, void *values, uint32_t room, struct map_part *part)
{
	uint32_t from = part->token;

	part->count = room;
	part->more = bpf_map_lookup_batch(fd, part->begun ? &from : NULL, &part->token, keys,
					  values, &part->count, NULL) == 0;
	part->begun = true;
	return part->more || errno == ENOENT ? 0 : -errno;
}

void map_batch_empty(int fd, const struct map_sizes *sizes)
{
	_cleanup_free_ void *keys = NULL, *values = NULL;
	uint32_t count = 0;

	if (map_batch_read(fd, sizes, &keys, &values, &count) == 0 && count)
		bpf_map_delete_batch(fd, keys, &count, NULL);
}

int map_batch_clear(int fd, size_t key_bytes)
{
	_cleanup_free_ char *keys = calloc(2, key_bytes);
	char *key = keys, *next = keys + key_bytes, *swapped;
	int r;

	if (!keys)
		return -ENOMEM;
	/*
	 * Continue after an entry, not from the start: finding the first entry searches the hash
	 * map.
	 */
	for (r = bpf_map_get_next_key(fd, NULL, key); r == 0;) {
		r = bpf_map_get_next_key(fd, key, next);
		/* ENOENT: its process or cgroup ended just now, and a program has deleted it. */
		if (bpf_map_delete_elem(fd, key) < 0 && errno != ENOENT)
			return -errno;
		swapped = key;
		key = next;
		next = swapped;
	}
	return r == -ENOENT ? 0 : r;
}
