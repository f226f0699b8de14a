/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_plan.h: a table in the making: the mappings of one process, and for each of them what
 * its stacks are walked by there. It holds the files that it has found rows of.
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_PLAN_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_PLAN_H

#include "consumer/process/unwind_state.h"
#include "consumer/symbols/mappings.h"
#include "consumer/unwind/store/unwind_files.h"

/* Of mappings as they are now, which are copied. NULL without memory. */
struct unwind_plan *unwind_plan_new(const struct mappings *maps, enum rule_unwind by);

/* Releases what it holds; NULL is allowed. */
void unwind_plan_free(struct unwind_plan *plan, struct unwind_files *files);

/* Asks for the files that are not settled. True when all are. */
bool unwind_plan_step(struct unwind_plan *plan, struct unwind_files *files);

/* ---- of a plan whose files are all settled */

/* UNWIND_HOW_FP: nothing has rows. */
enum unwind_how unwind_plan_how(const struct unwind_plan *plan);

/* Whether no table can be made: the kernel side's walk knows no frames of another machine's kind.
 */
bool unwind_plan_foreign(const struct unwind_plan *plan);

/* A number that tells apart what tables are made of; not 0. */
uint64_t unwind_plan_shape(const struct unwind_plan *plan);

/* Mappings that have no place in it. */
size_t unwind_plan_cut(const struct unwind_plan *plan);

/* Elements of the pool for which there was no room; its files are taken as having no rows. */
uint32_t unwind_plan_lacking(const struct unwind_plan *plan);

/* Writes the mappings that the kernel side is to look at, ascending. */
void unwind_plan_claim(const struct unwind_plan *plan, struct unwind_claims *claims);

/* Writes what the kernel side walks by, in the same order. */
void unwind_plan_write(const struct unwind_plan *plan, struct unwind_mapping *mappings);

/* Hands over the numbers of the held files, the caller's to release and free. */
uint32_t *unwind_plan_take(struct unwind_plan *plan, size_t *ret_count);

/* The i-th mapping that has no rows: its module and how it is walked; NULL at the end. */
const struct module *unwind_plan_rowless(const struct unwind_plan *plan, size_t i);

#endif
