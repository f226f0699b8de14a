/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* call_bytes.h: recognizes a return address by the instruction before it. */
#ifndef TROCAR_BPF_UNWIND_CALL_BYTES_H
#define TROCAR_BPF_UNWIND_CALL_BYTES_H

#include <linux/types.h>

/*
 * Returns 1 if the 8 bytes before an address end with a call instruction, as the bytes before a
 * return address do.
 */
static __attribute__((always_inline)) inline __u32 is_call(__u64 bytes)
{
#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
	__u32 last = bytes >> 32;

	/* bl, or blr and its variants with pointer authentication */
	return (last & 0xfc000000) == 0x94000000 || (last & 0xfefff000) == 0xd63f0000;
#else
	/* call rel32, or call of a register or memory: opcode ff with 2 in the middle of modrm */
	if ((bytes >> 24 & 0xff) == 0xe8)
		return 1;
	return (bytes >> 48 & 0x38ff) == 0x10ff || (bytes >> 40 & 0x38ff) == 0x10ff ||
	       (bytes >> 32 & 0x38ff) == 0x10ff || (bytes >> 16 & 0x38ff) == 0x10ff ||
	       (bytes >> 8 & 0x38ff) == 0x10ff;
#endif
}

#endif
