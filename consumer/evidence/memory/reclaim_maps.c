/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/memory/reclaim_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "consumer/kernel/map_batch.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

static const struct map_sizes sums_sizes = { sizeof(struct reclaim_key),
					     sizeof(struct reclaim_sums), RECLAIM_SUMS_MAX };
static const struct map_sizes open_sizes = { sizeof(struct reclaim_open_key),
					     sizeof(struct reclaim_open), RECLAIM_OPEN_MAX };

/* Drops the open events that have ended since they were read: the sums may already include them. */
static void drop_ended(const struct pinned_maps *pins, struct reclaim_reading *read)
{
	int fd = pins->signal_fd[PINNED_MAP_reclaim_open];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < read->n_open; i++) {
		struct reclaim_open now;

		if (bpf_map_lookup_elem(fd, &read->open_keys[i], &now) < 0 ||
		    now.since_ns != read->open[i].since_ns)
			continue;
		read->open_keys[kept] = read->open_keys[i];
		read->open[kept++] = read->open[i];
	}
	read->n_open = kept;
}

int reclaim_maps_read(const struct pinned_maps *pins, uint32_t slot,
		      struct reclaim_reading *ret_read)
{
	struct reclaim_reading read = { .at_ns = clock_mono_ns() };
	int r = map_batch_read(pins->signal_fd[PINNED_MAP_reclaim_open], &open_sizes,
			       &read.open_keys, &read.open, &read.n_open);

	if (r == 0)
		r = map_batch_read(pins->signal_fd[PINNED_MAP_reclaim_sums], &sums_sizes,
				   &read.keys, &read.sums, &read.n_sums);
	if (r == 0)
		r = pinned_maps_losses(pins, PINNED_MAP_reclaim_losses, slot,
				       sizeof(read.losses) / sizeof(uint64_t),
				       (uint64_t *)&read.losses);
	if (r < 0) {
		reclaim_maps_forget(&read);
		return r;
	}
	drop_ended(pins, &read);
	*ret_read = read;
	return 0;
}

void reclaim_maps_forget(struct reclaim_reading *read)
{
	free(read->keys);
	free(read->sums);
	free(read->open_keys);
	free(read->open);
	*read = (struct reclaim_reading){};
}

void reclaim_maps_empty(const struct pinned_maps *pins)
{
	map_batch_empty(pins->signal_fd[PINNED_MAP_reclaim_sums], &sums_sizes);
	table_share_reset(pins, TABLE_RECLAIM_SUMS);
	map_batch_empty(pins->signal_fd[PINNED_MAP_reclaim_open], &open_sizes);
}
