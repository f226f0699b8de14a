/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_chains.h: call chains of known shape, through libc's callbacks and frames of many sizes,
 * that end in a loop that is never left.
 */
#ifndef TROCAR_TESTS_BPF_UNWIND_CHAINS_H
#define TROCAR_TESTS_BPF_UNWIND_CHAINS_H

#include <stdint.h>

#define CHAINS	     2
#define CHAIN_FRAMES 127

/* In memory that parent and child share: what libgcc's unwinder finds at the bottom. */
struct chain {
	uint32_t which; /* below CHAINS */
	uint32_t ready; /* the rest is there */
	uint32_t turns; /* grows while the loop runs */
	uint32_t count;
	void *frames[CHAIN_FRAMES]; /* the first is in the loop's own function */
};

/* Has libgcc's unwinder loaded, so that all of our forked children have the same mappings. */
void chains_prepare(void);

/* Runs a chain, in another thread or in this one; `context` is its struct chain. No return. */
void chains_run(void *context);

/* Whether the address is in the function of the loop. */
int chains_is_bottom(uint64_t address);

#endif
