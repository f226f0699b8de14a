/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/stuck_follow.h"

#include <errno.h>
#include <stdlib.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "consumer/sampling/wait_recorder.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

#define PLACES_MAX 65536

/* Returns the threshold of this share, adding it if needed; NULL without memory. */
static struct stuck_threshold *want_threshold(struct stuck **stuck, uint32_t milli_pct)
{
	struct stuck_threshold *more;
	struct stuck *s = *stuck ? *stuck : calloc(1, sizeof(*s));

	*stuck = s;
	for (uint32_t i = 0; s && i < s->count; i++)
		if (s->thresholds[i].milli_pct == milli_pct)
			return &s->thresholds[i];
	more = s ? reallocarray(s->thresholds, s->count + 1, sizeof(*more)) : NULL;
	if (!more)
		return NULL;
	s->thresholds = more;
	more[s->count] = (struct stuck_threshold){ .milli_pct = milli_pct };
	return &more[s->count++];
}

/* Marks and adds the thresholds of this rule. */
static void want_rule(const struct watch *w, const struct rule *rule, struct stuck **stuck)
{
	for (uint32_t k = 0; k < rule->n_when; k++) {
		struct stuck_threshold *t;

		if (!rule->when[k].stuck)
			continue;
		t = want_threshold(stuck, rule->when[k].milli_pct);
		if (t)
			t->wanted = true;
		else
			log_warning("no memory to follow the threads of %s: not followed", w->path);
	}
}

void stuck_follow_changed(const struct watch *w, struct stuck **stuck)
{
	struct stuck *s = *stuck;
	uint32_t kept = 0;

	for (uint32_t i = 0; s && i < s->count; i++)
		s->thresholds[i].wanted = false;
	for (size_t b = 0; !w->root && b < w->n_bindings; b++)
		want_rule(w, w->bindings[b].rule, stuck);
	s = *stuck;
	for (uint32_t i = 0; s && i < s->count; i++)
		if (s->thresholds[i].wanted)
			s->thresholds[kept++] = s->thresholds[i];
	if (s)
		s->count = kept;
	if (kept)
		return;
	stuck_follow_free(s);
	*stuck = NULL;
}

void stuck_follow_free(struct stuck *s)
{
	if (s)
		free(s->thresholds);
	free(s);
}

/* ---- results of the sampling passes */

/* Threads that are stuck in one place. */
struct place {
	struct place *next;
	uint64_t threads, since_ns;
	uint8_t wait;
};

struct finding {
	const struct watch *w;
	uint64_t pass, now_ns;
	uint64_t alive_ns;   /* the watch has had a process since */
	struct idmap places; /* wait_stack.place -> struct place */
	struct place *first; /* owned; all places */
	struct stuck_found found;
	int r;
};

/* Whether the watch is the thread's own, or one above it. */
static bool is_below(const struct finding *f, const struct stack_sample *h)
{
	const struct pinned_maps *pins = f->w->all->pins;
	uint32_t slot = h->slot;

	if (slot >= pins->abi.slots || pins->slots[slot].epoch != h->epoch)
		return false;
	for (int i = 0; i < WATCHES_NESTED && slot < pins->abi.slots; i++) {
		if (slot == f->w->slot)
			return true;
		slot = pins->slots[slot].outer - 1;
	}
	return false;
}

/* An epoll may have a long poll beside others, which is no stall. A client polls for one answer. */
static bool may_be_long_poll(const struct look_on *on)
{
	return on->kind == LOOK_ON_EPOLL && wait_objects_is_asked(on);
}

/*
 * Whether the thread is stuck. It is in a wait that is not idle; samples a while apart found it
 * there; and an earlier sample of this watch, not long ago, did not: so it ran before.
 */
static bool is_stuck(const struct finding *f, const struct recorded_wait *w)
{
	const struct stack_sample *h = &w->stack->sample;

	return h->wait >= WAIT_BLOCKED && !wait_objects_is_idle(h->wait, &w->stack->on) &&
	       !may_be_long_poll(&w->stack->on) && !(h->flags & SAMPLE_KTHREAD) &&
	       w->switches >= STUCK_SWITCHES_MIN &&
	       w->seen_ns - MIN(w->seen_ns, w->first_ns) >= STUCK_STOOD_NS &&
	       w->before_ns >= f->alive_ns && w->before_ns + STUCK_RAN_NS >= f->now_ns;
}

static struct place *place_of(struct finding *f, uint64_t key)
{
	struct place *p = idmap_get(&f->places, key);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || idmap_put(&f->places, key, p) < 0) {
		free(p);
		f->r = -ENOMEM;
		return NULL;
	}
	p->next = f->first;
	f->first = p;
	return p;
}

static void take_wait(void *context, const struct recorded_wait *w, bool open)
{
	struct finding *f = context;
	struct place *p;

	if (!open || w->pass < f->pass || !is_below(f, &w->stack->sample))
		return;
	f->found.all++;
	p = is_stuck(f, w) ? place_of(f, w->stack->place) : NULL;
	if (!p)
		return;
	p->threads++;
	p->since_ns = MAX(p->since_ns, w->from_ns);
	p->wait = wait_objects_state(w->stack->sample.wait, &w->stack->on);
}

static void done_places(struct finding *f)
{
	while (f->first) {
		struct place *p = f->first;

		f->first = p->next;
		free(p);
	}
	idmap_done(&f->places);
}

int stuck_follow_find(const struct wait_recorder *waits, const struct watch *w,
		      struct stuck_found *ret_found)
{
	const struct recorded_pass *last = wait_recorder_last(waits);
	struct finding f = { .w = w, .alive_ns = MAX(w->start_ns, w->emptied_ns) };

	*ret_found = (struct stuck_found){ 0 };
	if (!last)
		return 0;
	f.pass = last->number;
	f.now_ns = last->began_ns;
	idmap_init(&f.places, PLACES_MAX);
	wait_recorder_each(waits, UINT64_MAX, take_wait, &f);
	for (const struct place *p = f.first; p; p = p->next)
		if (p->threads > f.found.threads)
			f.found = (struct stuck_found){ f.found.all, p->threads, p->since_ns,
							p->wait };
	done_places(&f);
	if (f.r == 0)
		*ret_found = f.found;
	return f.r;
}

/* ---- triggers */

static void fire_threshold(struct stuck_threshold *t, const struct stuck_found *found,
			   struct watch *w, struct triggers *triggers)
{
	uint64_t now_ns = clock_mono_ns();
	struct trigger trigger = {
		.watch = w,
		.reason = { .kind = TRIGGER_STUCK,
			    .stuck_threads = found->threads,
			    .all_threads = found->all,
			    .wait = wait_kind_name(found->wait),
			    .measured_ms =
				    (now_ns - MIN(now_ns, found->since_ns)) / NSEC_PER_MSEC },
	};

	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++) {
			trigger.rule = w->bindings[b].rule;
			trigger.reason.when = trigger.rule->when[k];
			if (trigger.reason.when.stuck &&
			    trigger.reason.when.milli_pct == t->milli_pct)
				habit_fire(t->begun_ns, &t->fired, &trigger, triggers);
		}
}

void stuck_follow_check(struct stuck *s, const struct wait_recorder *waits, struct watch *w,
			struct triggers *triggers)
{
	struct stuck_found found;

	if (stuck_follow_find(waits, w, &found) < 0) {
		log_warning(
			"no memory to follow the threads of %s: not followed in this sampling pass",
			w->path);
		return;
	}
	for (uint32_t i = 0; i < s->count; i++) {
		struct stuck_threshold *t = &s->thresholds[i];
		bool crossed = found.threads >= STUCK_THREADS_MIN &&
			       found.threads * 100000 >= found.all * t->milli_pct;

		if (!crossed)
			t->fired = false;
		else if (!t->fired)
			fire_threshold(t, &found, w, triggers);
	}
}

/* Returns whether a rule of the watch requests it. */
static bool is_asked(const struct watch *w)
{
	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++)
			if (w->bindings[b].rule->when[k].stuck)
				return true;
	return false;
}

void stuck_follow_write(const struct wait_recorder *waits, const struct watch *w,
			struct jsonw *json)
{
	if (!is_asked(w))
		return;
	jsonw_object(json, "stuck");
	jsonw_string(json, "by", waits && !w->root ? "looks" : "none");
	jsonw_string(json, "reason",
		     !waits    ? "the iterator `looks` cannot be read: load again"
		     : w->root ? "the root cgroup has the threads of the whole system"
			       : "the recorder's off-CPU samples, at the drains");
	jsonw_object_end(json);
}
