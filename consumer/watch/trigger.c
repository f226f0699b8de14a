/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch/trigger.h"

#include <errno.h>
#include <string.h>

#include "consumer/session/session_events.h"
#include "consumer/watch/binding.h"
#include "consumer/watch/trigger_events.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Of the running sessions, one owner may have this many. */
#define SESSIONS_OF_ONE (SESSIONS_MAX * 3 / 4)

static const struct ruleset *rules_of(const struct triggers *t)
{
	return t->log->active->set;
}

static struct budget *rule_budget(const struct triggers *t, const struct rule *rule)
{
	return &rules_of(t)->budgets[rule - rules_of(t)->rules->rules];
}

/* Returns the milliseconds until the next minute gives budget back. */
static uint64_t budget_retry_ms(uint64_t now_ns)
{
	return 60000 - now_ns / NSEC_PER_MSEC % 60000;
}

/* Returns whether the rule's budget is spent, and the owner's part of it is, too. */
static bool rule_is_spent(struct triggers *t, const struct watch *w, const struct rule *rule,
			  uint64_t now_ns)
{
	uint64_t max_ms = (uint64_t)rule->budget_s * MSEC_PER_SEC;
	uint64_t spent_ms = budget_spent_ms(rule_budget(t, rule), now_ns);

	return spent_ms >= max_ms &&
	       !shares_has_part(t->shares, w->owner, max_ms, spent_ms, now_ns);
}

/* Returns why the owner may not begin a session now: a `reason` of trigger.held, or NULL. */
static const char *owner_held(const struct triggers *t, struct owner *owner, uint64_t now_ns)
{
	uint64_t max_ms = (uint64_t)rules_of(t)->rules->budget_s * MSEC_PER_SEC;
	size_t running = 0;

	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		const struct session *s = t->sessions->running[i];

		running += s && owner && s->owner == owner;
	}
	if (running >= SESSIONS_OF_ONE)
		return "too_many_sessions";
	switch (shares_may_capture(t->shares, owner, max_ms, now_ns)) {
	case CAPTURE_OWNER_SPENT:
		return "budget_owner";
	case CAPTURE_ALL_SPENT:
		return "budget_all";
	default:
		return NULL;
	}
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

/*
 * Returns whether this trigger may begin a session now; *ret_broken is the session whose cooldown
 * it breaks, or 0. The cooldown does not hold a request.
 */
static bool may_begin(struct triggers *t, const struct trigger *trigger, uint64_t now_ns,
		      struct trigger_held *held, uint64_t *ret_broken)
{
	const struct watch *w = trigger->watch;
	const struct rule *rule = trigger->rule;
	const struct cooldown_key key = key_of(trigger);
	const char *why;

	*ret_broken = 0;
	if (w->session)
		*held = (struct trigger_held){
			"session_running",
			(w->session->end_ns - MIN(now_ns, w->session->end_ns)) / NSEC_PER_MSEC +
				100,
			w->session->result->id
		};
	else if (t->sessions->count >= SESSIONS_MAX ||
		 report_thread_queued(t->reporter) >= TRIGGER_QUEUED_MAX)
		*held = (struct trigger_held){ "too_many_sessions", 1000, 0 };
	else if (trigger->reason.kind != TRIGGER_REQUEST && rule &&
		 cooldown_holds(&t->cooldowns, &key, &trigger->reason, now_ns, held, ret_broken))
		return false;
	else if (rule && rule_is_spent(t, w, rule, now_ns))
		*held = (struct trigger_held){ "budget_rule", budget_retry_ms(now_ns), 0 };
	else if (rules_of(t) && (why = owner_held(t, w->owner, now_ns)) != NULL)
		*held = (struct trigger_held){
			why, strncmp(why, "budget", 6) ? 1000 : budget_retry_ms(now_ns), 0
		};
	else
		return true;
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

static int begin_session(struct triggers *t, const struct trigger *trigger,
			 struct session **ret_session)
{
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
		.during_ms = trigger->during_ms,
		.recorded_ns = w->recorded_ns,
		.owner = shares_ref(w->owner),
	};
	int r = session_begin(t->sessions, &start, ret_session);

	if (r < 0)
		shares_put(t->shares, start.owner);
	return r;
}

int trigger_fire(struct triggers *t, const struct trigger *trigger, struct session **ret_session,
		 struct trigger_held *ret_held)
{
	const struct cooldown_key key = key_of(trigger);
	uint64_t now_ns = clock_mono_ns(), broken;
	struct watch *w = trigger->watch;
	struct session *s;
	int r;

	if (!may_begin(t, trigger, now_ns, ret_held, &broken)) {
		hold_trigger(t, trigger, ret_held, now_ns);
		return -EAGAIN;
	}
	r = begin_session(t, trigger, &s);
	if (r < 0)
		return r;
	w->session = s;
	w->sessions++;
	schedule_sessions(t->schedule, (uint32_t)t->sessions->count);
	cooldown_flush(&t->cooldowns, &key, now_ns);
	if (trigger->reason.kind == TRIGGER_PRESSURE)
		trigger_events_pressure(t->log, trigger, s->result->id, broken);
	session_attach(t->sessions, s);
	session_events_start(t->sessions, s, t->log->lines);
	*ret_session = s;
	return 0;
}

/* Begins the cooldown of an ended session, unless its rule is gone. */
static void cool_down(struct triggers *t, const struct session *s)
{
	const struct session_result *r = s->result;
	const struct rule *rule =
		r->rule && rules_of(t) ? rules_find(rules_of(t)->rules, r->rule->name) : NULL;
	const struct cooldown_key key = {
		.rule = rule,
		.cgroup_id = r->cgroup_id,
		.cgroup = r->cgroup,
		.cause = trigger_reason_cause(&r->reason),
	};

	if (rule)
		cooldown_begin(&t->cooldowns, &key, r);
}

static void spend_budgets(struct triggers *t, const struct session *s)
{
	const struct session_result *r = s->result;
	uint32_t ms = (uint32_t)((r->stop_ns - r->start_ns) / NSEC_PER_MSEC);
	const struct rule *rule;

	shares_captured(t->shares, s->owner, r->stop_ns, ms);
	rule = r->rule && rules_of(t) ? rules_find(rules_of(t)->rules, r->rule->name) : NULL;
	if (rule)
		budget_spend(rule_budget(t, rule), r->stop_ns, ms);
}

/* Sets the watch back to the recorder. */
static void release_watch(struct watch *w, const struct session *s)
{
	w->recorded_ns = s->result->stop_ns;
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

		spend_budgets(t, s);
		cool_down(t, s);
		shares_put(t->shares, s->owner);
		if (w)
			release_watch(w, s);
		if (s->target.only_tgid)
			triggers_release_process(t, s->target.only_tgid);
		report_thread_put(t->reporter, TAKE_PTR(s->result));
		session_free(s);
		schedule_sessions(t->schedule, (uint32_t)t->sessions->count);
	}
	cooldowns_expire(&t->cooldowns, now_ns);
	if (sessions_settling(t->sessions))
		schedule_drain_soon(t->schedule);
}
