/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket_view.h: what the looks of one session found of its sockets, summed up by peer. Pure.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_VIEW_H
#define TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/tools/idmap.h"

#define SOCKET_VIEW_PEERS 1024 /* that are distinguished; the rest is one sum */
#define SOCKET_STATES	  13   /* include/net/tcp_states.h */

enum socket_level {
#define SOCKET_LEVEL(id, json) SOCKET_LEVEL_##id,
#define SOCKET_SIGN(id, json)
#include "consumer/evidence/sockets/socket_levels.def"
#undef SOCKET_LEVEL
#undef SOCKET_SIGN
	SOCKET_LEVELS_,
};

enum socket_sign {
#define SOCKET_LEVEL(id, json)
#define SOCKET_SIGN(id, json) SOCKET_SIGN_##id,
#include "consumer/evidence/sockets/socket_levels.def"
#undef SOCKET_LEVEL
#undef SOCKET_SIGN
	SOCKET_SIGNS_,
};

/* One socket, of which more waits than of the others of its peer. */
struct socket_worst {
	uint64_t waits; /* bytes, or connections of a listener */
	uint32_t tgid;
	uint16_t local_port, peer_port;
	char comm[COMM_BYTES];
};

/* All sockets of one peer, or listeners at one address. */
struct socket_peer {
	struct socket_key key; /* slot 0 */
	/* Of looks: the first of the session, the last, and the one that found most. */
	uint64_t first[SOCKET_LEVELS_], last[SOCKET_LEVELS_], most[SOCKET_LEVELS_];
	uint64_t now[SOCKET_LEVELS_]; /* of the look that runs, as the next two */
	uint32_t now_states[SOCKET_STATES];
	uint32_t now_signs, now_foreign; /* bits by enum socket_sign; sockets */
	uint32_t states[SOCKET_STATES];	 /* of the last look */
	uint32_t foreign;		 /* of it: sockets that were made elsewhere */
	uint32_t signs[SOCKET_SIGNS_];	 /* looks that found them */
	uint32_t queue_max;		 /* of a listener, the least */
	uint32_t unread_ms, stuck_ms;	 /* the longest that bytes were unread, or stuck */
	uint64_t srtt[QUEUE_BUCKETS];	 /* of each connection at each look */
	uint64_t srtt_sum_ns, srtt_most_ns;
	uint64_t rtt_least_ns; /* 0: it is not known */
	struct socket_worst worst;
	/* Counted by the kernel side between the readings (socket_peers.c). */
	uint64_t counts[SOCKET_COUNTS_];
	uint64_t connect[QUEUE_BUCKETS], life[QUEUE_BUCKETS];
};

/* Release with socket_view_done. */
struct socket_view {
	struct socket_peer *peers; /* owned; SOCKET_VIEW_PEERS have room */
	size_t count;
	struct idmap by_hash;	 /* hash of the key -> struct socket_peer */
	struct socket_peer rest; /* of those without room */
	uint32_t looks;		 /* that came to their end */
	uint64_t told;		 /* sockets, each at each look */
	uint64_t told_now;	 /* of the look that runs */
	uint64_t told_before;	 /* of the last one */
	uint64_t cut;		 /* sockets that cut looks did not report, at least */
};

/* 0 or -ENOMEM. */
int socket_view_init(struct socket_view *v);
void socket_view_done(struct socket_view *v);

/* Takes a socket that a look finds (socket_passes_is_sane). */
void socket_view_add(struct socket_view *v, const struct socket_record *record);

/* Ends a look. One that was cut counts for nothing but the loss. */
void socket_view_end_look(struct socket_view *v, bool cut);

/* Returns the element of the key, made if need be; its slot does not count; that of the rest. */
struct socket_peer *socket_view_peer(struct socket_view *v, const struct socket_key *key);

#endif
