/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_flow.h: finds the end of an x86-64 function by its instructions, if neither a symbol nor call
 * frame information has the end: hand-written assembly in stripped files.
 */
#ifndef TROCAR_SHARED_ELF_X86_FLOW_H
#define TROCAR_SHARED_ELF_X86_FLOW_H

#include <stddef.h>
#include <stdint.h>

#define X86_FLOW_MAX 16384u /* bytes of code that are read of one function */

/* Working memory of x86_flow_bytes; needs no initialisation. */
struct x86_flow {
	uint8_t marks[X86_FLOW_MAX];
	uint16_t open[X86_FLOW_MAX];
};

/*
 * Returns how many of the `bytes` bytes at `code` (at most X86_FLOW_MAX) belong to the function
 * that begins at `code`: the instructions reachable from there without a call and without a gap
 * (padding excepted), up to the first address that they call or take. A function that jumps to an
 * unknown address may be longer. 0 when not even the first instruction is known.
 */
size_t x86_flow_bytes(struct x86_flow *flow, const uint8_t *code, size_t bytes);

#endif
