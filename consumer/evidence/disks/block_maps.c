/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/disks/block_maps.h"

#include <stdlib.h>

#include "consumer/kernel/map_batch.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

static const struct map_sizes sums_sizes = { sizeof(struct block_key), sizeof(struct block_sums),
					     BLOCK_SUMS_MAX };
static const struct map_sizes open_sizes = { sizeof(uint64_t), sizeof(struct block_request),
					     BLOCK_OPEN_MAX };

int block_maps_read(const struct pinned_maps *pins, uint32_t slot, struct block_reading *ret_read)
{
	struct block_reading read = { .at_ns = clock_mono_ns() };
	_cleanup_free_ uint64_t *addresses = NULL;
	int r = map_batch_read(pins->signal_fd[PINNED_MAP_block_sums], &sums_sizes, &read.keys,
			       &read.sums, &read.n_sums);

	if (r == 0)
		r = map_batch_read(pins->signal_fd[PINNED_MAP_block_open], &open_sizes, &addresses,
				   &read.open, &read.n_open);
	if (r == 0)
		r = pinned_maps_losses(pins, PINNED_MAP_block_losses, slot,
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

void block_maps_empty(const struct pinned_maps *pins)
{
	map_batch_empty(pins->signal_fd[PINNED_MAP_block_sums], &sums_sizes);
	table_share_reset(pins, TABLE_BLOCK_SUMS);
	map_batch_empty(pins->signal_fd[PINNED_MAP_block_open], &open_sizes);
}
