/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample_decode.h: turns a record of the samples ring into a struct stack_sample: each user address
 * becomes a module and a file offset. It does not change the process: it returns the missing parts
 * to the caller (struct sample_asks). Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_SAMPLE_DECODE_H
#define TROCAR_CONSUMER_SAMPLING_SAMPLE_DECODE_H

#include <stdbool.h>

#include "consumer/process/process.h"
#include "consumer/process/unwind_tables.h"
#include "consumer/sampling/stack_sample.h"

/* The decoder's input other than the record. */
struct sample_context {
	struct symbols *symbols;       /* finds modules, or makes them from their build-id */
	const struct process *process; /* the record's; NULL: the process table was full */
	const struct mappings *maps;   /* of the process at the time of the sample */
	/*
	 * The unwind table that the kernel side walked the stack with; NULL with SAMPLE_UNWOUND:
	 * that table is gone.
	 */
	const struct walk_table *table;
};

/* The parts that the decoder found missing. */
struct sample_asks {
	/*
	 * An address is in no known mapping: read the mappings again, as of the sample's time or
	 * later, then call sample_decode_missing.
	 */
	bool mappings;
	bool build_ids; /* make the kernel resolve build-ids for this process */
};

/* Decodes a valid record into *ret_sample, which has room for STACK_SAMPLE_FRAMES_MAX frames. */
void sample_decode(const struct sample_context *c, const struct sample *record,
		   struct stack_sample *ret_sample, struct sample_asks *ret_asks);

/*
 * Completes a sample for which sample_asks.mappings was set; no other sample may be decoded in
 * between. Looks up the missing addresses in `fresh` (may be NULL) and ends the chain before the
 * first one that is still missing. *ret_asks may ask for build-ids.
 */
void sample_decode_missing(const struct sample_context *c, const struct mappings *fresh,
			   const struct sample *record, struct stack_sample *sample,
			   struct sample_asks *ret_asks);

#endif
