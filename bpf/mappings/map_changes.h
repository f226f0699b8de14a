/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * map_changes.h: returns how often the memory map of a process has changed, as the kernel counts it
 * for its per-VMA locks (CONFIG_PER_VMA_LOCK, from 6.4 on; include/linux/mmap_lock.h).
 */
#ifndef TROCAR_BPF_MAPPINGS_MAP_CHANGES_H
#define TROCAR_BPF_MAPPINGS_MAP_CHANGES_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Incremented when a writer releases the lock. */
struct mm_struct___writes {
	int mm_lock_seq;
};

struct seqcount___writes {
	unsigned int sequence;
};

/*
 * From 6.14 on it is incremented also when a writer takes the lock, and is odd while a writer holds
 * it.
 */
struct mm_struct___sequence {
	struct seqcount___writes mm_lock_seq;
};

#pragma clang attribute pop

/*
 * Returns the count of changes of the memory map plus 1; 0: it is changing now, or there is no
 * counter. A finding between two equal results is valid for both: no thread runs in a mapping that
 * a writer has created before the writer releases the lock.
 */
static __always_inline __u64 map_changes_count(const struct mm_struct *mm)
{
	const struct mm_struct___writes *writes = (const void *)mm;
	const struct mm_struct___sequence *sequence = (const void *)mm;
	__u32 changes;

	if (!mm)
		return 0;
	if (bpf_core_field_exists(sequence->mm_lock_seq.sequence)) {
		changes = sequence->mm_lock_seq.sequence;
		return changes & 1 ? 0 : changes + 1ull;
	}
	if (bpf_core_field_exists(writes->mm_lock_seq))
		return (__u32)writes->mm_lock_seq + 1ull;
	return 0;
}

#endif
