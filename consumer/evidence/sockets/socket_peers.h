/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket_peers.h: the peers of a session's cgroup, and its listeners: the results of socket
 * snapshots, and the growth of the kernel side's counts. Pure.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_PEERS_H
#define TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/sockets/socket_maps.h"
#include "consumer/evidence/sockets/socket_view.h"
#include "consumer/signals/ledger.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/slot_nest.h"

#define SOCKET_PEERS_TOLD 24 /* peers and listeners with a line; the others are one sum */

struct socket_peers {
	struct socket_peer *items; /* owned; peers that explain most of a stall first */
	size_t count;		   /* at most SOCKET_PEERS_TOLD */
	size_t others;		   /* at least this many more; all that did not fit count as one */
	struct socket_peer rest;   /* sum of the others */
	struct socket_peer all;	   /* the sum of all */
	uint32_t looks;
	uint64_t unlisted; /* number of times that a count had no room for its peer */
	bool counted;	   /* `counts` and the histograms are known */
	struct ledger ledger;
};

/*
 * Sets *ret_peers from the view, which it empties, and from the counts from `before` to `now`. If
 * `owner` is NULL, uses only the counts of losses, because the other counts are of more than the
 * session. Returns 0 or -ENOMEM. Release with socket_peers_done.
 */
int socket_peers_make(struct socket_view *view, const struct socket_reading *before,
		      const struct socket_reading *now, const struct slot_owner *owner,
		      struct socket_peers *ret_peers);
void socket_peers_done(struct socket_peers *peers);

/*
 * Returns the element of a peer that the session connected to, or of a listener; NULL if it has no
 * line.
 */
const struct socket_peer *socket_peers_find(const struct socket_peers *peers, enum socket_way way,
					    uint8_t family, const uint8_t address[16],
					    uint16_t port);

/* Returns the socket peers of a session's signals, which the session owns; NULL if it has none. */
static inline const struct socket_peers *
socket_peers_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_SOCKET);
}

#endif
