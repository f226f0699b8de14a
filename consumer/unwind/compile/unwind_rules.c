/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/compile/unwind_rules.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/macro.h"

static_assert(sizeof(struct unwind_rule) == 8 && sizeof(struct unwind_row) == 8, "8 bytes each");
static_assert(UNWIND_RULES_MAX <= UINT16_MAX, "index + 1 fits a slot");

static const struct unwind_rule first[] = {
	[UNWIND_RULE_NONE] = { .cfa = UNWIND_CFA_NONE },
	[UNWIND_RULE_UNSUPPORTED] = { .cfa = UNWIND_CFA_UNSUPPORTED },
	[UNWIND_RULE_END] = { .cfa = UNWIND_CFA_END },
};

static int grow_rules(struct unwind_rules *r)
{
	uint32_t space = MAX(r->space * 2, 256u);
	struct unwind_rule *more = realloc(r->rules, space * sizeof(*more));

	if (!more)
		return -ENOMEM;
	r->rules = more;
	r->space = space;
	return 0;
}

static int append_rule(struct unwind_rules *r, struct unwind_rule rule, uint32_t limit,
		       uint32_t slot)
{
	int error;

	if (r->count >= MIN(limit, (uint32_t)UNWIND_RULES_MAX))
		return -ENOSPC;
	if (r->count == r->space) {
		error = grow_rules(r);
		if (error < 0)
			return error;
	}
	r->rules[r->count++] = rule;
	r->slots[slot] = (uint16_t)r->count;
	return 0;
}

int unwind_rules_add(struct unwind_rules *r, struct unwind_rule rule, uint32_t limit,
		     uint16_t *ret_index)
{
	uint32_t slot = unwind_rules_slot(r, rule);
	int error;

	if (r->slots[slot] == 0) {
		error = append_rule(r, rule, limit, slot);
		if (error < 0)
			return error;
	}
	*ret_index = r->slots[slot] - 1;
	return 0;
}

/*
 * Goes backwards from the last rule: each was put into the first free slot, so no rule after it
 * depends on its slot.
 */
void unwind_rules_rewind(struct unwind_rules *r, uint32_t count)
{
	while (r->count > count) {
		r->slots[unwind_rules_slot(r, r->rules[r->count - 1])] = 0;
		r->count--;
	}
}

int unwind_rules_init(struct unwind_rules *r)
{
	uint16_t index;
	int error;

	*r = (struct unwind_rules){ .slots = calloc(UNWIND_RULES_SLOTS, sizeof(*r->slots)) };
	if (!r->slots)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		error = unwind_rules_add(r, first[i], UNWIND_RULES_MAX, &index);
		if (error < 0) {
			unwind_rules_done(r);
			return error;
		}
	}
	return 0;
}

void unwind_rules_done(struct unwind_rules *r)
{
	free(r->rules);
	free(r->slots);
	*r = (struct unwind_rules){ 0 };
}
