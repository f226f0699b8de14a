/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* process_marks.h: one bit per process id: the process may have an entry in `targets`. */
#ifndef TROCAR_BPF_DISCOVERY_PROCESS_MARKS_H
#define TROCAR_BPF_DISCOVERY_PROCESS_MARKS_H

#include <stdbool.h>

#include "bpf/maps/maps.h"

/*
 * Private: one bit for each process id (the kernel's PID_MAX_LIMIT is 4 Mi). A program sets it
 * before the process may enter `targets` and clears it when the entry is deleted. A lookup in
 * `targets` that is not cached costs 250 ns and more; an execve of a process that is no target
 * costs one load instead. The consumer adds only processes that it knows from an event, a sample or
 * an iterator, and those set the bit. So the iterator `tasks`, which lists all processes with a
 * bit, lists every living process that the consumer knows. An unnecessary bit costs one lookup and
 * nothing else.
 */
#define PROCESS_IDS (4u << 20)

__weak MAP(ARRAY, process_marks, __u32, __u64, PROCESS_IDS / 64);

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

/* Returns false if the process has no entry in `targets`. */
static __always_inline bool process_marks_has(__u32 tgid)
{
	const __u64 *word = find_mark_word(tgid);

	return !word || READ_WORD(*word) >> (tgid & 63) & 1;
}

#endif
