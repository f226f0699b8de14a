/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * garbage.h: the part of a session's CPU time that language runtimes spent on garbage collection,
 * by collectors.def. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_GARBAGE_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_GARBAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/naming/frame_name.h"

enum {
	GARBAGE_COLLECTORS = 0
#define COLLECTOR(name, runtime)	+1
#define COLLECTOR_THREAD(name, runtime) +1
#include "shared/findings/collectors.def"
#undef COLLECTOR
#undef COLLECTOR_THREAD
};

struct garbage {
	bool ready, first[256]; /* first letters of the function names in collectors.def */
	uint64_t ns[GARBAGE_COLLECTORS][PHASE_COUNT_]; /* by row of collectors.def */
};

/*
 * Adds a stack of CPU time with its `n` named frames. Of nested collectors, only the outermost
 * counts.
 */
void garbage_add(struct garbage *g, const struct stack *stack, const struct named_frame *frames,
		 size_t n);

/* Returns the sum of all rows in the phase. */
uint64_t garbage_ns(const struct garbage *g, enum phase phase);

/* Returns the name of the row with the most time in the phase `during`, and its runtime. */
const char *garbage_most(const struct garbage *g, const char **ret_runtime);

#endif
