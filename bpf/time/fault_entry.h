/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fault_entry.h: detects whether a thread that is in no system call entered the kernel by a page
 * fault. Exceptions and interrupts of user mode leave the same registers (arch/x86/entry/entry_64.S
 * sets orig_ax to -1 for all). But the word below the registers is the return address of the
 * handler's call: an address in asm_exc_page_fault.
 */
#ifndef TROCAR_BPF_TIME_FAULT_ENTRY_H
#define TROCAR_BPF_TIME_FAULT_ENTRY_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/stack/orc.h"

/*
 * Returns whether the thread is in a page fault. `regs` is the address of its user registers. Also
 * returns true if the entry is not known: on arm64, and before the loader has read the kernel's
 * symbols.
 */
static __always_inline bool fault_entry_is(__u64 regs)
{
	const struct orc_areas *areas = orc_areas_get();
	__u64 back = 0;

	if (!areas || !areas->fault.end ||
	    bpf_probe_read_kernel(&back, sizeof(back), (const void *)(regs - sizeof(back))) < 0)
		return true;
	/* With FRED all events enter through one function (arch/x86/entry/entry_64_fred.S). */
	return back - areas->fault.begin < areas->fault.end - areas->fault.begin ||
	       back - areas->fred.begin < areas->fred.end - areas->fred.begin;
}

#endif
