/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_facts.h"

#include <stdio.h>
#include <string.h>

#include "consumer/answer/session_facts.h"
#include "consumer/evidence/cpu/session_neighbours.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static const struct {
	const char *source; /* of its line facts; NULL: its line is of the neighbours */
	enum finding_cause finding;
	bool limit; /* something withholds a resource, also from a cgroup that is alone */
} causes[] = {
	[CAUSE_ID_cpu_quota] = { "cpu", FINDING_CPU_QUOTA, true },
	[CAUSE_ID_own_demand] = { NULL, FINDING_CPU_DEMAND, false },
	[CAUSE_ID_stolen] = { "host", FINDING_STOLEN, true },
	[CAUSE_ID_neighbour] = { NULL, FINDING_CPU_NEIGHBOUR, false },
	[CAUSE_ID_memory_limit] = { "memory", FINDING_MEMORY_LIMIT, true },
	[CAUSE_ID_disk_limit] = { "io", FINDING_DISK_LIMIT, true },
	[CAUSE_ID_disk] = { "io", FINDING_DISK, false },
	[CAUSE_ID_pids_limit] = { "pids", FINDING_PIDS_LIMIT, false },
	[CAUSE_ID_files_limit] = { "pids", FINDING_FILES_LIMIT, false },
};

/* Returns the resource whose lack began the session; FINDINGS_ANY: something else did. */
static enum findings_resource find_resource(const struct trigger_reason *reason)
{
	static const enum findings_resource of[RESOURCE_COUNT_] = {
		[RESOURCE_CPU] = FINDINGS_CPU,
		[RESOURCE_MEMORY] = FINDINGS_MEMORY,
		[RESOURCE_IO] = FINDINGS_IO,
	};

	if (reason->kind == TRIGGER_OOM_KILL)
		return FINDINGS_MEMORY;
	return reason->kind == TRIGGER_PRESSURE ? of[reason->when.resource] : FINDINGS_ANY;
}

/* Returns the finding of the resource that explains most; NULL: none. */
static struct finding *find_most(struct findings *all, enum findings_resource resource)
{
	struct finding *most = NULL;

	for (size_t i = 0; i < all->count; i++)
		if (findings_resource_of(&all->items[i]) == resource &&
		    (!most || all->items[i].ns > most->ns))
			most = &all->items[i];
	return most;
}

/* Puts the sentence of the facts before that of the finding. */
static void say_fact(struct finding *f, const char *fact)
{
	char says[FINDINGS_SAYS_BYTES];

	if (!strncmp(f->says, fact, strlen(fact)))
		return;
	if (snprintf(says, sizeof(says), "%s; %s", fact, f->says) > 0)
		memcpy(f->says, says, sizeof(says));
}

/* Returns for how long the facts prove a cause; UINT64_MAX: they do not count it in time. */
static uint64_t counted_ns(const struct session_result *s, enum cause_id id)
{
	const struct neighbours *n = neighbours_of(s->signals);
	uint64_t value;

	if (id == CAUSE_ID_cpu_quota &&
	    facts_phases_get(s->facts, FACTS_DURING, FACT_CPU_THROTTLED_TIME, &value))
		return value * NSEC_PER_USEC;
	if (id == CAUSE_ID_stolen && n && n->cpus &&
	    facts_phases_get(s->facts, FACTS_DURING, FACT_HOST_STOLEN, &value))
		return value * NSEC_PER_MSEC / n->cpus;
	return UINT64_MAX;
}

/* Returns whether the process that is at its limit at the end was there at the trigger too. */
static bool is_at_limit_throughout(const struct facts_phases *facts)
{
	const struct facts *begin = &facts->at[FACTS_TRIGGER], *end = &facts->at[FACTS_END];
	uint64_t pid, open, max, now;

	return facts_get(begin, FACT_FILES_PID, &pid) && facts_get(end, FACT_FILES_PID, &now) &&
	       pid == now && facts_get(begin, FACT_FILES_OPEN, &open) &&
	       facts_get(begin, FACT_FILES_MAX, &max) && open >= max;
}

/*
 * Judges a process with all of its descriptors open. It does harm for certain where connections
 * wait to be accepted: they are its consequence. Else it may do without more.
 */
static void judge_files(struct findings_search *s, struct finding *f)
{
	if (!is_at_limit_throughout(s->session->facts)) {
		f->level = FINDINGS_LIKELY;
		f->proof = "it was there at the end, and not at the trigger";
	} else if (!findings_get(&s->found, FINDING_ACCEPT_QUEUE)) {
		f->level = FINDINGS_LIKELY;
		f->proof = "the kernel counts the open descriptors; a call that failed was not "
			   "seen";
	}
}

/* Adds a cause, for as long as it counts, the stall lasted, or the session. */
static void add_fact(struct findings_search *s, enum cause_id id, const char *fact)
{
	uint64_t stalled_ns = session_facts_stalled_ms(s->session) * NSEC_PER_MSEC;
	uint64_t length_ns = s->found.time_ns[FINDINGS_SESSION];
	struct finding f = {
		.cause = causes[id].finding,
		.lasts = true,
		.ns = MIN(stalled_ns ? stalled_ns : counted_ns(s->session, id), length_ns),
		.evidence = { .type = causes[id].source ? "facts" : "neighbour" },
	};

	if (causes[id].source) {
		f.evidence.key = "source";
		snprintf(f.evidence.value, sizeof(f.evidence.value), "%s", causes[id].source);
	} else {
		f.evidence.signal = "neighbours";
		f.level = FINDINGS_LIKELY;
		f.proof = FINDINGS_BY_TICKS;
	}
	snprintf(f.says, sizeof(f.says), "%s", fact);
	findings_add(&s->found, &f);
}

/* Makes `root` the only root; with `keep` not if there is one already: running code. */
static void make_root(struct findings *all, struct finding *root, bool keep)
{
	for (size_t i = 0; i < all->count; i++) {
		if (keep && all->items[i].is_root)
			return;
		all->items[i].is_root = false;
	}
	root->is_root = true;
}

void find_facts(struct findings_search *s, bool measured)
{
	enum findings_resource resource = find_resource(&s->session->reason);
	struct finding *f = NULL, *root = NULL;
	char fact[CAUSES_TEXT_BYTES];
	enum cause_id id;
	bool known = session_facts_cause(s->session, &id, fact);

	if (known) {
		f = findings_get(&s->found, causes[id].finding);
		if (f)
			say_fact(f, fact);
		else if (resource == FINDINGS_ANY
				 ? !measured || id == CAUSE_ID_stolen || id == CAUSE_ID_files_limit
				 : causes[id].limit || !find_most(&s->found, resource))
			add_fact(s, id, fact);
		f = findings_get(&s->found, causes[id].finding);
	}
	if (f && id == CAUSE_ID_files_limit)
		judge_files(s, f);
	if (resource == FINDINGS_ANY) {
		if (f && id == CAUSE_ID_files_limit)
			make_root(&s->found, f, false);
		return;
	}
	root = f && causes[id].limit ? f : find_most(&s->found, resource);
	if (!root)
		root = f;
	if (root)
		make_root(&s->found, root, resource == FINDINGS_CPU && !(f && causes[id].limit));
}
