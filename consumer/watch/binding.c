/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch/binding.h"

#include <errno.h>
#include <stdlib.h>

#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct binding *binding_find(struct watch *w, const struct rule *rule)
{
	for (size_t i = 0; i < w->n_bindings; i++)
		if (w->bindings[i].rule == rule)
			return &w->bindings[i];
	return NULL;
}

static void remember_rule(struct watch *w, const struct rule *rule)
{
	struct ruleset *old = w->set;

	w->set = ruleset_ref(w->all->log->active->set);
	w->rule = rule;
	ruleset_unref(old);
}

static void say_rules_full(struct watch *w, const struct rule *rule)
{
	struct event_subject subject = event_log_subject(w->all->log, rule, w->cgroup_id);

	if (w->rules_full_said)
		return;
	w->rules_full_said = true;
	event_line_error(w->all->log->lines, &subject, "watches_full", "make the rules narrower",
			 NULL, NULL,
			 "%s matches more than %d rules: the further ones do not act on it",
			 w->path, BINDINGS_MAX);
}

static int add_binding(struct watch *w, const struct rule *rule, struct binding **ret_binding)
{
	struct binding *b = binding_find(w, rule), *more;

	if (!b) {
		if (w->n_bindings >= BINDINGS_MAX) {
			say_rules_full(w, rule);
			return -ENOSPC;
		}
		more = reallocarray(w->bindings, w->n_bindings + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		w->bindings = more;
		b = &more[w->n_bindings++];
		*b = (struct binding){ .rule = rule };
		if (w->n_bindings == 1)
			remember_rule(w, rule);
	}
	*ret_binding = b;
	return 0;
}

int binding_join(struct watches *ws, struct process *p)
{
	struct binding *b;
	struct watch *w;
	bool fresh;
	int r;

	r = watch_get(ws, p->cgroup_id, p->tgid, &w);
	if (r < 0)
		return r;
	fresh = !w->n_bindings && !w->requested;
	r = add_binding(w, p->rule, &b);
	if (r < 0) {
		bindings_release(w, "no_process");
		return r;
	}
	b->processes++;
	p->watch = w;
	if (b->processes == 1 && !b->loose_ns)
		bindings_refresh(w);
	b->loose_ns = 0;
	if (fresh)
		w->all->calls->started(w->all->context, w);
	return 0;
}

int binding_add_cgroup(struct watch *w, const struct rule *rule)
{
	bool fresh = !w->n_bindings && !w->requested;
	struct binding *b;
	int r = add_binding(w, rule, &b);

	if (r < 0) {
		bindings_release(w, "rule_gone");
		return r;
	}
	b->by_cgroup = true;
	b->loose_ns = 0;
	bindings_refresh(w);
	if (fresh)
		w->all->calls->started(w->all->context, w);
	return 0;
}

/* Removes bindings without a reason to live after their linger time. */
static void prune_bindings(struct watch *w)
{
	uint64_t now_ns = clock_mono_ns();
	size_t kept = 0;

	for (size_t i = 0; i < w->n_bindings; i++) {
		const struct binding *b = &w->bindings[i];

		if (binding_is_kept(b) || (b->loose_ns && now_ns - b->loose_ns < BINDING_LINGER_NS))
			w->bindings[kept++] = *b;
	}
	w->n_bindings = kept;
}

/*
 * Returns whether the slot takes matched processes only. The kernel side matches names: a rule
 * without a name selects everything in the cgroup, including a process that has just begun.
 */
static bool is_by_process(const struct watch *w)
{
	bool by_process = w->root || (w->n_bindings > 0 && !w->requested);

	for (size_t i = 0; i < w->n_bindings; i++) {
		const struct rule *rule = w->bindings[i].rule;

		by_process = by_process && rule->n_comms && (w->root || rule->scope_process);
	}
	return by_process;
}

void bindings_release(struct watch *w, const char *reason)
{
	size_t before = w->n_bindings;

	prune_bindings(w);
	if (!w->n_bindings && !w->requested)
		watch_remove(w, reason);
	else if (w->n_bindings != before || w->by_process != is_by_process(w))
		bindings_refresh(w);
}

static void set_linger(struct watches *ws)
{
	if (ws->lingering)
		return;
	ws->lingering = true;
	loop_timer_set(ws->linger_timer, BINDING_LINGER_NS, 0);
}

static bool has_processes(const struct watch *w)
{
	for (size_t i = 0; i < w->n_bindings; i++)
		if (w->bindings[i].processes)
			return true;
	return false;
}

void binding_leave(struct process *p)
{
	struct watch *w = p->watch;
	struct binding *b;

	if (!w)
		return;
	p->watch = NULL;
	b = binding_find(w, p->rule);
	if (b && b->processes)
		b->processes--;
	if (!has_processes(w))
		w->emptied_ns = clock_mono_ns();
	if (b && !binding_is_kept(b)) {
		b->loose_ns = clock_mono_ns();
		set_linger(w->all);
	}
	bindings_release(w, "no_process");
}

static bool has_loose(const struct watch *w)
{
	for (size_t i = 0; i < w->n_bindings; i++)
		if (!binding_is_kept(&w->bindings[i]))
			return true;
	return false;
}

void bindings_expire(struct watches *ws)
{
	struct watch **by_slot = ws->by_slot;
	bool more = false;

	for (uint32_t i = 0; i < ws->pins->abi.slots; i++) {
		if (!by_slot[i] || !has_loose(by_slot[i]))
			continue;
		bindings_release(by_slot[i], "no_process");
		more = more || (by_slot[i] && has_loose(by_slot[i]));
	}
	ws->lingering = false;
	if (more)
		set_linger(ws);
}

static void on_linger(void *context, uint32_t events)
{
	bindings_expire(context);
}

int bindings_listen(struct watches *ws, struct loop *loop)
{
	return loop_timer(loop, on_linger, ws, &ws->linger_timer);
}

void bindings_refresh(struct watch *w)
{
	struct slot *slot = &w->all->pins->slots[w->slot];

	w->by_process = is_by_process(w);
	__atomic_store_n(&slot->flags, watch_slot_flags(w), __ATOMIC_RELEASE);
	if (w->by_process && w->session)
		session_narrow(w->session);
	if (w->session &&
	    watch_shares_slot(w, w->session->target.rule, w->session->target.only_tgid))
		session_share(w->session);
	w->all->calls->changed(w->all->context, w);
}

/*
 * Returns the rule of the new set that continues the binding: the rule with the same name and
 * content. A rule without a name continues only if no other rule of the set is more specific for
 * this cgroup: the scan binds that other rule.
 */
static const struct rule *find_successor(const struct watch *w, const struct binding *b,
					 const struct rules *fresh)
{
	const struct rule *same = rules_find(fresh, b->rule->name);

	if (!same || !rule_equal(b->rule, same))
		return NULL;
	return same->n_comms || rules_match_cgroup(fresh, w->path) == same ? same : NULL;
}

/* Points each binding to its rule in the new set; its state is kept. */
static void rebind_watch(struct watch *w, const struct rules *fresh)
{
	for (size_t i = 0; i < w->n_bindings; i++) {
		struct binding *b = &w->bindings[i];

		b->rule = find_successor(w, b, fresh);
		b->by_cgroup = b->by_cgroup && b->rule;
		b->processes = 0; /* recounted while processes are matched against the new set */
	}
	for (size_t i = 0; i < w->n_bindings;) {
		if (w->bindings[i].rule) {
			i++;
			continue;
		}
		w->bindings[i] = w->bindings[--w->n_bindings];
	}
	if (w->n_bindings)
		remember_rule(w, w->bindings[0].rule);
}

void bindings_rebind(struct watches *ws, const struct rules *fresh, uint32_t *ret_unchanged)
{
	uint32_t unchanged = 0;
	struct watch *w;
	uint64_t id;

	idmap_for_each (&ws->by_cgroup, i, id, w) {
		size_t before = w->n_bindings;

		rebind_watch(w, fresh);
		if (w->n_bindings == before)
			unchanged++;
	}
	*ret_unchanged = unchanged;
}
