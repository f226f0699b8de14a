/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/sockets/socket_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signals/time_histogram.h"
#include "shared/findings/socket_limits.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

int socket_view_init(struct socket_view *v)
{
	*v = (struct socket_view){ .peers = calloc(SOCKET_VIEW_PEERS, sizeof(*v->peers)) };
	idmap_init(&v->by_hash, SOCKET_VIEW_PEERS);
	return v->peers ? 0 : -ENOMEM;
}

void socket_view_done(struct socket_view *v)
{
	idmap_done(&v->by_hash);
	free(TAKE_PTR(v->peers));
	v->count = 0;
}

static uint64_t hash_of(const struct socket_key *key)
{
	const unsigned char *bytes = (const unsigned char *)key;
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
	return hash | 1;
}

struct socket_peer *socket_view_peer(struct socket_view *v, const struct socket_key *key)
{
	struct socket_key wanted = *key;
	struct socket_peer *peer;
	uint64_t hash;

	wanted.slot = 0;
	hash = hash_of(&wanted);
	peer = idmap_get(&v->by_hash, hash);
	/* A key with the hash of another key counts for the rest. */
	if (peer)
		return memcmp(&peer->key, &wanted, sizeof(wanted)) ? &v->rest : peer;
	if (v->count == SOCKET_VIEW_PEERS || idmap_put(&v->by_hash, hash, &v->peers[v->count]) < 0)
		return &v->rest;
	peer = &v->peers[v->count++];
	peer->key = wanted;
	return peer;
}

static struct socket_key key_of(const struct socket_record *r)
{
	struct socket_key key = {
		.port = r->way == SOCKET_OPENED ? r->peer_port : r->local_port,
		.family = r->family,
		.way = r->way,
	};

	memcpy(key.address, r->way == SOCKET_LISTENS ? r->local : r->peer, sizeof(key.address));
	return key;
}

/* Received bytes wait for the program, and not just until its next read. */
static bool is_unread(const struct socket_record *r)
{
	return r->unread && (r->flags & SOCKET_OWN_FULL || r->in_ms >= SOCKET_LIMIT_LATE_MS);
}

/* Bytes that the program wrote wait for space at the peer, without progress. */
static bool is_stuck(const struct socket_record *r)
{
	return r->unsent && r->flags & SOCKET_PEER_FULL && r->out_ms >= SOCKET_LIMIT_LATE_MS;
}

/* Bytes are on their way, and no acknowledgement arrived for this long. */
static bool is_unacked(const struct socket_record *r)
{
	return r->unacked && r->out_ms >= SOCKET_LIMIT_LATE_MS;
}

/* More connections wait than the listener asked for: the next one is dropped. */
static bool is_queue_full(const struct socket_record *r)
{
	return r->way == SOCKET_LISTENS && r->queue > r->queue_max;
}

static void note_worst(struct socket_peer *p, const struct socket_record *r)
{
	uint64_t waits =
		r->way == SOCKET_LISTENS ? r->queue : (uint64_t)r->unread + r->unsent + r->unacked;

	if (p->worst.tgid && waits <= p->worst.waits)
		return;
	p->worst = (struct socket_worst){
		.waits = waits,
		.tgid = r->tgid,
		.local_port = r->local_port,
		.peer_port = r->peer_port,
	};
	memcpy(p->worst.comm, r->comm, sizeof(p->worst.comm));
}

/* Returns the shorter of two times; 0 means no time. */
static uint64_t shorter_ns(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static void add_round_trips(struct socket_peer *p, const struct socket_record *r)
{
	uint64_t ns = (uint64_t)r->srtt_us * NSEC_PER_USEC;

	if (!ns)
		return;
	p->srtt[time_histogram_element(ns)]++;
	p->srtt_sum_ns += ns;
	p->srtt_most_ns = MAX(p->srtt_most_ns, ns);
	if (r->rtt_least_us != UINT32_MAX)
		p->rtt_least_ns =
			shorter_ns(p->rtt_least_ns, (uint64_t)r->rtt_least_us * NSEC_PER_USEC);
}

void socket_view_add(struct socket_view *v, const struct socket_record *r)
{
	const struct socket_key key = key_of(r);
	struct socket_peer *p = socket_view_peer(v, &key);

	v->told_now++;
	p->now[SOCKET_LEVEL_CONNECTIONS]++;
	p->now[SOCKET_LEVEL_UNREAD] += r->unread;
	p->now[SOCKET_LEVEL_UNSENT] += r->unsent;
	p->now[SOCKET_LEVEL_UNACKED] += r->unacked;
	p->now[SOCKET_LEVEL_QUEUE] += r->queue;
	p->now[SOCKET_LEVEL_SYN_QUEUE] += r->syn_queue;
	p->now_states[r->state]++;
	p->now_foreign += r->flags & SOCKET_FOREIGN ? 1 : 0;
	if (is_unread(r)) {
		p->now_signs |= 1u << SOCKET_SIGN_UNREAD;
		p->unread_ms = MAX(p->unread_ms, r->in_ms);
	}
	if (is_stuck(r)) {
		p->now_signs |= 1u << SOCKET_SIGN_STUCK;
		p->stuck_ms = MAX(p->stuck_ms, r->out_ms);
	}
	if (is_unacked(r))
		p->now_signs |= 1u << SOCKET_SIGN_UNACKED;
	if (is_queue_full(r))
		p->now_signs |= 1u << SOCKET_SIGN_QUEUE_FULL;
	if (r->way == SOCKET_LISTENS)
		p->queue_max = p->queue_max ? MIN(p->queue_max, r->queue_max) : r->queue_max;
	add_round_trips(p, r);
	note_worst(p, r);
}

/*
 * Whether the queue of listeners has connections, and no fewer than in the snapshot before: one
 * that is emptied, also a busy one, becomes shorter at times.
 */
static bool is_queued(const struct socket_peer *p)
{
	uint64_t now = p->now[SOCKET_LEVEL_QUEUE];

	return now && now >= p->last[SOCKET_LEVEL_QUEUE];
}

static void fold_look(struct socket_peer *p, bool first, bool cut)
{
	if (is_queued(p))
		p->now_signs |= 1u << SOCKET_SIGN_QUEUED;
	for (int i = 0; i < SOCKET_LEVELS_ && !cut; i++) {
		if (first)
			p->first[i] = p->now[i];
		p->last[i] = p->now[i];
		p->most[i] = MAX(p->most[i], p->now[i]);
	}
	for (int i = 0; i < SOCKET_SIGNS_ && !cut; i++)
		p->signs[i] += p->now_signs >> i & 1;
	if (!cut) {
		memcpy(p->states, p->now_states, sizeof(p->states));
		p->foreign = p->now_foreign;
	}
	memset(p->now, 0, sizeof(p->now));
	memset(p->now_states, 0, sizeof(p->now_states));
	p->now_signs = p->now_foreign = 0;
}

void socket_view_end_look(struct socket_view *v, bool cut)
{
	for (size_t i = 0; i < v->count; i++)
		fold_look(&v->peers[i], !v->looks, cut);
	fold_look(&v->rest, !v->looks, cut);
	v->sockets_listed += v->told_now;
	if (cut) {
		v->cut += MAX(v->told_before - MIN(v->told_before, v->told_now), (uint64_t)1);
	} else {
		v->told_before = v->told_now;
		v->looks++;
	}
	v->told_now = 0;
}
