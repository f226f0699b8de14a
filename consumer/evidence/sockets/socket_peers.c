/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/sockets/socket_peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signals/counter_keys.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* ---- counts: the difference of two readings */

static bool is_sane(const struct socket_key *key)
{
	return key->way < SOCKET_WAYS_;
}

static void add_growth(struct socket_peer *to, const struct socket_sums *before,
		       const struct socket_sums *now)
{
	for (int i = 0; i < SOCKET_COUNTS_; i++)
		to->counts[i] += counter_keys_growth(before->counts[i], now->counts[i]);
	for (int i = 0; i < QUEUE_BUCKETS; i++) {
		to->connect[i] += counter_keys_growth(before->connect[i], now->connect[i]);
		to->life[i] += counter_keys_growth(before->life[i], now->life[i]);
	}
}

static bool has_counts(const struct socket_sums *before, const struct socket_sums *now)
{
	for (int i = 0; i < SOCKET_COUNTS_; i++)
		if (before->counts[i] != now->counts[i])
			return true;
	return false;
}

/* Adds to each peer of the view its counts. 0 or -ENOMEM. */
static int add_counted(struct socket_view *view, const struct socket_reading *before,
		       const struct socket_reading *now, const struct slot_owner *owner)
{
	static const struct socket_sums none;
	_cleanup_(counter_keys_done) struct counter_keys known = {};
	int r = counter_keys_sort(before->keys, before->count, sizeof(*before->keys), &known);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < now->count; i++) {
		const struct socket_key *key = &now->keys[i];
		const struct socket_sums *old =
			counter_keys_value(&known, key, before->sums, sizeof(*before->sums), &none);

		if (is_sane(key) && owner->is_own(owner->context, key->slot) &&
		    has_counts(old, &now->sums[i]))
			add_growth(socket_view_peer(view, key), old, &now->sums[i]);
	}
	for (int i = 0; i < SOCKET_COUNTS_; i++)
		view->rest.counts[i] +=
			counter_keys_growth(before->losses.rest[i], now->losses.rest[i]);
	return 0;
}

/* ---- peers with a line of their own */

static uint64_t sum_of(const uint64_t *numbers, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += numbers[i];
	return sum;
}

static uint64_t signs_of(const struct socket_peer *p)
{
	uint64_t signs = 0;

	for (int i = 0; i < SOCKET_SIGNS_; i++)
		signs += p->signs[i];
	return signs;
}

static uint64_t failures_of(const struct socket_peer *p)
{
	return p->counts[SOCKET_REFUSED] + p->counts[SOCKET_TIMED_OUT] + p->counts[SOCKET_FAILED] +
	       p->counts[SOCKET_GIVEN_UP] + p->counts[SOCKET_LOST] + p->counts[SOCKET_DROPS];
}

static uint64_t waiting_of(const struct socket_peer *p)
{
	return p->most[SOCKET_LEVEL_UNREAD] + p->most[SOCKET_LEVEL_UNSENT] +
	       p->most[SOCKET_LEVEL_UNACKED];
}

static uint64_t moved_of(const struct socket_peer *p)
{
	return p->counts[SOCKET_BYTES_IN] + p->counts[SOCKET_BYTES_OUT];
}

static uint64_t size_of(const struct socket_peer *p)
{
	return p->most[SOCKET_LEVEL_CONNECTIONS] + p->counts[SOCKET_BEGUN];
}

/* Waiting data comes first, then failures, then lost segments, then the most connections. */
static int compare_peers(const void *a, const void *b)
{
	static uint64_t (*const orders[])(const struct socket_peer *) = {
		signs_of, failures_of, waiting_of, moved_of, size_of,
	};
	const struct socket_peer *x = a, *y = b;

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (orders[i](x) != orders[i](y))
			return orders[i](x) < orders[i](y) ? 1 : -1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static void add_numbers(uint64_t *to, const uint64_t *more, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] += more[i];
}

/* Adds up two peers. The maximum of a snapshot becomes the sum of both, which is an upper bound. */
static void add_peer(struct socket_peer *to, const struct socket_peer *more)
{
	add_numbers(to->first, more->first, SOCKET_LEVELS_);
	add_numbers(to->last, more->last, SOCKET_LEVELS_);
	add_numbers(to->most, more->most, SOCKET_LEVELS_);
	add_numbers(to->srtt, more->srtt, QUEUE_BUCKETS);
	add_numbers(to->counts, more->counts, SOCKET_COUNTS_);
	add_numbers(to->connect, more->connect, QUEUE_BUCKETS);
	add_numbers(to->life, more->life, QUEUE_BUCKETS);
	for (int i = 0; i < SOCKET_STATES; i++)
		to->states[i] += more->states[i];
	for (int i = 0; i < SOCKET_SIGNS_; i++)
		to->signs[i] = MAX(to->signs[i], more->signs[i]);
	to->srtt_sum_ns += more->srtt_sum_ns;
	to->foreign += more->foreign;
	to->unread_ms = MAX(to->unread_ms, more->unread_ms);
	to->stuck_ms = MAX(to->stuck_ms, more->stuck_ms);
	to->srtt_most_ns = MAX(to->srtt_most_ns, more->srtt_most_ns);
	if (!to->rtt_least_ns || (more->rtt_least_ns && more->rtt_least_ns < to->rtt_least_ns))
		to->rtt_least_ns = more->rtt_least_ns;
}

/* Whether anything was found or counted. */
static bool is_anything(const struct socket_peer *p)
{
	return p->most[SOCKET_LEVEL_CONNECTIONS] || sum_of(p->counts, SOCKET_COUNTS_);
}

static void cut_peers(struct socket_view *view, struct socket_peers *all)
{
	array_sort(view->peers, view->count, sizeof(*view->peers), compare_peers);
	for (size_t i = 0; i < view->count; i++) {
		add_peer(&all->all, &view->peers[i]);
		if (i < SOCKET_PEERS_TOLD)
			continue;
		add_peer(&all->rest, &view->peers[i]);
		all->others++;
	}
	add_peer(&all->all, &view->rest);
	add_peer(&all->rest, &view->rest);
	all->others += is_anything(&view->rest);
	all->count = MIN(view->count, (size_t)SOCKET_PEERS_TOLD);
	all->items = TAKE_PTR(view->peers);
	view->count = 0;
}

/* A socket is one attempt per socket snapshot. */
static void close_ledger(const struct socket_view *view, const struct slot_sockets *before,
			 const struct slot_sockets *now, struct ledger *l)
{
	static const enum socket_loss losses[] = { SOCKET_LOST_FILES, SOCKET_LOST_SOCKETS,
						   SOCKET_LOST_OPEN };
	uint64_t lost = 0;

	l->emitted = view->sockets_listed;
	l->lost[DROP_LOOK_CUT] = view->cut;
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
		lost += counter_keys_growth(before->lost[losses[i]], now->lost[losses[i]]);
	ledger_lose(
		l, DROP_SOCKETS_FULL, lost,
		counter_keys_growth(before->lost[SOCKET_LOST_SHORT], now->lost[SOCKET_LOST_SHORT]));
	l->attempted = l->emitted + ledger_lost(l);
}

int socket_peers_make(struct socket_view *view, const struct socket_reading *before,
		      const struct socket_reading *now, const struct slot_owner *owner,
		      struct socket_peers *ret_peers)
{
	struct socket_peers all = { .looks = view->looks, .counted = owner };
	int r = owner ? add_counted(view, before, now, owner) : 0;

	if (r < 0)
		return r;
	cut_peers(view, &all);
	all.unlisted = counter_keys_growth(before->losses.lost[SOCKET_LOST_PEERS],
					   now->losses.lost[SOCKET_LOST_PEERS]);
	close_ledger(view, &before->losses, &now->losses, &all.ledger);
	*ret_peers = all;
	return 0;
}

void socket_peers_done(struct socket_peers *peers)
{
	free(TAKE_PTR(peers->items));
	peers->count = 0;
}

const struct socket_peer *socket_peers_find(const struct socket_peers *peers, enum socket_way way,
					    uint8_t family, const uint8_t address[16],
					    uint16_t port)
{
	struct socket_key key = { .port = port, .family = family, .way = (uint8_t)way };

	memcpy(key.address, address, sizeof(key.address));
	for (size_t i = 0; i < peers->count; i++)
		if (!memcmp(&peers->items[i].key, &key, sizeof(key)))
			return &peers->items[i];
	return NULL;
}
