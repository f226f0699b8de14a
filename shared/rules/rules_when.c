/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_when.c: reads the thresholds of a rule; docs/rules.md describes them to operators. */
#include <stdio.h>
#include <string.h>

#include "shared/rules/rules_keys.h"
#include "shared/tools/macro.h"

#define WINDOW_MIN_MS 500
#define WINDOW_MAX_MS 10000
#define MILLI_PERCENT 100000 /* 100 %, in thousandths of a percent */

/* A threshold before its keys are compared with each other. */
struct when_draft {
	struct rule_when when;
	uint32_t window_ms; /* 0: absent or faulty */
	uint32_t ms[2];	    /* some, full */
	uint32_t milli_percent[2];
	uint32_t quiet_milli_percent, stuck_milli_percent;
};

enum {
	WHEN_PRESSURE,
	WHEN_SOME_MS,
	WHEN_FULL_MS,
	WHEN_SOME_PCT,
	WHEN_FULL_PCT,
	WHEN_WINDOW,
	WHEN_QUIET,
	WHEN_STUCK,
};

#define PRESSURE_RIGHT "\"cpu\", \"memory\" or \"io\""
#define PERCENT_RIGHT  "a number from 0.1 to 100"
#define QUIET_RIGHT    "a number from 0.1 to 50"

static void set_pressure(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	const char *name = value->text;
	struct when_draft *d = target;

	for (unsigned int i = 0; i < RESOURCE_COUNT_; i++) {
		if (strcmp(name, rules_resource_name((enum resource)i)) != 0)
			continue;
		d->when.resource = (enum resource)i;
		return;
	}
	rules_collect_wrong(&p->collect, value, PRESSURE_RIGHT);
}

#define DRAFT(member) offsetof(struct when_draft, member)

static const struct rules_key when_keys[] = {
	[WHEN_PRESSURE] = { "pressure", KEY_STRING, .max = 64, .right = PRESSURE_RIGHT,
			    .set = set_pressure },
	[WHEN_SOME_MS] = { "some_ms", KEY_UINT, .min = 1, .max = WINDOW_MAX_MS,
			   .offset = DRAFT(ms[0]) },
	[WHEN_FULL_MS] = { "full_ms", KEY_UINT, .min = 1, .max = WINDOW_MAX_MS,
			   .offset = DRAFT(ms[1]) },
	[WHEN_SOME_PCT] = { "some_pct", KEY_PERCENT, .offset = DRAFT(milli_percent[0]),
			    .right = PERCENT_RIGHT },
	[WHEN_FULL_PCT] = { "full_pct", KEY_PERCENT, .offset = DRAFT(milli_percent[1]),
			    .right = PERCENT_RIGHT },
	[WHEN_WINDOW] = { "window_ms", KEY_UINT, .min = WINDOW_MIN_MS, .max = WINDOW_MAX_MS,
			  .offset = DRAFT(window_ms) },
	[WHEN_QUIET] = { "quiet_pct", KEY_PERCENT, .offset = DRAFT(quiet_milli_percent),
			 .right = QUIET_RIGHT },
	[WHEN_STUCK] = { "stuck_threads_pct", KEY_PERCENT, .offset = DRAFT(stuck_milli_percent),
			 .right = PERCENT_RIGHT },
};

/* Fills d->when for a pressure threshold with valid keys. */
static void settle_threshold(struct rules_parse_state *p, const struct json_node *value,
			     struct when_draft *d)
{
	struct rule_when *w = &d->when;

	w->window_ms = d->window_ms;
	w->full = d->ms[1] || d->milli_percent[1];
	w->percent = d->milli_percent[0] || d->milli_percent[1];
	if (w->percent) {
		uint64_t part = (uint64_t)d->milli_percent[w->full] * w->window_ms;

		w->stall_ms = (uint32_t)((part + MILLI_PERCENT - 1) / MILLI_PERCENT);
		return;
	}
	w->stall_ms = d->ms[w->full];
	if (w->stall_ms > w->window_ms)
		rules_collect_add(
			&p->collect, json_node_member(value, w->full ? "full_ms" : "some_ms"),
			"is %u; must be at most window_ms, here %u", w->stall_ms, w->window_ms);
}

/* Fills d->when for a threshold of CPU time. `seen` has the bits of the keys in `value`. */
static void settle_quiet(struct rules_parse_state *p, const struct json_node *value, uint32_t seen,
			 struct when_draft *d)
{
	struct rule_when *w = &d->when;

	w->quiet = true;
	w->milli_pct = d->quiet_milli_percent;
	w->window_ms = seen & 1u << WHEN_WINDOW ? d->window_ms : RULE_QUIET_WINDOW_MIN_MS;
	if (w->milli_pct > RULE_QUIET_MILLI_PCT_MAX)
		rules_collect_wrong(&p->collect, json_node_member(value, "quiet_pct"), QUIET_RIGHT);
	if (w->window_ms < RULE_QUIET_WINDOW_MIN_MS)
		rules_collect_add(
			&p->collect, json_node_member(value, "window_ms"),
			"is %u; must be at least %d with quiet_pct, because CPU time is read that "
			"often",
			w->window_ms, RULE_QUIET_WINDOW_MIN_MS);
}

/* Adds a fault if too many or too few keys define the kind of the threshold. */
static void check_kinds(struct rules_parse_state *p, const struct json_node *value, uint32_t seen)
{
	const uint32_t kinds =
		1u << WHEN_SOME_MS | 1u << WHEN_FULL_MS | 1u << WHEN_SOME_PCT | 1u << WHEN_FULL_PCT;

	if (seen & 1u << WHEN_STUCK) {
		if (seen & ~(1u << WHEN_STUCK))
			rules_collect_add(&p->collect, value,
					  "has stuck_threads_pct and other keys; must have it "
					  "alone");
		return;
	}
	if (seen & 1u << WHEN_QUIET) {
		if (seen & (kinds | 1u << WHEN_PRESSURE))
			rules_collect_add(
				&p->collect, value,
				"has quiet_pct and a threshold of pressure; must have one "
				"of the two");
		return;
	}
	if (!(seen & 1u << WHEN_PRESSURE))
		rules_collect_add(&p->collect, value,
				  "lacks \"pressure\"; must have it, " PRESSURE_RIGHT
				  ", quiet_pct or stuck_threads_pct");
	if (__builtin_popcount(seen & kinds) != 1)
		rules_collect_add(&p->collect, value,
				  "has %d thresholds; must have exactly one of some_ms, full_ms, "
				  "some_pct, full_pct",
				  __builtin_popcount(seen & kinds));
}

static void take_threshold(struct rules_parse_state *p, const struct json_node *value,
			   struct rule *r)
{
	struct when_draft d = { 0 };
	size_t before = p->collect.count;
	uint32_t seen;

	if (!json_node_is(value, JSON_OBJECT)) {
		rules_collect_wrong(&p->collect, value, "an object with pressure and a threshold");
		return;
	}
	seen = rules_keys_take(p, value, when_keys, ARRAY_SIZE(when_keys), &d);
	check_kinds(p, value, seen);
	if (!(seen & 1u << WHEN_WINDOW))
		d.window_ms = RULES_WINDOW_DEFAULT_MS;
	if (p->collect.count != before)
		return;
	if (seen & 1u << WHEN_STUCK)
		d.when = (struct rule_when){ .stuck = true, .milli_pct = d.stuck_milli_percent };
	else if (seen & 1u << WHEN_QUIET)
		settle_quiet(p, value, seen, &d);
	else
		settle_threshold(p, value, &d);
	r->when[r->n_when++] = d.when;
}

void rules_when_set(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	uint32_t n = json_node_elements(value);

	if (n > RULE_WHEN_MAX) {
		rules_collect_add(&p->collect, value, "has %u thresholds; must have at most %d", n,
				  RULE_WHEN_MAX);
		return;
	}
	((struct rule *)target)->n_when = 0; /* replaces the thresholds of `defaults` */
	for (const struct json_node *m = json_node_first(value); m; m = json_node_next(m))
		take_threshold(p, m, target);
}
