/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* watch_lookup.h: finds the watch of a cgroup, and tells whether the consumer is alive. */
#ifndef TROCAR_BPF_WATCH_LOOKUP_H
#define TROCAR_BPF_WATCH_LOOKUP_H

#include <stdbool.h>

#include "bpf/maps.h"

/*
 * Returns the slot of the watch on `cgroup`; NULL when there is none or it is idle. Reads its state
 * once: the consumer may write it meanwhile. Sets the outputs in any case, because the verifier
 * demands it.
 */
static __always_inline const struct slot *watch_lookup(__u64 cgroup, __u32 *ret_index,
						       __u32 *ret_state)
{
	const __u32 *index = bpf_map_lookup_elem(&watches, &cgroup);
	const struct slot *slot;

	*ret_index = 0;
	*ret_state = SLOT_IDLE;
	if (!index)
		return NULL;
	*ret_index = READ_WORD(*index);
	slot = bpf_map_lookup_elem(&slots, ret_index);
	if (!slot)
		return NULL;
	*ret_state = READ_WORD(slot->state);
	return *ret_state == SLOT_RECORDER || *ret_state == SLOT_CAPTURE ? slot : NULL;
}

/*
 * The dead-man switch: returns true when the heartbeat is stale. A heartbeat too far ahead of `now`
 * counts as stale too: a consumer that ends must not leave one that stays valid for ever.
 */
static __always_inline bool watch_lookup_is_stale(const struct control *c, __u64 now)
{
	__u64 beat = READ_WORD(c->heartbeat_ns), stale = READ_WORD(c->stale_ns);
	__u64 age = now > beat ? now - beat : beat - now;

	return !stale || age > stale;
}

#endif
