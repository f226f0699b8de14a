/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* watch_lookup.h: finds the watches of a cgroup, and whether the consumer is alive. */
#ifndef TROCAR_BPF_WATCH_WATCH_LOOKUP_H
#define TROCAR_BPF_WATCH_WATCH_LOOKUP_H

#include <stdbool.h>

#include "bpf/maps/maps.h"

/*
 * Finds the slot of the nearest watch at or above `cgroup`. Returns false if there is none. Sets
 * the output in any case, because the verifier demands it.
 */
static __always_inline bool watch_lookup(__u64 cgroup, __u32 *ret_index)
{
	const struct watch_entry *entry = bpf_map_lookup_elem(&watches, &cgroup);

	*ret_index = 0;
	if (!entry)
		return false;
	*ret_index = READ_WORD(entry->slot);
	return true;
}

/*
 * Sets *index to the slot of the next watch around that of `slot`. Returns false if there is none.
 */
static __always_inline bool watch_lookup_outer(const struct slot *slot, __u32 *index)
{
	__u32 outer = READ_WORD(slot->outer);

	*index = outer - 1;
	return outer;
}

#define WATCH_WALK(slot, index, also)                                                          \
	for (int i_ = 0; i_ < WATCHES_NESTED && (!i_ || watch_lookup_outer(slot, &(index))) && \
			 ((slot) = bpf_map_lookup_elem(&slots, &(index))) != 0 && (also);      \
	     i_++)

/*
 * Repeats the next statement for the watch of slot number `index` and for the watches around it,
 * the nearest first. Sets `slot`, and for each further watch `index`.
 */
#define watch_for_each(slot, index) WATCH_WALK(slot, index, 1)

/* As watch_for_each. Sets `losses` to the watch's element of `map`, too. */
#define losses_for_each(losses, map, slot, index) \
	WATCH_WALK(slot, index, ((losses) = bpf_map_lookup_elem(&(map), &(index))) != 0)

/*
 * The dead-man switch: returns true if the heartbeat is stale. A heartbeat too far ahead of `now`
 * counts as stale too: a consumer that ends must not leave one that stays valid for ever.
 */
static __always_inline bool watch_lookup_is_stale(const struct control *c, __u64 now)
{
	__u64 beat = READ_WORD(c->heartbeat_ns), stale = READ_WORD(c->stale_ns);
	__u64 age = now > beat ? now - beat : beat - now;

	return !stale || age > stale;
}

/* As watch_lookup_is_stale, with the heartbeat of the control words. */
static __always_inline bool watch_lookup_is_off(__u64 now)
{
	const struct control *c = control_get();

	return !c || watch_lookup_is_stale(c, now);
}

#endif
