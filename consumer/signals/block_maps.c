/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/block_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

/* Reads a map in one call: it holds no more than there is room for. Sets *ret_count. 0 or -errno.
 */
static int read_map(int fd, void *keys, void *values, uint32_t room, uint32_t *ret_count)
{
	uint32_t next;

	*ret_count = room;
	if (!keys || !values)
		return -ENOMEM;
	/* ENOENT: the end of the map. */
	if (bpf_map_lookup_batch(fd, NULL, &next, keys, values, ret_count, NULL) < 0 &&
	    errno != ENOENT)
		return -errno;
	return 0;
}

static int read_sums(const struct pinned_maps *pins, struct block_reading *read)
{
	read->keys = calloc(BLOCK_SUMS_MAX, sizeof(*read->keys));
	read->sums = calloc(BLOCK_SUMS_MAX, sizeof(*read->sums));
	return read_map(pins->signal_fd[PINNED_MAP_block_sums], read->keys, read->sums,
			BLOCK_SUMS_MAX, &read->n_sums);
}

static int read_open(const struct pinned_maps *pins, struct block_reading *read)
{
	_cleanup_free_ uint64_t *addresses = calloc(BLOCK_OPEN_MAX, sizeof(*addresses));

	read->open = calloc(BLOCK_OPEN_MAX, sizeof(*read->open));
	return read_map(pins->signal_fd[PINNED_MAP_block_open], addresses, read->open,
			BLOCK_OPEN_MAX, &read->n_open);
}

int block_maps_read(const struct pinned_maps *pins, uint32_t slot, struct block_reading *ret_read)
{
	struct block_reading read = { .at_ns = clock_mono_ns() };
	int r = read_sums(pins, &read);

	if (r == 0)
		r = read_open(pins, &read);
	if (r == 0)
		r = pinned_maps_signal(pins, PINNED_MAP_block_losses, slot,
				       sizeof(read.losses) / sizeof(uint64_t),
				       (uint64_t *)&read.losses);
	if (r < 0)
		block_maps_forget(&read);
	else
		*ret_read = read;
	return r;
}

void block_maps_forget(struct block_reading *read)
{
	free(read->keys);
	free(read->sums);
	free(read->open);
	*read = (struct block_reading){};
}

/* Deletes what one reading finds of a map. */
static void empty_map(int fd, size_t key_bytes, size_t value_bytes, uint32_t room)
{
	_cleanup_free_ void *keys = calloc(room, key_bytes), *values = calloc(room, value_bytes);
	uint32_t count;

	if (read_map(fd, keys, values, room, &count) == 0 && count)
		bpf_map_delete_batch(fd, keys, &count, NULL);
}

void block_maps_empty(const struct pinned_maps *pins)
{
	empty_map(pins->signal_fd[PINNED_MAP_block_sums], sizeof(struct block_key),
		  sizeof(struct block_sums), BLOCK_SUMS_MAX);
	empty_map(pins->signal_fd[PINNED_MAP_block_open], sizeof(uint64_t),
		  sizeof(struct block_request), BLOCK_OPEN_MAX);
}
