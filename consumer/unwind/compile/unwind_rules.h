/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_rules.h: the dictionary of rules that all files share. It only grows, so that a row which
 * the kernel side reads never changes its meaning; the rules of a failed compilation are removed
 * before the kernel side can see them. Thousands of files need a few thousand rules.
 */
#ifndef TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_RULES_H
#define TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_RULES_H

#include <stdint.h>
#include <string.h>

#include "shared/abi/unwind_abi.h"

#define UNWIND_FILE_RULES_MAX 2048 /* of one file, as defence against a hostile one */

struct unwind_rules {
	struct unwind_rule *rules; /* owned */
	uint16_t *slots;	   /* owned; hash table of index + 1 */
	uint32_t count, space;
};

/*
 * Initialises the dictionary with UNWIND_RULE_NONE, _UNSUPPORTED and _END. 0, -ENOMEM. Release with
 * unwind_rules_done.
 */
int unwind_rules_init(struct unwind_rules *r);
void unwind_rules_done(struct unwind_rules *r);

/*
 * Finds or adds `rule` and sets *ret_index. Returns 0; -ENOSPC beyond `limit` rules in all (at most
 * UNWIND_RULES_MAX); -ENOMEM.
 */
int unwind_rules_add(struct unwind_rules *r, struct unwind_rule rule, uint32_t limit,
		     uint16_t *ret_index);

#define UNWIND_RULES_SLOTS (2 * UNWIND_RULES_MAX) /* a power of two, never more than half full */

/* Returns the slot that holds `rule`, or the empty slot for it. */
static inline uint32_t unwind_rules_slot(const struct unwind_rules *r, struct unwind_rule rule)
{
	uint64_t word, other;
	uint32_t slot;

	memcpy(&word, &rule, sizeof(word));
	slot = (uint32_t)((word * 0x9e3779b97f4a7c15ULL) >> 49);
	for (; r->slots[slot] != 0; slot = (slot + 1) & (UNWIND_RULES_SLOTS - 1)) {
		memcpy(&other, &r->rules[r->slots[slot] - 1], sizeof(other));
		if (other == word)
			break;
	}
	return slot;
}

/*
 * Does the same as unwind_rules_add, and is fast if the rule already exists, the usual case.
 * Inline, because it is called for every row.
 */
static inline int unwind_rules_index(struct unwind_rules *r, struct unwind_rule rule,
				     uint32_t limit, uint16_t *ret_index)
{
	uint16_t slot = r->slots[unwind_rules_slot(r, rule)];

	if (__builtin_expect(slot == 0, 0))
		return unwind_rules_add(r, rule, limit, ret_index);
	*ret_index = slot - 1;
	return 0;
}

/* Removes all rules from index `count` on. */
void unwind_rules_rewind(struct unwind_rules *r, uint32_t count);

#endif
