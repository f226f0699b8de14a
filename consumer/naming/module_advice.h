/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module_advice.h: writes one sentence of advice for the operator about a module that caused poor
 * stacks.
 */
#ifndef TROCAR_CONSUMER_NAMING_MODULE_ADVICE_H
#define TROCAR_CONSUMER_NAMING_MODULE_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#define SUMMARY_ADVICE_BYTES 576 /* size of a sentence, including its NUL */

/* Advice for a process with more executable mappings than UNWIND_RANGES. */
#define SUMMARY_NO_PLACE                                                                \
	"stacks end where they leave the 512 executable mappings that are known of a "  \
	"process with more: load fewer libraries, or build it with frame pointers and " \
	"set capture.unwind to \"fp\""

/*
 * Writes the sentence about `module` (a path). `why` is the reason of its unnamed frames, or NULL;
 * `broken`: stacks ended in it; `rowless`: why the walk needed its frame pointers there (as
 * named_frame.rowless). Returns false if the operator can do nothing about it.
 */
bool module_advice(const char *module, const char *why, bool broken, const char *rowless,
		   char text[SUMMARY_ADVICE_BYTES]);

#endif
