/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/event_log.h"

struct event_subject event_log_subject(const struct event_log *log, const struct rule *rule,
				       uint64_t cgroup_id)
{
	struct event_subject subject = {
		.rule = rule,
		.generation = log->active->set ? log->active->set->generation : 0,
		.cgroup_id = cgroup_id,
	};

	if (cgroup_id)
		subject.cgroup = cgroups_container(log->cgroups, cgroup_id, &subject.container);
	return subject;
}
