/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_rule.h: decides which rule a process matched when a sample of it was taken. The sample
 * has the kernel side's state at that tick, which the consumer may not know yet: the event of a new
 * process is still in its ring, or the kernel side has delayed it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_PROCESS_RULE_H
#define TROCAR_CONSUMER_PROCESS_PROCESS_RULE_H

#include <stdint.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/process/process.h"
#include "consumer/rules/ruleset.h"

/*
 * Returns the id (ruleset.h) of the rule that the sample's process matched in cgroup `cgroup_id`.
 * `p` is that process, or NULL if the table of processes is full. RULE_ID_UNKNOWN: it matched a
 * rule of a set that is no longer active, and nothing else identifies the rule.
 */
uint32_t process_rule_at_tick(const struct active_rules *active, struct cgroups *cgroups,
			      const struct sample *record, const struct process *p,
			      uint64_t cgroup_id);

#endif
