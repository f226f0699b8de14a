/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket_peers.h: the peers of a session's cgroup, and its listeners: what looks found, and by how
 * much the kernel side's counts grew. Pure.
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

#define SOCKET_PEERS_TOLD 24 /* peers and listeners with a line; the rest is one sum */

struct socket_peers {
	struct socket_peer *items; /* owned; those first that explain most of a stall */
	size_t count;		   /* at most SOCKET_PEERS_TOLD */
	size_t others;		   /* so many more, at least: those that found no room are one */
	struct socket_peer rest;   /* their sum */
	struct socket_peer all;	   /* the sum of all */
	uint32_t looks;
	uint64_t unlisted; /* times that something counted had no room for its peer */
	bool counted;	   /* `counts` and the histograms are known */
	struct ledger ledger;
};

/* Tells whether a slot's watch is the session's, or within it (slot_nest_has). */
struct socket_owner {
	bool (*is_own)(const void *context, uint32_t slot);
	const void *context;
};

/*
 * Makes *ret_peers of the view, which it empties, and of the counts from `before` to `now`. `owner`
 * NULL: only counts without room are taken, since the rest is of more than the session. 0 or
 * -ENOMEM. Release with socket_peers_done.
 */
int socket_peers_make(struct socket_view *view, const struct socket_reading *before,
		      const struct socket_reading *now, const struct socket_owner *owner,
		      struct socket_peers *ret_peers);
void socket_peers_done(struct socket_peers *peers);

/* Returns the element of a peer that was connected to, or of a listener; NULL: it has no line. */
const struct socket_peer *socket_peers_find(const struct socket_peers *peers, enum socket_way way,
					    uint8_t family, const uint8_t address[16],
					    uint16_t port);

/* Returns those of a session's signals; the session owns them. NULL: it has none. */
static inline const struct socket_peers *
socket_peers_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_SOCKET);
}

#endif
