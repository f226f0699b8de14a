/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample_decode.h: a record of the samples ring with its user addresses turned into module and file
 * offset. It changes nothing of the process: what it lacks it asks for. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_SAMPLE_DECODE_H
#define TROCAR_CONSUMER_SAMPLING_SAMPLE_DECODE_H

#include <stdbool.h>

#include "consumer/process/process.h"
#include "consumer/process/unwind_tables.h"
#include "consumer/sampling/stack_sample.h"

/* What a record is decoded with. */
struct sample_context {
	struct symbols *symbols;	/* in which modules are found, or made by their build-id */
	const struct process *process;	/* whose record it is; NULL: the table had no room for it */
	const struct mappings *maps;	/* what it had mapped when the sample was taken */
	const struct walk_table *table; /* that its stack was walked by; NULL with SAMPLE_UNWOUND:
					   it is not known any more */
};

/* What the decoder found missing. */
struct sample_asks {
	bool mappings;	/* some address lies in none that were read: they are to be read since the
			   sample's time, and sample_decode_missing is to be called */
	bool build_ids; /* the kernel is to tell the build-ids of the process's files */
};

/* Decodes a valid record into *ret_sample, which has room for STACK_SAMPLE_FRAMES_MAX frames. */
void sample_decode(const struct sample_context *c, const struct sample *record,
		   struct stack_sample *ret_sample, struct sample_asks *ret_asks);

/*
 * The rest of a sample whose sample_asks wanted mappings, which no other may be before: looks up
 * what is missing in `fresh`, which may be NULL, and ends the chain before what is missing then.
 * *ret_asks may ask for build-ids.
 */
void sample_decode_missing(const struct sample_context *c, const struct mappings *fresh,
			   const struct sample *record, struct stack_sample *sample,
			   struct sample_asks *ret_asks);

#endif
