/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/crossing.h"

#include "shared/tools/macro.h"

static const char *const by_names[] = {
	[CROSSING_BY_TRIGGER] = "trigger",
	[CROSSING_BY_SCAN] = "scan",
	[CROSSING_BY_READING] = "reading",
};

/*
 * Returns the growth since `from` that crosses the threshold. A scan point that is older than the
 * window requires proportionally more growth, because the stall counts as even between two points.
 * Exceptions: if the scan paused because no total moved, all of the growth may be recent; and if a
 * kernel trigger follows the threshold, its notice proves that the stall was within a window.
 */
static uint64_t threshold_us(const struct threshold *t, const struct psi_point *from,
			     const struct psi_point *now)
{
	uint64_t stall_us = t->stall_ms * 1000ULL, window_ns = t->window_ms * NSEC_PER_MSEC;
	uint64_t measured_ns = now->time_ns - from->time_ns;

	if (t->way == THRESHOLD_TRIGGER || from->paused || measured_ns <= window_ns)
		return stall_us;
	return stall_us * measured_ns / window_ns;
}

const struct psi_point *crossing_compare(const struct threshold *t, const struct psi_history *h,
					 const struct psi_point *now)
{
	uint64_t window_ns = t->window_ms * NSEC_PER_MSEC;
	const struct psi_point *from =
		psi_history_since(h, now->time_ns > window_ns ? now->time_ns - window_ns : 0);

	/* Count no stall twice: exclude the stall of the last crossing. */
	if (from && from->time_ns < t->crossed.time_ns)
		from = &t->crossed;
	if (!from || (t->full && !now->psi.has_full) ||
	    psi_growth_us(&from->psi, &now->psi, t->full) < threshold_us(t, from, now))
		return NULL;
	return from;
}

/*
 * The kernel may miss the crossing in a window of 2 s or more: a process that reads the pressure
 * file just when the averages are due takes over the update that the trigger needs (psi_show()
 * against psi_avgs_work() in kernel/sched/psi.c).
 */
bool crossing_is_certain(const struct threshold *t, const struct psi_point *last,
			 const struct psi_point *now)
{
	uint64_t window_ns = t->window_ms * NSEC_PER_MSEC;
	uint64_t windows = (now->time_ns - last->time_ns + window_ns - 1) / window_ns;

	return t->way == THRESHOLD_TRIGGER && last->time_ns >= t->crossed.time_ns &&
	       !(t->full && !now->psi.has_full) &&
	       psi_growth_us(&last->psi, &now->psi, t->full) >=
		       t->stall_ms * 1000ULL * MAX(windows, (uint64_t)1);
}

/*
 * A trigger fires at most once per window: a crossing that a scan or a reading found shortly before
 * is the same crossing.
 */
bool crossing_is_repeat(const struct threshold *t, uint64_t now_ns)
{
	return t->way == THRESHOLD_TRIGGER && t->crossed.time_ns &&
	       now_ns - t->crossed.time_ns < t->window_ms * NSEC_PER_MSEC / 4 * 3;
}

static void fire_rule(struct crossings *c, struct watch *w, const struct rule *rule,
		      const struct trigger_reason *reason)
{
	struct trigger trigger = { .watch = w, .rule = rule, .reason = *reason };
	struct trigger_held held;
	struct session *session;

	/*
	 * Pressure that continues during the session that it started is no new trigger. Pressure of
	 * another resource is a new trigger: it is held back, and reported.
	 */
	if (w->session && session_is_of(w->session, rule, trigger_reason_cause(reason)))
		return;
	trigger_fire(c->triggers, &trigger, &session, &held);
}

void crossing_act(struct crossings *c, struct threshold *t, const struct psi_point *from,
		  const struct psi_point *now, enum crossing_by by)
{
	struct watch *w = t->of->watch;
	struct trigger_reason reason = {
		.kind = TRIGGER_PRESSURE,
		.by = by_names[by],
		.pressure_fd = &t->of->file[t->resource].fd,
		.stall_ms = psi_growth_us(&from->psi, &now->psi, t->full) / 1000,
		.measured_ms = (now->time_ns - from->time_ns) / NSEC_PER_MSEC,
		.before = from->psi,
		.now = now->psi,
	};

	if (crossing_is_repeat(t, now->time_ns))
		return;
	t->crossed = *now;
	t->look_ns = 0;
	c->noticed += by == CROSSING_BY_TRIGGER;
	c->missed += t->way == THRESHOLD_TRIGGER && by != CROSSING_BY_TRIGGER;
	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++) {
			reason.when = w->bindings[b].rule->when[k];
			if (threshold_is(t, &reason.when))
				fire_rule(c, w, w->bindings[b].rule, &reason);
		}
}
