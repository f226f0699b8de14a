/* SPDX-License-Identifier: BSD-2-Clause */
/* socket_maps.h: a reading of the kernel side's counts of connections. Main thread only. */
#ifndef TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_MAPS_H
#define TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_MAPS_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/* All zeros: nothing was counted. Release with socket_maps_forget. */
struct socket_reading {
	struct socket_key *keys;  /* owned */
	struct socket_sums *sums; /* owned */
	uint32_t count;
	struct slot_sockets losses; /* of the requested slot */
};

/*
 * Reads the counts, and the losses of `slot`. Returns 0 or -errno. Release with socket_maps_forget.
 */
int socket_maps_read(const struct pinned_maps *pins, uint32_t slot,
		     struct socket_reading *ret_read);
void socket_maps_forget(struct socket_reading *read);

#endif
