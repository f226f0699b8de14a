/* SPDX-License-Identifier: BSD-2-Clause */
/* socket_view.h: the results of one session's socket snapshots, summed up by peer. Pure. */
#ifndef TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_VIEW_H
#define TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/tools/idmap.h"

#define SOCKET_VIEW_PEERS 1024 /* distinguished peers; the others are one sum */
#define SOCKET_STATES	  13   /* include/net/tcp_states.h */

enum socket_level {
#define SOCKET_LEVEL(id, json) SOCKET_LEVEL_##id,
#include "consumer/evidence/sockets/socket_levels.def"
	SOCKET_LEVELS_,
};

enum socket_sign {
#define SOCKET_SIGN(id, json) SOCKET_SIGN_##id,
#include "consumer/evidence/sockets/socket_levels.def"
	SOCKET_SIGNS_,
};

/* The socket with the most waiting data among the sockets of its peer. */
struct socket_worst {
	uint64_t waits; /* bytes, or connections of a listener */
	uint32_t tgid;
	uint16_t local_port, peer_port;
	char comm[COMM_BYTES];
};

/* All sockets of one peer, or listeners at one address. */
struct socket_peer {
	struct socket_key key; /* slot 0 */
	/* Values in snapshots: the session's first, its last, and the largest. */
	uint64_t first[SOCKET_LEVELS_], last[SOCKET_LEVELS_], most[SOCKET_LEVELS_];
	uint64_t now[SOCKET_LEVELS_]; /* in the running snapshot, as the next two lines */
	uint32_t now_states[SOCKET_STATES];
	uint32_t now_signs, now_foreign; /* bits by enum socket_sign; sockets */
	uint32_t states[SOCKET_STATES];	 /* in the last snapshot */
	uint32_t foreign;		 /* in the last snapshot: sockets made elsewhere */
	uint32_t signs[SOCKET_SIGNS_];	 /* number of snapshots with the sign */
	uint32_t queue_max;		 /* of a listener, the smallest */
	uint32_t unread_ms, stuck_ms;	 /* longest time that bytes were unread, or stuck */
	uint64_t srtt[QUEUE_BUCKETS];	 /* one value for each connection and snapshot */
	uint64_t srtt_sum_ns, srtt_most_ns;
	uint64_t rtt_least_ns; /* 0: unknown */
	struct socket_worst worst;
	/* Counted by the kernel side between the readings (socket_peers.c). */
	uint64_t counts[SOCKET_COUNTS_];
	uint64_t connect[QUEUE_BUCKETS], life[QUEUE_BUCKETS];
};

/* Release with socket_view_done. */
struct socket_view {
	struct socket_peer *peers; /* owned, with room for SOCKET_VIEW_PEERS */
	size_t count;
	struct idmap by_hash;	 /* hash of the key -> struct socket_peer */
	struct socket_peer rest; /* of the peers that did not fit */
	uint32_t looks;		 /* completed snapshots */
	uint64_t sockets_listed; /* sockets, counted once in each snapshot */
	uint64_t told_now;	 /* in the running snapshot */
	uint64_t told_before;	 /* in the last complete snapshot */
	uint64_t cut;		 /* sockets missing from incomplete snapshots, at least */
};

/* Returns 0 or -ENOMEM. Release with socket_view_done. */
int socket_view_init(struct socket_view *v);
void socket_view_done(struct socket_view *v);

/* Adds a socket of the running snapshot. The record must be sane (socket_passes_is_sane). */
void socket_view_add(struct socket_view *v, const struct socket_record *record);

/* Ends a snapshot. A cut one counts only as a loss. */
void socket_view_end_look(struct socket_view *v, bool cut);

/*
 * Returns the peer of the key; ignores the key's slot. Adds the peer if it is missing; returns
 * `rest` if there is no room.
 */
struct socket_peer *socket_view_peer(struct socket_view *v, const struct socket_key *key);

#endif
