/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/agent.h"
#include "consumer/sampling.h"
#include "consumer/sharing.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/macro.h"

#define DEFAULT_PRE_MS	  5000
#define DEFAULT_DURING_MS 3000

/* A program that had begun when the end was set has written its record by then; where one is lost
 * it is waited for. */
#define SETTLE_NS (50 * NSEC_PER_MSEC)

static const char *const trigger_names[] = {
	[TRIGGER_PRESSURE] = "pressure",
	[TRIGGER_REQUEST] = "request",
	[TRIGGER_EXEC] = "exec",
};

const char *trigger_name(enum trigger kind)
{
	return trigger_names[kind];
}

static struct budget *rule_budget(struct agent *a, const struct rule *rule)
{
	return &a->active.set->budgets[rule - a->active.set->rules->rules];
}

/* Milliseconds until the next minute gives budget back. */
static uint64_t budget_retry_ms(uint64_t now_ns)
{
	return 60000 - now_ns / NSEC_PER_MSEC % 60000;
}

/* The rule's seconds are used up, and by this owner too as far as they are its. */
static bool rule_is_spent(struct watch *w, const struct rule *rule, uint64_t now)
{
	struct agent *a = w->agent;
	uint64_t max_ms = (uint64_t)rule->budget_s * MSEC_PER_SEC;
	uint64_t spent_ms = budget_spent_ms(rule_budget(a, rule), now);

	return spent_ms >= max_ms && !shares_has_part(&a->shares, w->owner, max_ms, spent_ms, now);
}

/* Whether this rule may start a session here now; a request is not bound by the cooldown. */
static bool may_start(struct watch *w, const struct rule *rule, enum trigger kind, uint64_t now,
		      struct held *held)
{
	struct agent *a = w->agent;
	struct binding *b = rule ? watch_binding(w, rule) : NULL;
	const char *shared;

	if (w->session)
		*held = (struct held){
			"session_running",
			(w->session->end_ns - MIN(now, w->session->end_ns)) / NSEC_PER_MSEC + 100
		};
	else if (a->sessions.count >= SESSIONS_MAX ||
		 reporter_queued(a->reporter) >= SESSIONS_QUEUED)
		*held = (struct held){ "too_many_sessions", 1000 };
	else if (kind != TRIGGER_REQUEST && b && now < b->cooldown_ns)
		*held = (struct held){ "cooldown", (b->cooldown_ns - now) / NSEC_PER_MSEC + 1 };
	else if (rule && rule_is_spent(w, rule, now))
		*held = (struct held){ "budget_rule", budget_retry_ms(now) };
	else if (a->active.set && (shared = sharing_held(a, w->owner, now)) != NULL)
		*held = (struct held){ shared,
				       strncmp(shared, "budget", 6) ? 1000 : budget_retry_ms(now) };
	else
		return true;
	return false;
}

/* The cgroup's CPU time so far; ~0 when it cannot be known. */
static uint64_t cpu_usage_us(const struct session *s)
{
	struct agent *a = s->agent;
	static const char key[] = "usage_usec ";
	char text[1024];

	if (!s->watch || s->watch->by_process || s->only_tgid || s->only_rule ||
	    cgroups_read(&a->cgroups, s->cgroup, "cpu.stat", text, sizeof(text)) < 0 ||
	    strncmp(text, key, sizeof(key) - 1) != 0)
		return UINT64_MAX;
	return strtoull(text + sizeof(key) - 1, NULL, 10);
}

static struct session *new_session(struct watch *w, const struct rule *rule,
				   const struct trigger_reason *reason)
{
	uint32_t cpus = w->agent->pins.abi.cpus_possible;
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	stacks_init(&s->stacks);
	s->agent = w->agent;
	s->first = calloc(2 * (size_t)cpus, sizeof(*s->first));
	s->before_first = malloc(cpus * sizeof(*s->before_first));
	s->cgroup = strdup(w->path);
	if (!s->first || !s->before_first || !s->cgroup) {
		session_free(s);
		return NULL;
	}
	memset(s->before_first, 0xff, cpus * sizeof(*s->before_first));
	s->last = s->first + cpus;
	s->set = ruleset_ref(w->agent->active.set);
	s->rule = rule;
	s->reason = *reason;
	if (reason->when) {
		s->when = *reason->when;
		s->reason.when = &s->when;
	}
	s->watch = w;
	s->owner = shares_ref(w->owner);
	s->cgroup_id = w->cgroup_id;
	s->slot = w->slot;
	s->epoch = w->epoch;
	s->only_rule = rule && (w->root || rule->scope_process);
	return s;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	stacks_done(&s->stacks);
	ruleset_unref(s->set);
	free(s->first);
	free(s->before_first);
	free(s->cgroup);
	free(s);
}

static bool wanted(const struct session *s, uint32_t tgid, const struct process *p)
{
	if (s->only_tgid && s->only_tgid != tgid)
		return false;
	if (!s->only_rule)
		return true;
	return p && p->rule && (p->rule == s->rule || !strcmp(p->rule->name, s->rule->name));
}

static void count(struct session *s, const struct hit *h, const struct process *p, enum phase phase)
{
	uint64_t tick_ns = NSEC_PER_SEC / s->agent->pins.abi.hz;
	struct module *exe;

	if (phase == PHASE_BEFORE)
		s->before_first[h->cpu] = MIN(s->before_first[h->cpu], (uint64_t)h->seq);
	if (!wanted(s, h->tgid, p)) {
		s->filtered[phase]++;
		return;
	}
	if (!(h->flags & SAMPLE_CAPTURE))
		tick_ns *= RECORDER_DIVISOR;
	exe = p ? process_maps_at(p, h->time_ns, h->image)->exe : NULL;
	if (stacks_add(&s->stacks, h, phase, tick_ns, exe) < 0)
		s->phase[phase].lost[DROP_MAP_FULL]++;
	else
		s->phase[phase].emitted++;
}

static void take_before(void *context, const struct hit *h)
{
	struct session *s = context;

	if ((int32_t)(h->seq - (uint32_t)s->first[h->cpu].attempted) < 0)
		count(s, h, process_find(s->agent, h->tgid, h->start_ns), PHASE_BEFORE);
}

bool session_sample(struct session *s, const struct hit *h, const struct process *p)
{
	if (s->epoch != h->epoch)
		return false;
	if (s->ending && (int32_t)(h->seq - (uint32_t)s->last[h->cpu].attempted) >= 0)
		return false;
	if ((int32_t)(h->seq - (uint32_t)s->first[h->cpu].attempted) >= 0)
		count(s, h, p, PHASE_DURING);
	else if (h->time_ns + s->pre_ms * NSEC_PER_MSEC >= s->start_ns)
		count(s, h, p, PHASE_BEFORE);
	return true;
}

/* What runs for the session from here on, and since when the recorder has had all CPUs. */
static uint64_t arm(struct session *s)
{
	struct agent *a = s->agent;
	uint64_t since_ns = MAX(s->watch->recorded_ns, sampler_since_ns(&a->sampler));

	sampler_capture_begin(&a->sampler);
	sampler_state(&a->sampler, &s->cpus_ticking, &s->cpus_missing, &s->unsampled_why);
	return since_ns;
}

static void begin(struct session *s, uint32_t during_ms)
{
	struct agent *a = s->agent;
	struct slot *slot = &a->pins.slots[s->slot];
	uint64_t since_ns = arm(s), now = clock_mono_ns();
	uint64_t recorded_ms = (now - MIN(now, since_ns)) / NSEC_PER_MSEC;
	uint32_t pre_ms = s->rule ? s->rule->pre_ms : DEFAULT_PRE_MS;

	s->start_ns = now;
	s->id = now ^ ((uint64_t)s->cgroup_id << 48);
	s->pre_ms = (uint32_t)MIN(pre_ms, recorded_ms);
	s->during_ms = during_ms ? during_ms : s->rule ? s->rule->during_ms : DEFAULT_DURING_MS;
	s->end_ns = now + s->during_ms * NSEC_PER_MSEC;
	/* All that is in the ring by now belongs to the recorder; then the rate changes, and only
	 * then the counters are read: attempts from `first` on are `during`. */
	sampling_drain(a);
	a->pins.control->heartbeat_ns = now;
	slot->session = s->id;
	__atomic_store_n(&slot->state, SLOT_CAPTURE, __ATOMIC_SEQ_CST);
	pins_counters(&a->pins, s->slot, s->first);
	s->usage_start_us = cpu_usage_us(s);
	recorder_each(&a->recorder, s->slot, s->epoch, now - s->pre_ms * NSEC_PER_MSEC, take_before,
		      s);
}

static int add_running(struct session *s)
{
	struct sessions *all = &s->agent->sessions;

	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (!all->running[i]) {
			all->running[i] = s;
			all->count++;
			all->total++;
			return 0;
		}
	return -EAGAIN;
}

int session_start(struct watch *w, const struct rule *rule, const struct trigger_reason *reason,
		  uint32_t during_ms, uint32_t only_tgid, struct session **ret_session,
		  struct held *ret_held)
{
	struct agent *a = w->agent;
	struct session *s;

	if (!may_start(w, rule, reason->kind, clock_mono_ns(), ret_held))
		return -EAGAIN;
	s = new_session(w, rule, reason);
	if (!s)
		return -ENOMEM;
	s->only_tgid = only_tgid;
	begin(s, during_ms);
	add_running(s);
	w->session = s;
	w->sessions++;
	schedule_sessions(&a->schedule, (uint32_t)a->sessions.count);
	*ret_session = s;
	return 0;
}

void session_end(struct session *s)
{
	struct agent *a = s->agent;
	struct binding *b;

	if (s->ending)
		return;
	s->ending = true;
	__atomic_store_n(&a->pins.slots[s->slot].state, SLOT_RECORDER, __ATOMIC_SEQ_CST);
	pins_counters(&a->pins, s->slot, s->last);
	s->stop_ns = clock_mono_ns();
	switches_end(s);
	sampler_capture_end(&a->sampler);
	s->settled_ns = s->stop_ns + SETTLE_NS;
	a->pins.slots[s->slot].session = 0;
	s->expected = cpu_usage_us(s);
	if (s->expected != UINT64_MAX && s->usage_start_us != UINT64_MAX)
		s->expected = (s->expected - s->usage_start_us) * a->pins.abi.hz / 1000000;
	else
		s->expected = UINT64_MAX;
	if (!s->watch)
		return;
	s->watch->recorded_ns = s->stop_ns;
	if (s->reason.when && s->watch->pressure[s->when.resource].fd >= 0)
		s->has_pressure_end =
			psi_read(s->watch->pressure[s->when.resource].fd, &s->pressure_end) == 0;
	b = s->rule ? watch_binding(s->watch, s->rule) : NULL;
	if (b)
		b->cooldown_ns = s->stop_ns + s->rule->cooldown_ms * NSEC_PER_MSEC;
}

/* Closes both phases of the account; all samples of the session have been drained. */
static void close_account(struct session *s)
{
	struct agent *a = s->agent;
	uint32_t cpus = a->pins.abi.cpus_possible;
	_cleanup_free_ struct slot_counters *counters = calloc(cpus, sizeof(*counters));
	bool fresh = counters && pins_counters(&a->pins, s->slot, counters) == 0;
	uint64_t lost_during[8] = {}, lost_before[8] = {};
	struct ledger *before = &s->phase[PHASE_BEFORE], *during = &s->phase[PHASE_DURING];

	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		const struct slot_counters *end = fresh ? &counters[cpu] : &s->last[cpu];
		uint32_t first = (uint32_t)s->first[cpu].attempted;

		during->attempted += s->last[cpu].attempted - s->first[cpu].attempted;
		if (s->before_first[cpu] != UINT64_MAX)
			before->attempted += first - (uint32_t)s->before_first[cpu];
		for (size_t i = 0; i < ARRAY_SIZE(lost_during); i++) {
			lost_during[i] += end->lost[i] - s->first[cpu].lost[i];
			lost_before[i] += s->first[cpu].lost[i];
		}
	}
	before->attempted -= MIN(before->attempted, s->filtered[PHASE_BEFORE]);
	during->attempted -= MIN(during->attempted, s->filtered[PHASE_DURING]);
	ledger_close(before, lost_before, a->recorder.evicted ? DROP_HELD : DROP_UNACCOUNTED);
	ledger_close(during, lost_during, DROP_UNACCOUNTED);
}

static void remember(struct session *s)
{
	struct sessions *all = &s->agent->sessions;
	struct session_summary *e = &all->ended[all->n_ended++ % SESSIONS_ENDED];

	*e = (struct session_summary){
		.id = s->id,
		.trigger = s->reason.kind,
		.end_ns = s->stop_ns,
		.samples = s->phase[PHASE_BEFORE].emitted + s->phase[PHASE_DURING].emitted,
	};
	snprintf(e->rule, sizeof(e->rule), "%s", s->rule ? s->rule->name : "");
	snprintf(e->cgroup, sizeof(e->cgroup), "%s", s->cgroup);
}

static void spend(struct session *s)
{
	struct agent *a = s->agent;
	uint32_t ms = (uint32_t)((s->stop_ns - s->start_ns) / NSEC_PER_MSEC);
	const struct rule *rule;

	shares_captured(&a->shares, s->owner, s->stop_ns, ms);
	shares_put(&a->shares, s->owner); /* the reporter's thread is not to see it */
	s->owner = NULL;
	rule = s->rule && a->active.set ? rules_find(a->active.set->rules, s->rule->name) : NULL;
	if (rule)
		budget_spend(rule_budget(a, rule), s->stop_ns, ms);
}

/* Whether every attempt of its time has arrived. One that was lost never does. */
static bool all_here(const struct session *s)
{
	const struct ledger *during = &s->phase[PHASE_DURING];
	uint64_t here = during->emitted + during->lost[DROP_MAP_FULL] + s->filtered[PHASE_DURING];
	uint64_t attempted = 0;

	for (uint32_t cpu = 0; cpu < s->agent->pins.abi.cpus_possible; cpu++)
		attempted += s->last[cpu].attempted - s->first[cpu].attempted;
	return here >= attempted;
}

void sessions_step(struct agent *a, uint64_t now_ns)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *s = a->sessions.running[i];

		if (!s)
			continue;
		if (!s->ending && now_ns >= s->end_ns) {
			session_end(s);
			sampling_drain(a);
		}
		if (!s->ending)
			continue;
		if (now_ns < s->settled_ns && !all_here(s)) {
			schedule_drain_soon(&a->schedule);
			continue;
		}
		a->sessions.running[i] = NULL;
		a->sessions.count--;
		close_account(s);
		spend(s);
		remember(s);
		if (s->watch) {
			struct watch *w = s->watch;

			w->session = NULL;
			w->requested = false;
			s->watch = NULL;
			watch_release(w, "no_process");
		}
		reporter_put(a->reporter, s);
		schedule_sessions(&a->schedule, (uint32_t)a->sessions.count);
	}
}

uint64_t sessions_next_ns(const struct agent *a, uint64_t now_ns)
{
	uint64_t next = 0;

	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		const struct session *s = a->sessions.running[i];
		uint64_t due;

		if (!s)
			continue;
		due = s->ending ? s->settled_ns : s->end_ns;
		due = due > now_ns ? due - now_ns : 1;
		next = next ? MIN(next, due) : due;
	}
	return next;
}
