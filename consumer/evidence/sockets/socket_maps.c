/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/sockets/socket_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

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

/* Reads the map in one call: it holds no more than there is room for. 0 or -errno. */
static int read_sums(const struct pinned_maps *pins, struct socket_reading *read)
{
	uint32_t next;

	read->keys = calloc(SOCKET_SUMS_MAX, sizeof(*read->keys));
	read->sums = calloc(SOCKET_SUMS_MAX, sizeof(*read->sums));
	if (!read->keys || !read->sums)
		return -ENOMEM;
	read->count = SOCKET_SUMS_MAX;
	/* ENOENT: the end of the map. */
	if (bpf_map_lookup_batch(pins->signal_fd[PINNED_MAP_socket_sums], NULL, &next, read->keys,
				 read->sums, &read->count, NULL) < 0 &&
	    errno != ENOENT)
		return -errno;
	give_back(read);
	return 0;
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
