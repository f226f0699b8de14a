/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/telemetry/kernel_errors.h"

#include <stdio.h>
#include <string.h>

#include "consumer/io/schedule.h"
#include "consumer/io/turn.h"
#include "consumer/kernel/counts.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/output/event_log.h"
#include "consumer/watch/watch.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/* The name of each kind, and a remedy for the operator. */
static const struct {
	const char *code, *what, *hint;
} kinds[] = {
	[ERROR_SAMPLES_FULL] = { "samples_full", "the samples ring was full",
				 "load with a larger --samples-ring-kib" },
	[ERROR_EVENTS_FULL] = { "events_full", "the events ring was full",
				"load with a larger --events-ring-kib; a scan finds the missed "
				"ones" },
	[ERROR_USER_STACK] = { "user_stack", "a user stack could not be read",
			       "the sample counts without it; its quality shows that" },
	[ERROR_KERNEL_STACK] = { "kernel_stack", "a kernel stack could not be read",
				 "the sample counts without it; its quality shows that" },
	[ERROR_TARGETS_FULL] = { "targets_full", "the table of processes was full",
				 "load with a larger --targets" },
	[ERROR_WATCHES_FULL] = { "watches_full", "a cgroup below a watched one is not sampled",
				 "load with a larger --watches, or watch fewer nested cgroups" },
};

static void fill_line(void *context, struct jsonw *w)
{
	const struct error_record *e = context;
	char comm[COMM_BYTES];

	snprintf(comm, sizeof(comm), "%.*s", COMM_BYTES - 1, e->comm);
	if (e->error)
		jsonw_string(w, "error", strerrorname_np(-e->error));
	jsonw_u64(w, "pid", e->tgid);
	jsonw_string(w, "comm", comm);
	jsonw_u64_nonzero(w, "space_bytes", e->space);
	if (e->slot != NO_SLOT)
		jsonw_u64(w, "slot", e->slot);
	jsonw_u64(w, "suppressed", e->suppressed);
}

static void take_error(void *context, const void *record, size_t bytes)
{
	struct kernel_errors *k = context;
	const struct ruleset *set = k->log->active->set;
	const struct error_record *e = record;
	struct event_subject subject = {};

	if (bytes < sizeof(*e) || e->kind >= ARRAY_SIZE(kinds) || !kinds[e->kind].code) {
		k->counts->bad_records++;
		return;
	}
	if (e->rule < set->rules->count)
		subject = event_log_subject(k->log, &set->rules->rules[e->rule], 0);
	if (e->slot < k->pins->abi.slots && k->watches->by_slot[e->slot]) {
		subject.cgroup = k->watches->by_slot[e->slot]->path;
		subject.cgroup_id = k->watches->by_slot[e->slot]->cgroup_id;
		subject.container = container_parse(subject.cgroup);
	}
	event_line_error(k->log->lines, &subject, kinds[e->kind].code, kinds[e->kind].hint,
			 fill_line, (void *)e,
			 "%s on CPU %u (%u more like it since the last such line)",
			 kinds[e->kind].what, e->cpu, e->suppressed);
	if (e->kind == ERROR_EVENTS_FULL)
		schedule_repair_soon(k->schedule);
}

void kernel_errors_drain(struct kernel_errors *k)
{
	if (ring_used(&k->pins->errors))
		ring_drain(&k->pins->errors, turn_until_ns(), take_error, k);
}
