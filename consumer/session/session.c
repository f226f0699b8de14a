/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/rules/shares.h"
#include "consumer/sampling/looks.h"
#include "consumer/session/session_pre_roll.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/idmap.h"
#include "shared/tools/macro.h"

/*
 * How long an ended session waits for its samples. A BPF program that was running when the slot
 * changed has written its record by then; if a record was lost, the session waits the whole time.
 */
#define SETTLE_NS (50 * NSEC_PER_MSEC)

/* How long it waits for the cgroup paths that its signals request at the end. */
#define NAMES_NS NSEC_PER_SEC

void sessions_init(struct sessions *all, const struct signal_host *host, struct sampler *sampler,
		   const struct active_rules *active)
{
	*all = (struct sessions){
		.host = *host,
		.sampler = sampler,
		.active = active,
		.stacks = { .max_bytes = STACK_BUDGET_BYTES },
	};
	all->host.stacks = &all->stacks;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	session_result_free(s->result);
	cgroup_names_done(&s->names);
	free(s);
}

static struct session_result *new_result(const struct sessions *all,
					 const struct session_start *start)
{
	struct session_result *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->cgroup = strdup(start->cgroup);
	if (!r->cgroup) {
		free(r);
		return NULL;
	}
	r->set = ruleset_ref(all->active->set);
	r->rule = start->rule;
	r->reason = *start->reason;
	r->cgroup_id = start->cgroup_id;
	r->owner = idmap_text_key(start->owner ? start->owner->name : start->cgroup);
	return r;
}

static int make_signals(const struct sessions *all, struct session *s)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		if (!(s->target.wanted & 1u << i))
			continue;
		s->result->signals[i] = signals_new((enum signal_bit)i, &all->host, &s->target);
		if (!s->result->signals[i])
			return -ENOMEM;
	}
	return 0;
}

static struct session *new_session(const struct sessions *all, const struct session_start *start)
{
	const struct rule *rule = start->rule;
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	cgroup_names_init(&s->names);
	s->result = new_result(all, start);
	if (!s->result) {
		free(s);
		return NULL;
	}
	s->target = (struct signal_target){
		.rule = rule,
		.reason = &s->result->reason,
		.cgroup = s->result->cgroup,
		.cgroup_id = start->cgroup_id,
		.slot = start->slot,
		.epoch = start->epoch,
		.wanted = signals_wanted(all->host.kinds, s->result->rule, &s->result->reason),
		.only_tgid = start->only_tgid,
		.only_rule = rule && (start->root || rule->scope_process),
		.rule_id = ruleset_id(s->result->set, rule),
		.by_process = start->by_process,
		.shared = start->shared,
		.counters = start->counters,
		.names = &s->names,
	};
	s->during_ms = start->during_ms ? start->during_ms
		       : rule		? rule->during_ms
					: SESSION_DURING_MS;
	s->during_reason = start->during_reason;
	if (make_signals(all, s) < 0) {
		session_free(s);
		return NULL;
	}
	return s;
}

static struct session **find_free(struct sessions *all)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (!all->running[i])
			return &all->running[i];
	return NULL;
}

/* Compares with earlier facts: in the pre-roll, and at the beginning of the onset. */
static void begin_facts(const struct sessions *all, struct session_result *r,
			const struct session_start *start)
{
	uint64_t onset_ns = r->onset_ms ? r->start_ns - r->onset_ms * NSEC_PER_MSEC : UINT64_MAX;

	if (all->facts)
		r->facts = facts_phases_new(all->facts, r->cgroup, start->facts, start->recorded_ns,
					    onset_ns);
}

/*
 * First changes the rate, then sets the slot to capture, and only then lets the signals read the
 * counters: all later attempts count as `during`.
 */
static void begin_capture(struct sessions *all, struct session *s,
			  const struct session_start *start)
{
	const struct pinned_maps *pins = all->host.pins;
	struct slot *slot = &pins->slots[start->slot];
	uint64_t ticking_ns = sampler_since_ns(all->sampler), now_ns;

	sampler_capture_begin(all->sampler);
	now_ns = clock_mono_ns();
	s->result->id = now_ns ^ (start->cgroup_id << 48);
	s->result->start_ns = s->target.start_ns = now_ns;
	session_pre_roll_find(all, start, ticking_ns, now_ns, s->result);
	s->target.pre_ms = s->result->pre_ms;
	s->target.onset_ms = s->result->onset_ms;
	s->result->timeline = timeline_new(now_ns, s->result->pre_ms, s->during_ms);
	s->target.timeline = s->result->timeline;
	s->end_ns = now_ns + s->during_ms * NSEC_PER_MSEC;
	pins->control->heartbeat_ns = now_ns;
	slot->session = s->result->id;
	s->result->left_out = slot->left_out;
	__atomic_store_n(&slot->state, SLOT_CAPTURE, __ATOMIC_SEQ_CST);
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->begin)
			signal->kind->begin(signal, &all->host, &s->target);
	}
	begin_facts(all, s->result, start);
	s->target.counters = NULL; /* the watch may end before the session */
}

static void settle_signals(const struct sessions *all)
{
	const struct signal_kind *const *kinds = all->host.kinds;

	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (kinds[i] && kinds[i]->settle)
			kinds[i]->settle(&all->host);
}

int session_begin(struct sessions *all, const struct session_start *start,
		  struct session **ret_session)
{
	struct session **place = find_free(all), *s;

	if (!place)
		return -ENOSPC;
	s = new_session(all, start);
	if (!s)
		return -ENOMEM;
	s->owner = start->owner;
	settle_signals(all);
	begin_capture(all, s, start);
	*place = s;
	all->count++;
	all->total++;
	captured_add(&all->captured, s->result->cgroup_id, s->result->cgroup);
	*ret_session = s;
	return 0;
}

void session_look_first(struct sessions *all)
{
	if (all->host.looks)
		looks_step(all->host.looks);
}

void session_attach(struct sessions *all, struct session *s)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		struct signal *signal = s->result->signals[i];

		if (!signal || !signal->kind || !signal->kind->attach ||
		    (!signal->off_reason && !signal->unattached))
			continue;
		signal->kind->attach(signal, &all->host, &s->target);
		signal->tried = true;
	}
}

void sessions_attach_again(struct sessions *all)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (all->running[i] && !all->running[i]->ending)
			session_attach(all, all->running[i]);
}

struct session *sessions_of_slot(const struct sessions *all, uint32_t slot, uint32_t epoch)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *s = all->running[i];

		if (s && s->target.slot == slot && s->target.epoch == epoch)
			return s;
	}
	return NULL;
}

/* Returns the rule of the set with the name and content of `rule`, or NULL. */
static const struct rule *find_same(const struct rules *rules, const struct rule *rule)
{
	const struct rule *same = rule ? rules_find(rules, rule->name) : NULL;

	return same && rule_equal(same, rule) ? same : NULL;
}

bool session_is_of(const struct session *s, const struct rule *rule, enum trigger_cause cause)
{
	const struct session_result *r = s->result;

	return trigger_reason_cause(&r->reason) == cause && r->rule &&
	       !strcmp(r->rule->name, rule->name) && rule_equal(r->rule, rule);
}

void sessions_rebind(struct sessions *all, const struct rules *fresh)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *s = all->running[i];
		const struct rule *same = s ? find_same(fresh, s->result->rule) : NULL;

		/*
		 * The result keeps its own set: no process matches a rule that is gone in the new
		 * set.
		 */
		if (s)
			s->target.rule = same ? same : s->result->rule;
	}
}

bool session_sample(struct session *s, const struct stack_sample *h, const struct process *p)
{
	bool taken = false;

	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->sample)
			taken = signal->kind->sample(signal, &s->target, h, p) || taken;
	}
	return taken;
}

void session_look(struct session *s, const struct look_pass *pass, const struct look_seen *seen)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->look)
			signal->kind->look(signal, &s->target, pass, seen);
	}
}

static void pass_session(struct session *s, const struct look_pass *pass)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->passed)
			signal->kind->passed(signal, &s->target, pass);
	}
}

void sessions_passed(struct sessions *all, const struct look_pass *pass)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (all->running[i])
			pass_session(all->running[i], pass);
}

void session_narrow(struct session *s)
{
	s->target.by_process = true;
}

void session_share(struct session *s)
{
	s->target.shared = true;
}

static void read_pressure_end(struct session_result *r)
{
	const int *fd = r->reason.pressure_fd;

	if (fd && *fd >= 0)
		r->has_pressure_end = psi_read(*fd, &r->pressure_end) == 0;
	r->reason.pressure_fd = NULL;
}

/* Returns how long it waits for its samples and sampling passes. */
static uint64_t find_settle_ns(const struct session *s)
{
	uint64_t ns = SETTLE_NS;

	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (s->result->signals[i] && !s->result->signals[i]->off_reason)
			ns = MAX(ns, s->result->signals[i]->settle_ms * NSEC_PER_MSEC);
	return ns;
}

static void end_signals(struct sessions *all, struct session *s, bool first)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->end && signal->kind->leads == first)
			signal->kind->end(signal, &all->host, &s->target);
	}
}

void session_end(struct sessions *all, struct session *s)
{
	struct slot *slot = &all->host.pins->slots[s->target.slot];

	if (s->ending)
		return;
	s->ending = true;
	s->result->left_out = MAX(s->result->left_out, slot->left_out);
	s->result->by_process = s->target.only_tgid || s->target.only_rule || s->target.by_process;
	__atomic_store_n(&slot->state, SLOT_RECORDER, __ATOMIC_SEQ_CST);
	s->result->stop_ns = s->target.stop_ns = clock_mono_ns();
	end_signals(all, s, true);
	end_signals(all, s, false);
	sampler_capture_end(all->sampler);
	s->settled_ns = s->target.stop_ns + find_settle_ns(s);
	if (cgroup_names_await(&s->names, all->host.cgroups))
		s->settled_ns = MAX(s->settled_ns, s->target.stop_ns + NAMES_NS);
	slot->session = 0;
	read_pressure_end(s->result);
	if (s->result->facts)
		facts_phases_end(s->result->facts);
}

void sessions_read_facts(struct sessions *all, uint64_t now_ns)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *s = all->running[i];

		if (s && !s->ending && s->result->facts)
			facts_phases_step(s->result->facts, now_ns);
	}
}

/* Returns whether all signals have finished their readings in slices. */
static bool prepare_end(struct sessions *all, struct session *s)
{
	bool ready = true;

	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->prepare)
			ready = signal->kind->prepare(signal, &all->host, &s->target) && ready;
	}
	s->preparing = !ready;
	return ready;
}

bool sessions_end_due(struct sessions *all, uint64_t now_ns)
{
	bool ended = false;

	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *s = all->running[i];

		if (!s || s->ending || now_ns < s->end_ns || !prepare_end(all, s))
			continue;
		session_end(all, s);
		ended = true;
	}
	return ended;
}

static bool is_settled(const struct sessions *all, const struct session *s)
{
	if (cgroup_names_await(&s->names, all->host.cgroups))
		return false;
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		const struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->is_settled &&
		    !signal->kind->is_settled(signal))
			return false;
	}
	return true;
}

static void close_signals(struct sessions *all, struct session *s)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->close)
			signal->kind->close(signal, &all->host, &s->target);
	}
}

static void remember_session(struct sessions *all, const struct session *s)
{
	const struct session_result *r = s->result;
	struct session_summary *e = &all->ended[all->n_ended++ % SESSIONS_ENDED];

	*e = (struct session_summary){
		.id = r->id,
		.trigger = r->reason.kind,
		.end_ns = r->stop_ns,
		.samples = session_result_samples(r),
	};
	snprintf(e->rule, sizeof(e->rule), "%s", r->rule ? r->rule->name : "");
	snprintf(e->cgroup, sizeof(e->cgroup), "%s", r->cgroup);
}

struct session *sessions_take_settled(struct sessions *all, uint64_t now_ns)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++) {
		struct session *s = all->running[i];

		if (!s || !s->ending || (now_ns < s->settled_ns && !is_settled(all, s)))
			continue;
		all->running[i] = NULL;
		all->count--;
		captured_remove(&all->captured, s->result->cgroup);
		close_signals(all, s);
		remember_session(all, s);
		return s;
	}
	return NULL;
}

bool sessions_preparing(const struct sessions *all)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (all->running[i] && all->running[i]->preparing && !all->running[i]->ending)
			return true;
	return false;
}

uint64_t sessions_oldest_ns(const struct sessions *all)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (all->running[i])
			oldest_ns = MIN(oldest_ns, all->running[i]->result->start_ns);
	return oldest_ns;
}

bool sessions_settling(const struct sessions *all)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (all->running[i] && all->running[i]->ending)
			return true;
	return false;
}
