/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/trigger/cooldown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/trigger/trigger_events.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/*
 * Time between lines about held triggers of one key: the rule's cooldown, within these limits. A
 * threshold can be crossed ten times a second.
 */
#define QUIET_MIN_NS (10 * NSEC_PER_SEC)
#define QUIET_MAX_NS (60 * NSEC_PER_SEC)

/* Least time between two checks of all entries. */
#define LOOK_EVERY_NS NSEC_PER_SEC

#define DROP_AT_ONCE 64

static uint64_t cooldown_ns(const struct rule *rule)
{
	return rule ? rule->cooldown_ms * NSEC_PER_MSEC : 0;
}

/* Returns when the next line about the entry may be written; 0: at once. */
static uint64_t quiet_until_ns(const struct cooldown *e)
{
	uint64_t quiet_ns = MAX(cooldown_ns(e->rule), (uint64_t)QUIET_MIN_NS);

	return e->logged_ns ? e->logged_ns + MIN(quiet_ns, (uint64_t)QUIET_MAX_NS) : 0;
}

/* Returns when the entry, if it holds no sums, is no longer needed. */
static uint64_t over_ns(const struct cooldown *e)
{
	uint64_t cool_ns = e->session ? e->stop_ns + cooldown_ns(e->rule) : 0;

	return MAX(cool_ns, quiet_until_ns(e));
}

static uint64_t hash_key(const char *rule, uint64_t cgroup_id, enum trigger_cause cause)
{
	char text[RULE_NAME_BYTES + 32];

	snprintf(text, sizeof(text), "%s %llx %d", rule, (unsigned long long)cgroup_id, cause);
	return idmap_text_key(text);
}

static uint64_t hash_of_key(const struct cooldown_key *key)
{
	return hash_key(key->rule ? key->rule->name : "", key->cgroup_id, key->cause);
}

static uint64_t hash_of_entry(const struct cooldown *e)
{
	return hash_key(e->rule ? e->rule->name : "", e->cgroup_id, e->cause);
}

/* Writes the triggers that were held back since the last line. */
static void say_sums(struct cooldowns *all, struct cooldown *e, uint64_t now_ns)
{
	uint64_t until_ns = e->held_by_ns + e->held_by.retry_ms * NSEC_PER_MSEC;

	e->held_by.retry_ms = until_ns > now_ns ? (until_ns - now_ns) / NSEC_PER_MSEC : 0;
	e->held_by_ns = now_ns;
	trigger_events_held(all->log, e, true);
	held_triggers_reset(&e->held);
	e->logged_ns = now_ns;
}

static void free_entry(struct cooldown *e)
{
	free(e->cgroup);
	free(e);
}

/* Removes an entry after it has written its sums. */
static void drop_entry(struct cooldowns *all, struct cooldown *e, uint64_t now_ns)
{
	if (e->held.count)
		say_sums(all, e, now_ns);
	idmap_remove(&all->by_key, hash_of_entry(e));
	free_entry(e);
}

/*
 * Drops the entries for which `is_over` is true: a few at a time, because the table must not change
 * while it is iterated.
 */
static void drop_where(struct cooldowns *all,
		       bool (*is_over)(const struct cooldown *e, uint64_t now_ns), uint64_t now_ns)
{
	struct cooldown *e, *over[DROP_AT_ONCE];
	uint64_t hash;
	size_t n;

	do {
		n = 0;
		idmap_for_each (&all->by_key, i, hash, e)
			if (n < DROP_AT_ONCE && is_over(e, now_ns))
				over[n++] = e;
		for (size_t i = 0; i < n; i++)
			drop_entry(all, over[i], now_ns);
	} while (n == DROP_AT_ONCE);
}

/* Frees an entry in a full table: drops the entry that expires first. */
static void drop_first(struct cooldowns *all, uint64_t now_ns)
{
	struct cooldown *e, *first = NULL;
	uint64_t hash;

	idmap_for_each (&all->by_key, i, hash, e)
		if (!first || over_ns(e) < over_ns(first))
			first = e;
	if (first)
		drop_entry(all, first, now_ns);
}

static struct cooldown *find_entry(const struct cooldowns *all, const struct cooldown_key *key)
{
	return idmap_get(&all->by_key, hash_of_key(key));
}

/* Finds or creates the entry of the key. NULL without memory. */
static struct cooldown *get_entry(struct cooldowns *all, const struct cooldown_key *key,
				  uint64_t now_ns)
{
	struct cooldown *e = find_entry(all, key);

	if (e)
		return e;
	if (all->by_key.count >= COOLDOWNS_MAX)
		drop_first(all, now_ns);
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->rule = key->rule;
	e->cgroup_id = key->cgroup_id;
	e->cause = key->cause;
	e->cgroup = strdup(key->cgroup);
	if (!e->cgroup || idmap_put(&all->by_key, hash_of_key(key), e) < 0) {
		free_entry(e);
		return NULL;
	}
	return e;
}

/* Returns the growth of the stall since the comparison with the session's stall began. */
static uint64_t grown_us(const struct cooldown *e, const struct trigger_reason *reason)
{
	return psi_growth_us(&e->from, &reason->now, reason->when.full);
}

/*
 * Returns whether this growth per time is at least COOLDOWN_DENSER times that of the session's
 * stall.
 */
static bool is_denser(const struct cooldown *e, const struct trigger_reason *reason,
		      uint64_t now_ns)
{
	uint64_t elapsed_ms = (now_ns - e->from_ns) / NSEC_PER_MSEC;

	return grown_us(e, reason) * e->span_ms >=
	       COOLDOWN_DENSER * e->stall_us[reason->when.full] * elapsed_ms;
}

static void compare_from(struct cooldown *e, const struct psi *from, uint64_t from_ns)
{
	e->from = *from;
	e->from_ns = from_ns;
}

/*
 * Returns whether the stall is several times as large as the session's stall. If it has not been
 * denser so far, the comparison restarts: with the time that this trigger measured, or after it.
 */
static bool is_larger(struct cooldown *e, const struct trigger_reason *reason, uint64_t now_ns)
{
	uint64_t measured_ns = reason->measured_ms * NSEC_PER_MSEC;

	if (reason->kind != TRIGGER_PRESSURE || !e->span_ms)
		return false;
	if (!e->from_ns || !is_denser(e, reason, now_ns))
		compare_from(e, &reason->before, now_ns - MIN(now_ns, measured_ns));
	if (!is_denser(e, reason, now_ns)) {
		compare_from(e, &reason->now, now_ns);
		return false;
	}
	return grown_us(e, reason) >= COOLDOWN_BREAK * e->stall_us[reason->when.full];
}

bool cooldown_holds(struct cooldowns *all, const struct cooldown_key *key,
		    const struct trigger_reason *reason, uint64_t now_ns,
		    struct trigger_held *ret_held, uint64_t *ret_broken)
{
	struct cooldown *e = find_entry(all, key);
	uint64_t until_ns = e && e->session ? e->stop_ns + cooldown_ns(key->rule) : 0;

	*ret_broken = 0;
	if (now_ns >= until_ns)
		return false;
	if (is_larger(e, reason, now_ns)) {
		*ret_broken = e->session;
		return false;
	}
	*ret_held = (struct trigger_held){
		.reason = "cooldown",
		.retry_ms = (until_ns - now_ns) / NSEC_PER_MSEC + 1,
		.session = e->session,
	};
	return true;
}

/* Schedules the timer for the time when these sums are due. */
static void set_due(struct cooldowns *all, uint64_t due_ns, uint64_t now_ns)
{
	if (!all->timer || (all->due_ns && all->due_ns <= due_ns))
		return;
	all->due_ns = due_ns;
	loop_timer_set(all->timer, MAX(due_ns, now_ns + LOOK_EVERY_NS) - now_ns, 0);
}

void cooldown_hold(struct cooldowns *all, const struct cooldown_key *key,
		   const struct trigger_reason *reason, const struct trigger_held *held,
		   uint64_t now_ns)
{
	struct cooldown once = { .rule = key->rule,
				 .cgroup_id = key->cgroup_id,
				 .cause = key->cause,
				 .cgroup = (char *)key->cgroup };
	struct cooldown *e = get_entry(all, key, now_ns);
	bool kept = e != NULL;

	e = kept ? e : &once;
	held_triggers_add(&e->held, reason);
	e->last = *reason;
	e->held_by = *held;
	e->held_by_ns = now_ns;
	if (now_ns < quiet_until_ns(e) || e->held.count > 1) {
		set_due(all, quiet_until_ns(e), now_ns);
		return;
	}
	trigger_events_held(all->log, e, false);
	held_triggers_reset(&e->held);
	e->logged_ns = now_ns;
}

void cooldown_flush(struct cooldowns *all, const struct cooldown_key *key, uint64_t now_ns)
{
	struct cooldown *e = find_entry(all, key);

	if (e && e->held.count)
		say_sums(all, e, now_ns);
}

void cooldown_begin(struct cooldowns *all, const struct cooldown_key *key,
		    const struct session_result *r)
{
	const struct psi *end = r->has_pressure_end ? &r->pressure_end : &r->reason.now;
	struct cooldown *e;

	if (!trigger_reason_cools(&r->reason))
		return;
	e = get_entry(all, key, r->stop_ns);
	if (!e)
		return;
	e->session = r->id;
	e->stop_ns = r->stop_ns;
	e->from_ns = 0;
	e->span_ms = 0;
	if (r->reason.kind != TRIGGER_PRESSURE)
		return;
	e->span_ms = r->reason.measured_ms + (r->stop_ns - r->start_ns) / NSEC_PER_MSEC;
	e->stall_us[false] = psi_growth_us(&r->reason.before, end, false);
	e->stall_us[true] = psi_growth_us(&r->reason.before, end, true);
}

static bool is_over(const struct cooldown *e, uint64_t now_ns)
{
	return !e->held.count && now_ns >= over_ns(e);
}

void cooldowns_expire(struct cooldowns *all, uint64_t now_ns)
{
	uint64_t hash, next_ns = 0;
	struct cooldown *e;

	if (now_ns - all->swept_ns < LOOK_EVERY_NS)
		return;
	all->swept_ns = now_ns;
	idmap_for_each (&all->by_key, i, hash, e) {
		if (e->held.count && now_ns >= quiet_until_ns(e))
			say_sums(all, e, now_ns);
		if (e->held.count)
			next_ns = next_ns ? MIN(next_ns, quiet_until_ns(e)) : quiet_until_ns(e);
	}
	drop_where(all, is_over, now_ns);
	if (next_ns)
		set_due(all, next_ns, now_ns);
}

static void on_due(void *context, uint32_t events)
{
	struct cooldowns *all = context;

	all->due_ns = 0;
	all->swept_ns = 0;
	cooldowns_expire(all, clock_mono_ns());
}

static bool is_gone(const struct cooldown *e, uint64_t now_ns)
{
	return e->rule_gone;
}

void cooldowns_rebind(struct cooldowns *all, const struct rules *fresh)
{
	uint64_t hash;
	struct cooldown *e;

	idmap_for_each (&all->by_key, i, hash, e) {
		const struct rule *same = e->rule ? rules_find(fresh, e->rule->name) : NULL;

		if (same)
			e->rule = same;
		else
			e->rule_gone = e->rule != NULL;
	}
	drop_where(all, is_gone, clock_mono_ns());
}

void cooldowns_init(struct cooldowns *all, const struct event_log *log)
{
	*all = (struct cooldowns){ .log = log };
	idmap_init(&all->by_key, COOLDOWNS_MAX);
}

int cooldowns_listen(struct cooldowns *all, struct loop *loop)
{
	return loop_timer(loop, on_due, all, &all->timer);
}

void cooldowns_done(struct cooldowns *all)
{
	uint64_t hash, now_ns = clock_mono_ns();
	struct cooldown *e;

	idmap_for_each (&all->by_key, i, hash, e) {
		if (e->held.count)
			say_sums(all, e, now_ns);
		free_entry(e);
	}
	idmap_done(&all->by_key);
	loop_remove(all->timer);
	all->timer = NULL;
}
