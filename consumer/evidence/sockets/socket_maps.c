/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/sockets/socket_maps.h"

#include <stdlib.h>

#include "consumer/kernel/map_batch.h"
#include "consumer/kernel/pinned_maps.h"

int socket_maps_read(const struct pinned_maps *pins, uint32_t slot, struct socket_reading *ret_read)
{
	static const struct map_sizes sizes = { sizeof(struct socket_key),
						sizeof(struct socket_sums), SOCKET_SUMS_MAX };
	struct socket_reading read = {};
	int r = map_batch_read(pins->signal_fd[PINNED_MAP_socket_sums], &sizes, &read.keys,
			       &read.sums, &read.count);

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
