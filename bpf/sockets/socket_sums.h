/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_sums.h: the counts of TCP sockets by watch and peer, and the set of followed sockets. Each
 * followed socket has an element in `socket_open` with its counts when they were last added to the
 * sums. So each snapshot, and the end of the socket, adds the difference, for any number of
 * sessions. The key of this map is the address of the socket, which must not leave the kernel: the
 * map is private, and the programs empty it.
 */
#ifndef TROCAR_BPF_SOCKETS_SOCKET_SUMS_H
#define TROCAR_BPF_SOCKETS_SOCKET_SUMS_H

#include "bpf/maps/maps.h"
#include "bpf/maps/table.h"
#include "bpf/maps/time_bucket.h"
#include "bpf/sockets/socket_read.h"
#include "bpf/watch/watch_lookup.h"

/* A followed socket. */
struct socket_open {
	__u64 asked_ns; /* when connect(2) began; 0: unknown */
	__u64 begun_ns; /* when it was established; 0: before the first snapshot */
	__u64 reading;	/* session_id of the pass that reported it last */
	struct socket_counted counted;
	__u32 slot; /* of the nearest watch when it was first seen */
	__u8 way;   /* enum socket_way */
	__u8 pad[3];
};

/* The first two maps are empty and take no memory outside sessions. */
__weak MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, socket_open, __u64, struct socket_open, SOCKET_OPEN_MAX);
__weak MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, socket_sums, struct socket_key, struct socket_sums,
		 SOCKET_SUMS_MAX);

__weak MAP(PERCPU_ARRAY, socket_losses, __u32, struct slot_sockets, SLOTS_DEFAULT);

static const struct socket_sums no_socket_sums;

/* Returns the element of the key, and creates it if it is missing. NULL if there is no space. */
static __always_inline struct socket_sums *socket_sums_of(const struct socket_key *key)
{
	int error;

	return table_get(&socket_sums, TABLE_SOCKET_SUMS, key->slot, key, &no_socket_sums, &error);
}

/*
 * Adds `n` to element `what` of the losses, or of the rest, in the watch of slot `index` and in the
 * watches around it.
 */
static __always_inline int socket_add_loss(__u32 index, __u32 what, __u64 n, bool rest)
{
	__u64 at = what;

	for (int i = 0; i < WATCHES_NESTED && index != NO_SLOT; i++) {
		const struct slot *slot = bpf_map_lookup_elem(&slots, &index);
		struct slot_sockets *losses = bpf_map_lookup_elem(&socket_losses, &index);

		/*
		 * A 64-bit copy: the verifier then knows the bound of the register that it
		 * compares.
		 */
		asm volatile("" : "+r"(at));
		if (!slot || !losses || at >= (rest ? SOCKET_COUNTS_ : SOCKET_LOSSES_))
			return 0;
		__sync_fetch_and_add(rest ? &losses->rest[at] : &losses->lost[at], n);
		if (!watch_lookup_outer(slot, &index))
			return 0;
	}
	return 0;
}

/*
 * Counts `n` unreported events in the watch of slot `index` and in the watches around it. This
 * function and the counting ones below are global: the verifier checks each once.
 */
__weak __noinline int socket_count_lost(__u32 index, __u32 loss, __u64 n)
{
	return socket_add_loss(index, loss, n, false);
}

/*
 * Counts a socket that was not followed because `socket_open` had no space, in the slot's watch and
 * in the watches around it.
 */
__weak __noinline int socket_count_unfollowed(__u32 index, int error)
{
	socket_count_lost(index, SOCKET_LOST_OPEN, 1);
	if (table_was_short(error))
		socket_count_lost(index, SOCKET_LOST_SHORT, 1);
	return 0;
}

/*
 * Adds `n` to a count that has no element in `socket_sums`, in the slot's watch and in the watches
 * around it.
 */
__weak __noinline int socket_add_rest(__u32 index, __u32 what, __u64 n)
{
	return socket_add_loss(index, what, n, true);
}

/* Adds `n` to one count. `sums` is NULL if the table had no space: then it adds to the rest. */
static __always_inline void socket_add(struct socket_sums *sums, __u32 slot, __u32 what, __u64 n)
{
	if (!n)
		return;
	if (sums && what < SOCKET_COUNTS_)
		__sync_fetch_and_add(&sums->counts[what], n);
	else
		socket_add_rest(slot, what, n);
}

/*
 * Stores `now` in *known and returns the growth of a 64-bit counter. Returns 0 if a newer value was
 * stored first: CPUs may read the counter out of order.
 */
static __always_inline __u64 socket_grow(__u64 *known, __u64 now)
{
	__u64 before = *known;

	if (before == now)
		return 0;
	before = __sync_lock_test_and_set(known, now);
	return (__s64)(now - before) > 0 ? now - before : 0;
}

/* As socket_grow, for a 32-bit counter, which wraps around. */
static __always_inline __u32 socket_grow32(__u32 *known, __u32 now)
{
	__u32 before = *known;

	if (before == now)
		return 0;
	before = __sync_lock_test_and_set(known, now);
	return (__s32)(now - before) > 0 ? now - before : 0;
}

/* Adds the socket's counts since the last call to the sums. */
static __always_inline void socket_settle(struct socket_open *open, const struct socket_key *key,
					  const struct socket_counted *now)
{
	struct socket_counted *known = &open->counted;
	struct socket_sums *sums = socket_sums_of(key);

	if (!sums)
		socket_count_lost(key->slot, SOCKET_LOST_PEERS, 1);
	socket_add(sums, key->slot, SOCKET_BYTES_IN, socket_grow(&known->bytes_in, now->bytes_in));
	socket_add(sums, key->slot, SOCKET_BYTES_OUT,
		   socket_grow(&known->bytes_out, now->bytes_out));
	socket_add(sums, key->slot, SOCKET_SEGMENTS,
		   socket_grow32(&known->segments, now->segments));
	socket_add(sums, key->slot, SOCKET_RETRANSMITS,
		   socket_grow32(&known->retransmits, now->retransmits));
	socket_add(sums, key->slot, SOCKET_FULL_NS,
		   (__u64)socket_grow32(&known->full_ticks, now->full_ticks) * tick_ns);
	socket_add(sums, key->slot, SOCKET_DROPS, socket_grow32(&known->drops, now->drops));
}

struct bpf_map;

static long socket_forget_open(struct bpf_map *map, const void *key, void *value, void *context)
{
	bpf_map_delete_elem(map, key);
	return 0;
}

static long socket_forget_sums(struct bpf_map *map, const void *key, void *value, void *context)
{
	__u32 slot = ((const struct socket_key *)key)->slot;

	if (!bpf_map_delete_elem(map, key))
		table_count(TABLE_SOCKET_SUMS, slot, -1);
	return 0;
}

/* Empties both maps. */
static __always_inline void socket_forget_all(void)
{
	bpf_for_each_map_elem(&socket_open, socket_forget_open, 0, 0);
	bpf_for_each_map_elem(&socket_sums, socket_forget_sums, 0, 0);
}

#endif
