/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/quiet_follow.h"

#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

static bool is_of(const struct quiet_threshold *t, const struct rule_when *when)
{
	return when->quiet && t->milli_pct == when->milli_pct && t->window_ms == when->window_ms;
}

static struct quiet_threshold *find_threshold(const struct quiet *q, const struct rule_when *when)
{
	for (uint32_t i = 0; i < q->count; i++)
		if (is_of(&q->thresholds[i], when))
			return &q->thresholds[i];
	return NULL;
}

/* Finds or adds the threshold, creating *quiet for the first one. NULL without memory. */
static struct quiet_threshold *want_threshold(struct quiet **quiet, const struct rule_when *when)
{
	struct quiet_threshold *t, *more;

	if (!*quiet)
		*quiet = calloc(1, sizeof(**quiet));
	if (!*quiet)
		return NULL;
	t = find_threshold(*quiet, when);
	if (t)
		return t;
	more = reallocarray((*quiet)->thresholds, (*quiet)->count + 1, sizeof(*more));
	if (!more)
		return NULL;
	(*quiet)->thresholds = more;
	t = &more[(*quiet)->count++];
	*t = (struct quiet_threshold){ .milli_pct = when->milli_pct, .window_ms = when->window_ms };
	return t;
}

static void drop_unwanted(struct quiet *q)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < q->count; i++)
		if (q->thresholds[i].wanted)
			q->thresholds[kept++] = q->thresholds[i];
	q->count = kept;
}

/* Marks and adds the thresholds of this rule. */
static void want_rule(const struct watch *w, const struct rule *rule, struct quiet **quiet)
{
	for (uint32_t k = 0; k < rule->n_when; k++) {
		struct quiet_threshold *t;

		if (!rule->when[k].quiet)
			continue;
		t = want_threshold(quiet, &rule->when[k]);
		if (t)
			t->wanted = true;
		else
			log_warning("no memory to follow the CPU time of %s: not followed",
				    w->path);
	}
}

void quiet_follow_changed(const struct watch *w, struct quiet **quiet)
{
	for (uint32_t i = 0; *quiet && i < (*quiet)->count; i++)
		(*quiet)->thresholds[i].wanted = false;
	for (size_t b = 0; !w->root && b < w->n_bindings; b++)
		want_rule(w, w->bindings[b].rule, quiet);
	if (!*quiet)
		return;
	drop_unwanted(*quiet);
	if ((*quiet)->count)
		return;
	quiet_follow_free(*quiet);
	*quiet = NULL;
}

void quiet_follow_free(struct quiet *q)
{
	if (q)
		free(q->thresholds);
	free(q);
}

static void fire_threshold(struct quiet_threshold *t, const struct quiet_window *window,
			   struct watch *w, struct triggers *triggers)
{
	struct trigger trigger = {
		.watch = w,
		.reason = { .kind = TRIGGER_QUIET,
			    .cpu_us = window->cpu_us,
			    .usual_us = window->usual_us,
			    .measured_ms = window->measured_ms,
			    .began_ms = window->began_ms },
	};

	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++) {
			trigger.rule = w->bindings[b].rule;
			trigger.reason.when = trigger.rule->when[k];
			if (is_of(t, &trigger.reason.when))
				habit_fire(t->begun_ns, &t->fired, &trigger, triggers);
		}
}

/* Returns whether the cgroup is quiet by this threshold; *ret_window is the compared window. */
static bool is_crossed(const struct quiet *q, const struct quiet_threshold *t,
		       struct quiet_window *ret_window)
{
	return quiet_series_window(&q->series, t->window_ms, ret_window) &&
	       quiet_series_is_quiet(&q->series, ret_window, t->milli_pct);
}

static void check_thresholds(struct quiet *q, struct watch *w, struct triggers *triggers)
{
	uint64_t from_ms = 0;

	for (uint32_t i = 0; i < q->count; i++) {
		struct quiet_threshold *t = &q->thresholds[i];
		struct quiet_window window;

		if (!is_crossed(q, t, &window)) {
			t->fired = false;
			continue;
		}
		from_ms = from_ms ? MIN(from_ms, window.from_ms) : window.from_ms;
		if (!t->fired)
			fire_threshold(t, &window, w, triggers);
	}
	if (quiet_series_settle(&q->series, from_ms))
		for (uint32_t i = 0; i < q->count; i++)
			q->thresholds[i].fired = false;
}

void quiet_follow_read(struct quiet *q, struct watch *w, struct triggers *triggers)
{
	const struct facts *newest = facts_record_until(&w->facts, UINT64_MAX);
	uint64_t cpu_us;

	if (!newest || newest->time_ns <= q->read_ns || !facts_get(newest, FACT_CPU_USAGE, &cpu_us))
		return;
	/* All its processes have ended since, and others have started: this is no stall. */
	if (w->emptied_ns > q->read_ns)
		quiet_series_reset(&q->series);
	q->read_ns = newest->time_ns;
	if (quiet_series_add(&q->series, newest->time_ns / NSEC_PER_MSEC, cpu_us))
		check_thresholds(q, w, triggers);
}

/* Returns whether a rule of the watch requests it. */
static bool is_asked(const struct watch *w)
{
	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++)
			if (w->bindings[b].rule->when[k].quiet)
				return true;
	return false;
}

static void write_state(const struct quiet *q, struct jsonw *json)
{
	struct quiet_window window;
	const char *state = "follows";

	if (!quiet_series_window(&q->series, q->thresholds[0].window_ms, &window)) {
		jsonw_string(json, "state", "learns");
		return;
	}
	if (q->series.quiet_ms)
		state = "quiet";
	else if (quiet_series_is_idle(&window))
		state = "idle";
	jsonw_string(json, "state", state);
	jsonw_u64(json, "measured_ms", window.measured_ms);
	jsonw_u64(json, "cpu_ms", window.cpu_us / 1000);
	jsonw_u64(json, "mean_cpu_ms", window.usual_us / 1000);
}

void quiet_follow_write(const struct quiet *q, const struct watch *w, bool state,
			struct jsonw *json)
{
	if (!is_asked(w))
		return;
	jsonw_object(json, "quiet");
	jsonw_string(json, "by", q ? "reading" : "none");
	jsonw_string(json, "reason",
		     q	       ? "the CPU time in cpu.stat, as read with the facts at the drains"
		     : w->root ? "the root cgroup has the CPU time of the whole system"
			       : "no memory to follow it");
	if (q && state)
		write_state(q, json);
	jsonw_object_end(json);
}
