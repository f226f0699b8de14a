/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * caller_check.h: decides which of the addresses that bpf_get_stack found by frame pointers may
 * leave the kernel. In code that uses the frame-pointer register for data the chain leads through
 * any memory, and the helper checks no mapping. So a caller is kept only if it is in the program's
 * own code, within the limits that the kernel knows, or in a file with a build-id and after a call
 * instruction. The first address that is neither ends the stack. The innermost frame is where the
 * program was, and is always kept.
 */
#ifndef TROCAR_BPF_UNWIND_CALLER_CHECK_H
#define TROCAR_BPF_UNWIND_CALLER_CHECK_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/unwind/call_bytes.h"
#include "shared/abi/abi.h"

#define BUILD_ID_VALID	 1 /* BPF_STACK_BUILD_ID_VALID */
#define PAGE_OFFSET_MASK 4095

/* A chain of frames, and the limits of the program's code. */
struct caller_chain {
	const struct frame_build_id *ids;
	const __u64 *addresses;
	__u64 code_start, code_end;
	__u32 count, kept;
};

/* Returns true if `address`, which the kernel has resolved to `id`, is a return address in code. */
static __always_inline bool is_caller(const struct caller_chain *c, __u64 address,
				      const struct frame_build_id *id)
{
	__u64 before;

	if (address - c->code_start < c->code_end - c->code_start)
		return true;
	/*
	 * The kernel read both from memory, one after the other, and the process may have written
	 * in between. Only if they agree, the build-id is that of `address`.
	 */
	if (id->status != BUILD_ID_VALID || (address ^ id->offset_or_ip) & PAGE_OFFSET_MASK)
		return false;
	return bpf_probe_read_user(&before, sizeof(before),
				   (const void *)(address - sizeof(before))) == 0 &&
	       is_call(before);
}

static long check_caller(__u32 i, struct caller_chain *c)
{
	struct frame_build_id id;
	__u64 address;

	if (i >= c->count || i >= STACK_FRAMES)
		return 1;
	if (bpf_probe_read_kernel(&id, sizeof(id), &c->ids[i]) ||
	    bpf_probe_read_kernel(&address, sizeof(address), &c->addresses[i]))
		return 1;
	if (i > 0 && !is_caller(c, address, &id))
		return 1;
	c->kept = i + 1;
	return 0;
}

/*
 * Returns how many of the `count` frames of `task` may leave the kernel, counted from the
 * innermost. `ids`: the frames as the kernel resolved them; `addresses`: the same frames as
 * addresses.
 */
static __always_inline __u32 caller_check_count(const struct task_struct *task,
						const struct frame_build_id *ids,
						const __u64 *addresses, __u32 count)
{
	__u64 code_start = BPF_CORE_READ(task, mm, start_code);
	__u64 code_end = BPF_CORE_READ(task, mm, end_code);
	struct caller_chain c = { .ids = ids, .addresses = addresses, .count = count };

	if (code_end > code_start) {
		c.code_start = code_start;
		c.code_end = code_end;
	}
	bpf_loop(count, check_caller, &c, 0);
	return c.kept;
}

#endif
