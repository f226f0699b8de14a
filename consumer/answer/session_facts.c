/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/session_facts.h"

#include <stdlib.h>

#include "consumer/evidence/cpu/session_neighbours.h"
#include "consumer/facts/facts_json.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

void session_facts_read_disks(struct session_result *s)
{
	s->disks = malloc(sizeof(*s->disks));
	if (s->disks)
		facts_disks_read(s->disks, "");
}

void session_facts_write(const struct session_result *s, const struct event_lines *lines)
{
	const struct event_subject subject = session_result_subject(s);

	if (!s->facts)
		return;
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		struct jsonw w;

		event_line_begin(lines, &w, "facts", &subject);
		facts_json_write(s->facts, (enum facts_source)i, s->cgroup, s->disks, &w);
		event_line_end(lines, &w);
	}
}

uint64_t session_facts_stalled_ms(const struct session_result *s)
{
	const struct trigger_reason *r = &s->reason;
	uint64_t stalled_ms = 0;

	if (r->kind != TRIGGER_PRESSURE)
		return 0;
	if (s->has_pressure_end)
		stalled_ms = psi_growth_us(&r->now, &s->pressure_end, r->when.full) / 1000;
	return stalled_ms + r->stall_ms;
}

static enum causes_trigger find_trigger(const struct trigger_reason *reason)
{
	static const enum causes_trigger of[RESOURCE_COUNT_] = {
		[RESOURCE_CPU] = CAUSES_CPU,
		[RESOURCE_MEMORY] = CAUSES_MEMORY,
		[RESOURCE_IO] = CAUSES_IO,
	};

	if (reason->kind == TRIGGER_OOM_KILL)
		return CAUSES_MEMORY;
	return reason->kind == TRIGGER_PRESSURE ? of[reason->when.resource] : CAUSES_OTHER;
}

/* Sets the users of the CPUs. Returns false if they were not counted. */
static bool find_cpus(const struct neighbours *n, struct causes_cpus *ret_cpus)
{
	const struct neighbour_time *most = NULL;

	if (!n || !n->lasted_ns)
		return false;
	*ret_cpus = (struct causes_cpus){
		.others_ms = n->beside_ns / NSEC_PER_MSEC,
		.own_ms = n->own_ns / NSEC_PER_MSEC,
		.ms = n->lasted_ns / NSEC_PER_MSEC,
		.own_cpus = n->own_cpus,
		.cpus = n->cpus,
	};
	for (size_t i = 0; i < n->count; i++)
		if (!most || n->items[i].beside_ns > most->beside_ns)
			most = &n->items[i];
	if (most) {
		ret_cpus->most_cgroups = most->row.path ? most->row.cgroups : 1;
		ret_cpus->most = !most->row.path	      ? most->name
				 : ret_cpus->most_cgroups > 1 ? most->row.path
							      : neighbour_rows_name(most->row.path);
		ret_cpus->most_ms = most->beside_ns / NSEC_PER_MSEC;
	}
	return true;
}

/* Fills in the known facts of the session; `cpus` is the storage for the users of the CPUs. */
static void make_case(const struct session_result *s, struct causes_cpus *cpus,
		      struct causes_case *ret_case)
{
	*ret_case = (struct causes_case){
		.facts = s->facts,
		.disks = s->disks,
		.cpus = find_cpus(neighbours_of(s->signals), cpus) ? cpus : NULL,
		.trigger = find_trigger(&s->reason),
		.stalled_ms = session_facts_stalled_ms(s),
	};
}

bool session_facts_cause(const struct session_result *s, enum cause_id *ret_id,
			 char text[CAUSES_TEXT_BYTES])
{
	struct causes_cpus cpus;
	struct causes_case c;

	make_case(s, &cpus, &c);
	return causes_find(&c, ret_id, text);
}

bool session_facts_say(const struct session_result *s, enum cause_id id,
		       char text[CAUSES_TEXT_BYTES])
{
	struct causes_cpus cpus;
	struct causes_case c;

	make_case(s, &cpus, &c);
	return causes_say(&c, id, text);
}
