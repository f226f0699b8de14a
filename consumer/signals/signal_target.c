/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/signal_target.h"

#include "consumer/cgroup/cgroups.h"
#include "consumer/process/process_mappings.h"

enum belonging signal_target_judge(const struct signal_target *target, const struct stack_sample *h)
{
	if (target->only_tgid && h->tgid != target->only_tgid)
		return BELONGS_NOT;
	if (!target->only_rule || h->rule_id == target->rule_id)
		return BELONGS;
	return h->rule_id == RULE_ID_UNKNOWN ? BELONGS_PERHAPS : BELONGS_NOT;
}

void signal_target_name_cgroups(struct stack_table *stacks, const struct signal_host *host,
				const struct signal_target *target)
{
	for (size_t i = 0; i < stacks->count; i++) {
		const struct stack *stack = stacks->items[i];
		const char *path;

		if (stack->cgroup_id == target->cgroup_id ||
		    stack_table_cgroup(stacks, stack->cgroup_id))
			continue;
		path = cgroups_path(host->cgroups, stack->cgroup_id, stack->tgid);
		if (path)
			stack_table_name(stacks, stack->cgroup_id, path);
	}
}
