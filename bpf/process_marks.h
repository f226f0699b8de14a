/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* process_marks.h: a bit per process id, which says that the process may be in `targets`. */
#ifndef TROCAR_BPF_PROCESS_MARKS_H
#define TROCAR_BPF_PROCESS_MARKS_H

#include <stdbool.h>

#include "bpf/maps.h"

/*
 * Private: a bit for each process id (the kernel's PID_MAX_LIMIT is 4 Mi), set before the process
 * may enter `targets` and cleared when its entry goes. A look into `targets`, cold, is 250 ns and
 * more; who runs an execve and is nobody's target pays one load for it instead. The consumer enters
 * only processes that an event, a sample or an iterator showed it, and those set the bit. A bit too
 * many costs a lookup, nothing else.
 */
#define PROCESS_IDS (4u << 20)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROCESS_IDS / 64);
	__type(key, __u32);
	__type(value, __u64);
} process_marks __weak SEC(".maps");

static __always_inline __u64 *find_mark_word(__u32 tgid)
{
	__u32 index = tgid / 64;

	return bpf_map_lookup_elem(&process_marks, &index);
}

static __always_inline void process_marks_set(__u32 tgid)
{
	__u64 *word = find_mark_word(tgid), bit = 1ull << (tgid & 63);

	if (word && !(READ_WORD(*word) & bit))
		__sync_fetch_and_or(word, bit);
}

static __always_inline void process_marks_clear(__u32 tgid)
{
	__u64 *word = find_mark_word(tgid);

	if (word)
		__sync_fetch_and_and(word, ~(1ull << (tgid & 63)));
}

/* False when the process cannot stand in `targets`. */
static __always_inline bool process_marks_has(__u32 tgid)
{
	const __u64 *word = find_mark_word(tgid);

	return !word || READ_WORD(*word) >> (tgid & 63) & 1;
}

#endif
