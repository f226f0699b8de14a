/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/trigger/trigger.h"

#include <errno.h>
#include <string.h>

#include "consumer/session/session_events.h"
#include "consumer/trigger/capture_budget.h"
#include "consumer/trigger/trigger_events.h"
#include "consumer/watch/binding.h"
#include "consumer/watch/watch_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* One owner may have this many of the running sessions. */
#define SESSIONS_OF_ONE (SESSIONS_MAX * 3 / 4)

static const struct ruleset *rules_of(const struct triggers *t)
{
	return t->log->active->set;
}

/* Returns the budgets that a session of `rule` (of the set in force, or NULL) uses. */
static struct capture_budget budget_of(const struct triggers *t, const struct rule *rule,
				       struct owner *owner)
{
	return (struct capture_budget){ rules_of(t), t->shares, rule, owner };
}

/* Returns whether the owner has as many running sessions as one owner may have. */
static bool has_many_sessions(const struct triggers *t, const struct owner *owner)
{
	size_t running = 0;

	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		const struct session *s = t->sessions->running[i];

		running += s && owner && s->owner == owner;
	}
	return running >= SESSIONS_OF_ONE;
}

/* Returns the wanted length of the session, before any budget. */
static uint32_t wanted_ms(const struct trigger *trigger)
{
	if (trigger->during_ms)
		return trigger->during_ms;
	return trigger->rule ? trigger->rule->during_ms : SESSION_DURING_MS;
}

static struct cooldown_key key_of(const struct trigger *trigger)
{
	return (struct cooldown_key){
		.rule = trigger->rule,
		.cgroup_id = trigger->watch->cgroup_id,
		.cgroup = trigger->watch->path,
		.cause = trigger_reason_cause(&trigger->reason),
	};
}

/* A session that may begin. */
struct plan {
	uint32_t during_ms;
	const char *during_reason; /* why it is shorter than wanted, or NULL */
	uint64_t broken;	   /* session with the cooldown that it breaks, or 0 */
};

/*
 * Fits the session into its budgets. False if they leave nothing: *held has the kind and the time.
 */
static bool plan_length(struct triggers *t, const struct trigger *trigger, uint64_t now_ns,
			struct plan *plan, struct trigger_held *held)
{
	const struct capture_budget budget = budget_of(t, trigger->rule, trigger->watch->owner);
	const struct capture_limit *limit;
	uint64_t left_ms = capture_budget_left_ms(&budget, now_ns, &limit);
	uint32_t ms = wanted_ms(trigger);

	if (left_ms < CAPTURE_BUDGET_LEAST_MS) {
		*held = (struct trigger_held){ limit->held,
					       capture_budget_retry_ms(&budget, now_ns), 0 };
		return false;
	}
	plan->during_ms = (uint32_t)MIN((uint64_t)ms, left_ms);
	plan->during_reason = plan->during_ms < ms ? limit->during : NULL;
	return true;
}

/*
 * Returns whether this trigger may begin a session now, and plans it; otherwise *held has the
 * reason. The cooldown does not hold every trigger (trigger_reason_cools).
 */
static bool may_begin(struct triggers *t, const struct trigger *trigger, uint64_t now_ns,
		      struct plan *plan, struct trigger_held *held)
{
	const struct watch *w = trigger->watch;
	const struct cooldown_key key = key_of(trigger);

	*plan = (struct plan){ 0 };
	if (w->session)
		*held = (struct trigger_held){
			"session_running",
			(w->session->end_ns - MIN(now_ns, w->session->end_ns)) / NSEC_PER_MSEC +
				100,
			w->session->result->id
		};
	else if (t->sessions->count >= SESSIONS_MAX ||
		 report_thread_queued(t->reporter) >= TRIGGER_QUEUED_MAX ||
		 has_many_sessions(t, w->owner))
		*held = (struct trigger_held){ "too_many_sessions", 1000, 0 };
	else if (trigger_reason_cools(&trigger->reason) && trigger->rule &&
		 cooldown_holds(&t->cooldowns, &key, &trigger->reason, now_ns, held, &plan->broken))
		return false;
	else
		return plan_length(t, trigger, now_ns, plan, held);
	return false;
}

static void hold_trigger(struct triggers *t, const struct trigger *trigger,
			 const struct trigger_held *held, uint64_t now_ns)
{
	const struct cooldown_key key = key_of(trigger);
	struct session *running = trigger->watch->session;

	t->held++;
	if (running)
		held_triggers_add(&running->result->held[key.cause], &trigger->reason);
	cooldown_hold(&t->cooldowns, &key, &trigger->reason, held, now_ns);
}

static int begin_session(struct triggers *t, const struct trigger *trigger, const struct plan *plan,
			 struct session **ret_session)
{
	const struct capture_budget budget = budget_of(t, trigger->rule, trigger->watch->owner);
	const struct watch *w = trigger->watch;
	const struct session_start start = {
		.reason = &trigger->reason,
		.rule = trigger->rule,
		.cgroup = w->path,
		.cgroup_id = w->cgroup_id,
		.slot = w->slot,
		.epoch = w->epoch,
		.root = w->root,
		.by_process = w->by_process,
		.shared = watch_shares_slot(w, trigger->rule, trigger->only_tgid),
		.only_tgid = trigger->only_tgid,
		.during_ms = plan->during_ms,
		.during_reason = plan->during_reason,
		.recorded_ns = w->recorded_ns,
		.owner = shares_ref(w->owner),
		.counters = &w->counters,
		.facts = &w->facts,
	};
	int r = session_begin(t->sessions, &start, ret_session);

	if (r < 0) {
		shares_put(t->shares, start.owner);
		return r;
	}
	capture_budget_reserve(&budget, (*ret_session)->result->start_ns, plan->during_ms);
	return 0;
}

/* Passes the session count to the scheduler and the report thread. */
static void tell_count(const struct triggers *t)
{
	schedule_sessions(t->schedule, (uint32_t)t->sessions->count);
	report_thread_running(t->reporter, t->sessions->count);
}

int trigger_fire(struct triggers *t, const struct trigger *trigger, struct session **ret_session,
		 struct trigger_held *ret_held)
{
	const struct cooldown_key key = key_of(trigger);
	uint64_t now_ns = clock_mono_ns();
	struct watch *w = trigger->watch;
	struct plan plan;
	struct session *s;
	int r;

	if (!may_begin(t, trigger, now_ns, &plan, ret_held)) {
		hold_trigger(t, trigger, ret_held, now_ns);
		return -EAGAIN;
	}
	/* The session takes the cgroups below from its first tick on. */
	watch_tree_settle(t->watches);
	r = begin_session(t, trigger, &plan, &s);
	if (r < 0)
		return r;
	w->session = s;
	w->sessions++;
	tell_count(t);
	schedule_drain_soon(t->schedule); /* the first sample shows the moment of the trigger */
	cooldown_flush(&t->cooldowns, &key, now_ns);
	if (trigger->reason.kind == TRIGGER_PRESSURE)
		trigger_events_pressure(t->log, trigger, s->result->id, plan.broken);
	if (trigger->begun)
		trigger->begun(trigger->context, s);
	session_look_first(t->sessions);
	session_attach(t->sessions, s);
	session_events_start(t->sessions, s, t->log->lines);
	*ret_session = s;
	return 0;
}

void trigger_hold(struct triggers *t, const struct trigger *trigger,
		  const struct trigger_held *held)
{
	hold_trigger(t, trigger, held, clock_mono_ns());
}

/* Begins the cooldown of an ended session, and corrects its budgets. `rule`: NULL if it is gone. */
static void settle_session(struct triggers *t, const struct session *s, const struct rule *rule)
{
	const struct session_result *r = s->result;
	const struct capture_budget budget = budget_of(t, rule, s->owner);
	const struct cooldown_key key = {
		.rule = rule,
		.cgroup_id = r->cgroup_id,
		.cgroup = r->cgroup,
		.cause = trigger_reason_cause(&r->reason),
	};

	capture_budget_settle(&budget, r->start_ns, s->during_ms, r->stop_ns);
	if (rule)
		cooldown_begin(&t->cooldowns, &key, r);
}

/* Returns the rule of the set in force with the name of the session's rule. */
static const struct rule *rule_of(const struct triggers *t, const struct session *s)
{
	const struct rule *rule = s->result->rule;

	return rule && rules_of(t) ? rules_find(rules_of(t)->rules, rule->name) : NULL;
}

/* Returns the watch to the recorder. */
static void release_watch(struct watch *w, const struct session *s)
{
	const struct facts_phases *facts = s->result->facts;

	w->recorded_ns = s->result->stop_ns;
	if (facts && facts_phases_whole(facts))
		facts_record_add(&w->facts, &facts->place, &facts->at[FACTS_END]);
	w->session = NULL;
	w->requested = false;
	bindings_release(w, "no_process");
}

static bool is_captured(const struct triggers *t, uint32_t tgid)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		const struct session *s = t->sessions->running[i];

		if (s && s->target.only_tgid == tgid)
			return true;
	}
	return false;
}

void triggers_release_process(const struct triggers *t, uint32_t tgid)
{
	struct process *p;
	uint64_t id;

	if (is_captured(t, tgid))
		return;
	idmap_for_each (&t->watches->processes->by_id, i, id, p) {
		if (!p->requested || p->tgid != tgid)
			continue;
		p->requested = false;
		process_targets_match(t->targets, p);
	}
}

void triggers_step(struct triggers *t, uint64_t now_ns)
{
	struct session *s;

	while ((s = sessions_take_settled(t->sessions, now_ns))) {
		struct watch *w = watches_at(t->watches, s->target.slot, s->target.epoch);

		settle_session(t, s, rule_of(t, s));
		shares_put(t->shares, s->owner);
		if (w)
			release_watch(w, s);
		if (s->target.only_tgid)
			triggers_release_process(t, s->target.only_tgid);
		report_thread_put(t->reporter, TAKE_PTR(s->result));
		session_free(s);
		tell_count(t);
	}
	cooldowns_expire(&t->cooldowns, now_ns);
	if (sessions_settling(t->sessions))
		schedule_drain_soon(t->schedule);
}
