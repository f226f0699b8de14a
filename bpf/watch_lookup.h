/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* watch_lookup.h: is this cgroup watched now, and is its consumer alive? */
#ifndef TROCAR_BPF_WATCH_LOOKUP_H
#define TROCAR_BPF_WATCH_LOOKUP_H

#include <stdbool.h>

#include "bpf/maps.h"

/*
 * The slot of the watch on `cgroup`; NULL when there is none or it is idle. Its state is read once:
 * the consumer may change it meanwhile. The outputs are set in any case, for the verifier's sake.
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
 * The dead-man switch. A heartbeat ahead of `now` by more than the promise is as bad as an old one:
 * a consumer that is gone must not have bought time without end.
 */
static __always_inline bool watch_lookup_is_stale(const struct control *c, __u64 now)
{
	__u64 beat = READ_WORD(c->heartbeat_ns), stale = READ_WORD(c->stale_ns);
	__u64 age = now > beat ? now - beat : beat - now;

	return !stale || age > stale;
}

#endif
