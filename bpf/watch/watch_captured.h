/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* watch_captured.h: finds whether a session runs on a watch. */
#ifndef TROCAR_BPF_WATCH_WATCH_CAPTURED_H
#define TROCAR_BPF_WATCH_WATCH_CAPTURED_H

#include "bpf/watch/watch_lookup.h"

/*
 * Returns whether a session runs on the watch of the slot, or on one around it. A global function:
 * the verifier checks it once.
 */
__weak __noinline int watch_is_captured(__u32 index)
{
	const struct slot *slot;

	watch_for_each (slot, index)
		if (READ_WORD(slot->state) == SLOT_CAPTURE)
			return 1;
	return 0;
}

#endif
