/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* target_match.h: finds the rule that a process matches now, as far as the programs know. */
#ifndef TROCAR_BPF_DISCOVERY_TARGET_MATCH_H
#define TROCAR_BPF_DISCOVERY_TARGET_MATCH_H

#include <stdbool.h>

#include "bpf/discovery/process_marks.h"
#include "bpf/maps/task_keys.h"

/* The rule that a process matches. */
struct target_match {
	__u32 matched; /* SAMPLE_MATCHED, or 0 */
	__u32 rule, generation;
};

/*
 * Finds the rule that the name of the process matches. Not inlined, because nearly all sampled
 * processes have an entry.
 */
static __noinline void match_name(struct task_struct *task, const struct control *c,
				  struct target_match *ret_match)
{
	const struct rule_value *value;
	struct task_name name;

	if (!process_marks_has(task->tgid))
		return;
	if (!task_keys_read_name(BPF_CORE_READ(task, group_leader)->comm, &name))
		return;
	value = task_keys_find_rule(&name, READ_ORDERED(c->active));
	if (!value)
		return;
	ret_match->matched = SAMPLE_MATCHED;
	ret_match->rule = value->rule;
	ret_match->generation = value->generation;
}

/*
 * Finds the rule that the process of `task` matches: from its entry `target`, or from its name if
 * `targets` had no space for it (`target` is NULL). Every process with a matched name is marked, so
 * one without a mark costs no lookup in the tries. The flag is computed without a branch: the
 * verifier would check all code after a branch twice.
 */
static __always_inline void target_match_find(struct task_struct *task, const struct target *target,
					      const struct control *c,
					      struct target_match *ret_match)
{
	if (target) {
		ret_match->matched = (READ_WORD(target->flags) & TARGET_MATCHED) *
				     (SAMPLE_MATCHED / TARGET_MATCHED);
		ret_match->rule = READ_WORD(target->rule);
		ret_match->generation = READ_WORD(target->generation);
		return;
	}
	ret_match->matched = 0;
	ret_match->rule = NO_SLOT;
	ret_match->generation = 0;
	match_name(task, c, ret_match);
}

#endif
