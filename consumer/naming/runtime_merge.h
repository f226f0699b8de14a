/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime_merge.h: puts the frames of a language runtime to their places in the native stack. Each
 * native frame of the runtime's evaluation loop has run one or more of them (a run), so it is
 * replaced by these. C functions between stay where they were called. Report thread only.
 */
#ifndef TROCAR_CONSUMER_NAMING_RUNTIME_MERGE_H
#define TROCAR_CONSUMER_NAMING_RUNTIME_MERGE_H

#include "consumer/sampling/stack_table.h"
#include "consumer/symbols/symbols.h"

/*
 * Merges the frames of `stack` in place; its runtime_frames is then 0. Runs without a native frame
 * follow the native frames, the innermost first: native callers are missing there.
 */
void runtime_merge_stack(struct symbols *symbols, struct stack *stack);

#endif
