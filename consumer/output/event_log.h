/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_log.h: the inputs that the main thread's modules need to write event lines: their
 * destination, the cgroups, and the active rules. Main thread only; the report thread has a struct
 * event_lines and takes the rest from the session's result.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_EVENT_LOG_H
#define TROCAR_CONSUMER_OUTPUT_EVENT_LOG_H

#include <stdint.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/output/event_line.h"
#include "consumer/rules/ruleset.h"

/* All members are borrowed. */
struct event_log {
	const struct event_lines *lines;
	struct cgroups *cgroups;
	const struct active_rules *active;
};

/*
 * Returns the subject of a line about `rule` (may be NULL) in cgroup `cgroup_id` (0: none), with
 * the active generation. Its cgroup is borrowed until cgroups_forget of that id.
 */
struct event_subject event_log_subject(const struct event_log *log, const struct rule *rule,
				       uint64_t cgroup_id);

#endif
