/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/sockets/socket_maps.h"

#include <stdlib.h>

#include "consumer/kernel/map_batch.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"

/* Returns unused memory: a session keeps its reading until it ends. */
static void give_back(struct socket_reading *read)
{
	size_t count = MAX(read->count, 1u);
	void *keys = reallocarray(read->keys, count, sizeof(*read->keys));
	void *sums = reallocarray(read->sums, count, sizeof(*read->sums));

	if (keys)
		read->keys = keys;
	if (sums)
		read->sums = sums;
}

static int read_sums(const struct pinned_maps *pins, struct socket_reading *read)
{
	int r;

	read->keys = calloc(SOCKET_SUMS_MAX, sizeof(*read->keys));
	read->sums = calloc(SOCKET_SUMS_MAX, sizeof(*read->sums));
	r = map_batch_read(pins->signal_fd[PINNED_MAP_socket_sums], read->keys, read->sums,
			   SOCKET_SUMS_MAX, &read->count);
	if (r == 0)
		give_back(read);
	return r;
}

int socket_maps_read(const struct pinned_maps *pins, uint32_t slot, struct socket_reading *ret_read)
{
	struct socket_reading read = {};
	int r = read_sums(pins, &read);

	if (r == 0)
		r = pinned_maps_signal(pins, PINNED_MAP_socket_losses, slot,
				       sizeof(read.losses) / sizeof(uint64_t),
				       (uint64_t *)&read.losses);
	if (r < 0)
		socket_maps_forget(&read);
	else
		*ret_read = read;
	return r;
}

void socket_maps_forget(struct socket_reading *read)
{
	free(read->keys);
	free(read->sums);
	*read = (struct socket_reading){};
}
