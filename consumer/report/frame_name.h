/* SPDX-License-Identifier: BSD-2-Clause */
/* frame_name.h: names of a stack's frames and what the whole stack is worth. Symbolizer thread
 * only. */
#ifndef TROCAR_CONSUMER_REPORT_FRAME_NAME_H
#define TROCAR_CONSUMER_REPORT_FRAME_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_table.h"
#include "consumer/symbols/symbols.h"

enum quality {
	QUALITY_COMPLETE,  /* unwound to the outermost frame; by frame pointers: to an entry point
			      or the C library that calls it */
	QUALITY_TRUNCATED, /* deeper than a sample can be */
	QUALITY_BROKEN,	   /* it ended elsewhere */
	QUALITY_COUNT_,
};

/* One named frame; strings live until the next symbols_trim. */
struct named_frame {
	const char *fn;	    /* NULL when not known */
	const char *raw;    /* as the symbol table has it, where fn is demangled; else NULL */
	const char *why;    /* without fn: the reason */
	const char *module; /* path, "kernel", a kernel module, or NULL when not known */
	const char *kind;   /* "kernel", "user", "jit" */
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	uint8_t build_id_bytes;
	uint64_t offset;
	bool has_offset;
};

/* Names frame `i` of `stack`. */
void frame_name_frame(struct symbols *symbols, const struct stack *stack, size_t i,
		      struct named_frame *ret_frame);

/* The worth of a stack whose outermost frame is `root` (NULL without frames); the reason, or NULL.
 */
enum quality frame_name_quality(const struct stack *stack, const struct named_frame *root,
				const char **ret_reason);

const char *frame_name_of_quality(enum quality quality);

#endif
