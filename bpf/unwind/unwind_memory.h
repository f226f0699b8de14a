/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_memory.h: the maps with the unwinder's tables (the pool of rows and page indexes, and the
 * dictionary of rules), and the read of the current task's memory.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_MEMORY_H
#define TROCAR_BPF_UNWIND_UNWIND_MEMORY_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "bpf/maps/map_macros.h"
#include "shared/abi/unwind_abi.h"

#define UNWIND_POOL_DEFAULT 4096

/* Rows and page indexes of all files. The consumer writes them; the loader sets the size. */
__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, unwind_pool, __u32, __u64, UNWIND_POOL_DEFAULT);

__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, unwind_rules, __u32, struct unwind_rule, UNWIND_RULES_MAX);

/* The place of each file's table in the pool. The consumer writes it. */
__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, unwind_files, __u32, struct unwind_file, UNWIND_FILES_MAX);

static __always_inline const __u64 *unwind_element(__u32 index)
{
	return bpf_map_lookup_elem(&unwind_pool, &index);
}

static __always_inline const struct unwind_file *unwind_file_at(__u32 index)
{
	return bpf_map_lookup_elem(&unwind_files, &index);
}

static __always_inline const struct unwind_rule *unwind_rule_at(__u32 index)
{
	return bpf_map_lookup_elem(&unwind_rules, &index);
}

#ifndef UNWIND_OTHER_TASK /* otherwise the includer defines it (bpf/waits/look_memory.h) */
/*
 * Reads memory of the current task. Returns 0, or -EFAULT if it is not resident: the read does not
 * wait.
 */
static __always_inline long unwind_read(void *to, __u32 bytes, __u64 address)
{
	return bpf_probe_read_user(to, bytes, (const void *)address);
}
#endif

#endif
