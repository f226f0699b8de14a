/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/unwind_plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* One mapping. */
struct item {
	uint64_t start, end, offset;
	struct module *module;
	uint64_t base;
	uint32_t number;
	enum unwind_kind kind; /* NONE until settled */
	bool settled;
};

struct unwind_plan {
	enum rule_unwind by;
	bool taken;	  /* unwind_plan_take has transferred its holds */
	bool foreign;	  /* code for another kind of machine, such as 32-bit programs */
	uint32_t lacking; /* elements that did not fit into the pool */
	size_t count, cut;
	struct item items[];
};

static bool has_rows(const struct item *item)
{
	return item->kind == UNWIND_KIND_ROWS || item->kind == UNWIND_KIND_ROWS_ALONE;
}

/* A mapping and its rank, if there are too many. */
struct candidate {
	unsigned int group; /* the lowest group first */
	uint64_t worth;	    /* within the group, the highest first */
	size_t i;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->worth != y->worth)
		return x->worth > y->worth ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

/*
 * Ranks mappings: the program's own first; then its files from the highest address down, because
 * the files loaded first are highest, such as the vDSO and the C library, through which every stack
 * goes; last the code made at run time, the largest first.
 */
static struct candidate rank_mapping(const struct mappings *maps, size_t i)
{
	const struct mapping *m = &maps->items[i];

	if (m->module == maps->exe)
		return (struct candidate){ .group = 0, .worth = m->start, .i = i };
	if (!m->module->anonymous)
		return (struct candidate){ .group = 1, .worth = m->start, .i = i };
	return (struct candidate){ .group = 2, .worth = m->end - m->start, .i = i };
}

/* Marks the mappings that get a place in a table if there are more than UNWIND_RANGES. */
static int choose_mappings(const struct mappings *maps, bool *chosen)
{
	struct candidate *all = calloc(maps->count, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < maps->count; i++)
		all[i] = rank_mapping(maps, i);
	qsort(all, maps->count, sizeof(*all), compare_candidates);
	for (size_t i = 0; i < UNWIND_RANGES; i++)
		chosen[all[i].i] = true;
	free(all);
	return 0;
}

struct unwind_plan *unwind_plan_new(const struct mappings *maps, enum rule_unwind by)
{
	size_t places = MIN(maps->count, (size_t)UNWIND_RANGES);
	_cleanup_free_ bool *chosen = NULL;
	struct unwind_plan *plan;

	if (maps->count > places) {
		chosen = calloc(maps->count, sizeof(*chosen));
		if (!chosen || choose_mappings(maps, chosen) < 0)
			return NULL;
	}
	plan = calloc(1, sizeof(*plan) + places * sizeof(*plan->items));
	if (!plan)
		return NULL;
	plan->by = by;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *m = &maps->items[i];

		if (chosen && !chosen[i]) {
			plan->cut++;
			continue;
		}
		symbols_hold(m->module);
		plan->items[plan->count++] = (struct item){ .start = m->start,
							    .end = m->end,
							    .offset = m->file_offset,
							    .module = m->module };
	}
	return plan;
}

void unwind_plan_free(struct unwind_plan *plan, struct unwind_files *files)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->count; i++) {
		symbols_release(plan->items[i].module, clock_mono_ns());
		if (!plan->taken && has_rows(&plan->items[i]))
			unwind_files_release(files, plan->items[i].number);
	}
	free(plan);
}

/* Settles a mapping without rows: by the frame pointer, unless the rule requires rows. */
static void settle_rowless(const struct unwind_plan *plan, struct item *item)
{
	item->kind = plan->by == RULE_UNWIND_TABLE ? UNWIND_KIND_NONE : UNWIND_KIND_FP;
	item->settled = true;
}

static void step_file(struct unwind_plan *plan, struct unwind_files *files, struct item *item)
{
	int r = unwind_files_hold(files, item->module, &item->number);

	if (r == -EAGAIN)
		return;
	if (r == 0 &&
	    unwind_files_base(files, item->number, item->start, item->offset, &item->base) < 0) {
		unwind_files_release(files, item->number);
		r = -ENOENT;
	}
	if (r < 0) {
		plan->foreign = plan->foreign || r == -ENOTSUP;
		if (r == -ENOSPC)
			plan->lacking += unwind_files_lacking(files, item->module);
		settle_rowless(plan, item);
		return;
	}
	item->kind = plan->by == RULE_UNWIND_TABLE ? UNWIND_KIND_ROWS_ALONE : UNWIND_KIND_ROWS;
	item->settled = true;
}

bool unwind_plan_step(struct unwind_plan *plan, struct unwind_files *files)
{
	bool all = true;

	for (size_t i = 0; i < plan->count; i++) {
		struct item *item = &plan->items[i];

		if (!item->settled && (plan->by == RULE_UNWIND_FP || item->module->anonymous))
			settle_rowless(plan, item);
		else if (!item->settled)
			step_file(plan, files, item);
		all = all && item->settled;
	}
	return all;
}

enum unwind_how unwind_plan_how(const struct unwind_plan *plan)
{
	size_t rows = 0;

	for (size_t i = 0; i < plan->count; i++)
		rows += has_rows(&plan->items[i]);
	if (plan->foreign || rows == 0)
		return UNWIND_HOW_FP;
	return rows == plan->count && !plan->cut ? UNWIND_HOW_TABLE : UNWIND_HOW_MIXED;
}

static uint64_t mix_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

bool unwind_plan_foreign(const struct unwind_plan *plan)
{
	return plan->foreign;
}

uint64_t unwind_plan_shape(const struct unwind_plan *plan)
{
	uint64_t hash = mix_word(1, plan->count);

	for (size_t i = 0; i < plan->count; i++) {
		const struct item *item = &plan->items[i];

		hash = mix_word(mix_word(hash, item->start), item->end);
		hash = mix_word(mix_word(hash, item->offset), (uintptr_t)item->module);
		hash = mix_word(hash,
				(uint64_t)item->kind << 32 | (has_rows(item) ? item->number : 0));
	}
	return hash ? hash : 1;
}

size_t unwind_plan_cut(const struct unwind_plan *plan)
{
	return plan->cut;
}

uint32_t unwind_plan_lacking(const struct unwind_plan *plan)
{
	return plan->lacking;
}

void unwind_plan_claim(const struct unwind_plan *plan, struct unwind_claims *claims)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct item *item = &plan->items[i];

		claims->starts[i] = item->start;
		claims->inodes[i] = item->module->identity.inode;
	}
	claims->count = (uint32_t)plan->count;
}

void unwind_plan_claim_runtime(const struct unwind_plan *plan, struct unwind_files *files,
			       struct runtime_claim *claim)
{
	*claim = (struct runtime_claim){ 0 };
	for (size_t i = 0; i < plan->count; i++) {
		const struct item *item = &plan->items[i];

		if (has_rows(item) &&
		    unwind_files_claim(files, item->number, item->start, item->offset, claim))
			return;
	}
}

void unwind_plan_write(const struct unwind_plan *plan, struct unwind_mapping *mappings)
{
	bool fp = unwind_plan_how(plan) == UNWIND_HOW_FP;

	for (size_t i = 0; i < plan->count; i++)
		mappings[i] = (struct unwind_mapping){
			.base = plan->items[i].base,
			.file = plan->items[i].number,
			.kind = fp ? UNWIND_KIND_FP : plan->items[i].kind,
		};
}

uint32_t *unwind_plan_take(struct unwind_plan *plan, size_t *ret_count)
{
	uint32_t *numbers = calloc(plan->count + 1, sizeof(*numbers));
	size_t count = 0;

	/*
	 * Without memory for the table's account the files stay held permanently, so that no row is
	 * overwritten.
	 */
	for (size_t i = 0; i < plan->count; i++) {
		if (!has_rows(&plan->items[i]))
			continue;
		if (numbers)
			numbers[count++] = plan->items[i].number;
	}
	plan->taken = true;
	*ret_count = count;
	return numbers;
}

const struct module *unwind_plan_rowless(const struct unwind_plan *plan, size_t i)
{
	for (size_t k = 0; k < plan->count; k++) {
		if (has_rows(&plan->items[k]))
			continue;
		if (i-- == 0)
			return plan->items[k].module;
	}
	return NULL;
}
