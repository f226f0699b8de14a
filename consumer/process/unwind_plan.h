/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_plan.h: an unwind table in preparation: the mappings of one process, and how the kernel
 * side walks stacks in each of them. It holds the files with known rows.
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_PLAN_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_PLAN_H

#include "consumer/mappings/mappings.h"
#include "consumer/process/unwind_state.h"
#include "consumer/unwind/store/unwind_files.h"

/*
 * Makes a plan for `maps`, which it copies. Returns NULL without memory. Release with
 * unwind_plan_free.
 */
struct unwind_plan *unwind_plan_new(const struct mappings *maps, enum rule_unwind by);

/* Frees the plan and releases the files that it holds; NULL is allowed. */
void unwind_plan_free(struct unwind_plan *plan, struct unwind_files *files);

/* Requests the files that are not settled. Returns whether all files are settled. */
bool unwind_plan_step(struct unwind_plan *plan, struct unwind_files *files);

/* ---- only for a plan with settled files */

/* Returns how the stacks are walked; UNWIND_HOW_FP: no mapping has rows. */
enum unwind_how unwind_plan_how(const struct unwind_plan *plan);

/*
 * Returns whether no table can be made because the kernel side cannot walk frames of another
 * machine type.
 */
bool unwind_plan_foreign(const struct unwind_plan *plan);

/* Returns a number, not 0, that differs for tables with different contents. */
uint64_t unwind_plan_shape(const struct unwind_plan *plan);

/* Returns the number of mappings that do not fit into the table. */
size_t unwind_plan_cut(const struct unwind_plan *plan);

/*
 * Returns the number of elements that did not fit into the pool; their files count as having no
 * rows.
 */
uint32_t unwind_plan_lacking(const struct unwind_plan *plan);

/* Writes the mappings that the kernel side must confirm, ascending. */
void unwind_plan_claim(const struct unwind_plan *plan, struct unwind_claims *claims);

/*
 * Writes the claim that one of the files is a language runtime, all zeros if none is: the first
 * one, so the program before its libraries.
 */
void unwind_plan_claim_runtime(const struct unwind_plan *plan, struct unwind_files *files,
			       struct runtime_claim *claim);

/* Writes the mappings that the kernel side walks by, in the order of unwind_plan_claim. */
void unwind_plan_write(const struct unwind_plan *plan, struct unwind_mapping *mappings);

/* Hands over the numbers of the held files; the caller releases them and frees the array. */
uint32_t *unwind_plan_take(struct unwind_plan *plan, size_t *ret_count);

/* Returns the module of the i-th mapping without rows; NULL at the end. */
const struct module *unwind_plan_rowless(const struct unwind_plan *plan, size_t i);

#endif
