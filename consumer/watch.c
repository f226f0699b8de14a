/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/agent.h"
#include "consumer/sharing.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/macro.h"

/* Between lines that say that no slot is left. */
#define FULL_EVERY_NS (60 * NSEC_PER_SEC)

int watches_init(struct agent *a)
{
	struct watches *ws = &a->watches;

	idmap_init(&ws->by_cgroup, a->pins.abi.slots);
	ws->by_slot = calloc(a->pins.abi.slots, sizeof(struct watch *));
	ws->epochs = calloc(a->pins.abi.slots, sizeof(*ws->epochs));
	if (!ws->by_slot || !ws->epochs)
		return -ENOMEM;
	/* Samples of an earlier consumer may still be in the ring: go on with its epochs. */
	for (uint32_t i = 0; i < a->pins.abi.slots; i++)
		ws->epochs[i] = a->pins.slots[i].epoch;
	return 0;
}

void watches_done(struct agent *a)
{
	struct watches *ws = &a->watches;

	for (uint32_t i = 0; ws->by_slot && i < a->pins.abi.slots; i++)
		if (ws->by_slot[i])
			watch_remove(ws->by_slot[i], "agent_stop");
	idmap_done(&ws->by_cgroup);
	free(ws->by_slot);
	free(ws->epochs);
	*ws = (struct watches){};
}

static int find_slot(struct agent *a, uint32_t *ret_slot)
{
	struct watches *ws = &a->watches;
	uint32_t slots = a->pins.abi.slots;

	for (uint32_t i = 0; i < slots; i++) {
		uint32_t slot = (ws->next + i) % slots;

		if (!ws->by_slot[slot]) {
			ws->next = (slot + 1) % slots;
			*ret_slot = slot;
			return 0;
		}
	}
	return -ENOSPC;
}

static void write_refused(void *context, struct jsonw *w)
{
	jsonw_u64(w, "count", *(const uint64_t *)context);
}

/* Each scan tries again, and who has many cgroups makes more: a line a minute. */
static void say_full(struct agent *a)
{
	struct watches *ws = &a->watches;
	uint64_t now_ns = clock_mono_ns();

	ws->refused++;
	if (ws->full_ns && now_ns - ws->full_ns < FULL_EVERY_NS)
		return;
	line_error(&a->lines, NULL, "watches_full",
		   "load with a larger --watches, or make the rules narrower; trocar status shows "
		   "who has how many",
		   write_refused, &ws->refused,
		   "all %u watch slots are taken: further matching cgroups are not watched",
		   a->pins.abi.slots);
	ws->full_ns = now_ns;
	ws->refused = 0;
}

/* A slot, if need be of a watch that has to give way to one of `owner`. */
static int take_slot(struct agent *a, const struct owner *owner, uint32_t *ret_slot)
{
	struct watch *displaced;

	if (find_slot(a, ret_slot) == 0)
		return 0;
	displaced = sharing_displaced(a, owner);
	if (!displaced) {
		say_full(a);
		return -ENOSPC;
	}
	watch_remove(displaced, "displaced");
	return find_slot(a, ret_slot);
}

static void free_watch(struct watch *w)
{
	pressure_unfollow(w);
	ruleset_unref(w->set);
	owner_sub(w->owner, SHARE_WATCHES, 1);
	shares_put(&w->agent->shares, w->owner);
	free(w->bindings);
	free(w->path);
	free(w);
}

/* It takes the path and the reference to its owner, in any case. */
static struct watch *new_watch(struct agent *a, uint64_t cgroup_id, char *path, struct owner *owner,
			       uint32_t slot)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w) {
		shares_put(&a->shares, owner);
		free(path);
		return NULL;
	}
	w->agent = a;
	w->cgroup_id = cgroup_id;
	w->slot = slot;
	w->owner = owner;
	owner_add(owner, SHARE_WATCHES, 1);
	w->root = cgroup_id == a->cgroups.root_id;
	w->by_process = w->root;
	w->start_ns = w->recorded_ns = clock_mono_ns();
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		w->pressure[i].fd = -1;
	w->path = path;
	return w;
}

/* The slot first, then the way to it: a tick that finds the slot finds it ready. */
static int arm(struct agent *a, struct watch *w)
{
	struct slot *slot = &a->pins.slots[w->slot];

	slot->session = 0;
	slot->epoch = w->epoch;
	slot->flags = w->by_process ? SLOT_BY_PROCESS : 0;
	__atomic_store_n(&slot->state, SLOT_RECORDER, __ATOMIC_RELEASE);
	if (bpf_map_update_elem(a->pins.watches_fd, &w->cgroup_id, &w->slot, BPF_ANY) < 0)
		return -errno;
	a->watches.count++;
	a->pins.control->heartbeat_ns = clock_mono_ns();
	__atomic_store_n(&a->pins.control->armed, a->watches.count, __ATOMIC_RELEASE);
	return 0;
}

static void disarm(struct agent *a, struct watch *w)
{
	a->watches.count--;
	__atomic_store_n(&a->pins.control->armed, a->watches.count, __ATOMIC_RELEASE);
	bpf_map_delete_elem(a->pins.watches_fd, &w->cgroup_id);
	__atomic_store_n(&a->pins.slots[w->slot].state, SLOT_IDLE, __ATOMIC_RELEASE);
	a->pins.slots[w->slot].session = 0;
}

/* How many there are is what the drains' pace and the sampling events follow. */
static void tell_count(struct agent *a)
{
	sampler_watched(&a->sampler, a->watches.count > 0);
	schedule_watches(&a->schedule, a->watches.count);
}

int watch_get(struct agent *a, uint64_t cgroup_id, uint32_t pid_hint, struct watch **ret_watch)
{
	struct watch *w = idmap_get(&a->watches.by_cgroup, cgroup_id);
	_cleanup_free_ char *path = NULL;
	struct owner *owner;
	const char *known;
	uint32_t slot;
	int r;

	if (w) {
		*ret_watch = w;
		return 0;
	}
	known = cgroups_path(&a->cgroups, cgroup_id, pid_hint);
	if (!known)
		return -ENOENT;
	if (!scope_holds(&a->scope, known)) {
		scope_refuse(a, known);
		return -EXDEV;
	}
	/* Ours: where another gives way, its last line may look cgroups up. */
	path = strdup(known);
	if (!path)
		return -ENOMEM;
	owner = sharing_owner(a, cgroup_id, pid_hint);
	r = take_slot(a, owner, &slot);
	if (r < 0) {
		shares_put(&a->shares, owner);
		return r;
	}
	w = new_watch(a, cgroup_id, TAKE_PTR(path), owner, slot);
	if (!w)
		return -ENOMEM;
	w->epoch = ++a->watches.epochs[w->slot];
	health_begin(w);
	r = idmap_put(&a->watches.by_cgroup, cgroup_id, w);
	if (r < 0) {
		free_watch(w);
		return r;
	}
	a->watches.by_slot[w->slot] = w;
	r = arm(a, w);
	if (r < 0) {
		a->watches.by_slot[w->slot] = NULL;
		idmap_remove(&a->watches.by_cgroup, cgroup_id);
		free_watch(w);
		return r;
	}
	tell_count(a);
	*ret_watch = w;
	return 0;
}

struct binding *watch_binding(struct watch *w, const struct rule *rule)
{
	for (size_t i = 0; i < w->n_bindings; i++)
		if (w->bindings[i].rule == rule)
			return &w->bindings[i];
	return NULL;
}

static void remember_rule(struct watch *w, const struct rule *rule)
{
	struct ruleset *old = w->set;

	w->set = ruleset_ref(w->agent->active.set);
	w->rule = rule;
	ruleset_unref(old);
}

static void say_rules_full(struct watch *w, const struct rule *rule)
{
	struct line_subject subject = event_log_subject(&w->agent->log, rule, w->cgroup_id);

	if (w->rules_full_said)
		return;
	w->rules_full_said = true;
	line_error(&w->agent->lines, &subject, "watches_full", "make the rules narrower", NULL,
		   NULL, "%s matches more than %d rules: the further ones do not act on it",
		   w->path, WATCH_RULES_MAX);
}

static int add_binding(struct watch *w, const struct rule *rule, struct binding **ret_binding)
{
	struct binding *b = watch_binding(w, rule), *more;

	if (!b) {
		if (w->n_bindings >= WATCH_RULES_MAX) {
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

int watch_join(struct agent *a, struct process *p)
{
	struct binding *b;
	struct watch *w;
	bool fresh;
	int r;

	r = watch_get(a, p->cgroup_id, p->tgid, &w);
	if (r < 0)
		return r;
	fresh = !w->n_bindings && !w->requested;
	r = add_binding(w, p->rule, &b);
	if (r < 0) {
		watch_release(w, "no_process");
		return r;
	}
	b->processes++;
	p->watch = w;
	if (b->processes == 1 && !b->loose_ns)
		watch_refresh(w);
	b->loose_ns = 0;
	if (fresh)
		watch_say_start(w);
	return 0;
}

int watch_bind_cgroup(struct watch *w, const struct rule *rule)
{
	bool fresh = !w->n_bindings && !w->requested;
	struct binding *b;
	int r = add_binding(w, rule, &b);

	if (r < 0) {
		watch_release(w, "rule_gone");
		return r;
	}
	b->by_cgroup = true;
	b->loose_ns = 0;
	watch_refresh(w);
	if (fresh)
		watch_say_start(w);
	return 0;
}

static bool is_kept(const struct binding *b)
{
	return b->by_cgroup || b->processes;
}

/* Drops bindings that nothing keeps and that do not linger. */
static void prune(struct watch *w)
{
	uint64_t now_ns = clock_mono_ns();
	size_t kept = 0;

	for (size_t i = 0; i < w->n_bindings; i++) {
		const struct binding *b = &w->bindings[i];

		if (is_kept(b) || (b->loose_ns && now_ns - b->loose_ns < WATCH_LINGER_NS))
			w->bindings[kept++] = *b;
	}
	w->n_bindings = kept;
}

void watch_release(struct watch *w, const char *reason)
{
	size_t before = w->n_bindings;

	prune(w);
	if (!w->n_bindings && !w->requested)
		watch_remove(w, reason);
	else if (w->n_bindings != before)
		watch_refresh(w);
}

static void linger(struct agent *a)
{
	if (a->watches.lingering)
		return;
	a->watches.lingering = true;
	loop_timer_set(a->linger_timer, WATCH_LINGER_NS, 0);
}

void watch_leave(struct agent *a, struct process *p)
{
	struct watch *w = p->watch;
	struct binding *b;

	if (!w)
		return;
	p->watch = NULL;
	b = watch_binding(w, p->rule);
	if (b && b->processes)
		b->processes--;
	if (b && !is_kept(b)) {
		b->loose_ns = clock_mono_ns();
		linger(a);
	}
	watch_release(w, "no_process");
}

bool watch_lingers(const struct watch *w)
{
	for (size_t i = 0; i < w->n_bindings; i++)
		if (is_kept(&w->bindings[i]))
			return false;
	return !w->requested;
}

static bool has_loose(const struct watch *w)
{
	for (size_t i = 0; i < w->n_bindings; i++)
		if (!is_kept(&w->bindings[i]))
			return true;
	return false;
}

void watches_expire(struct agent *a)
{
	struct watch **by_slot = a->watches.by_slot;
	bool more = false;

	for (uint32_t i = 0; i < a->pins.abi.slots; i++) {
		if (!by_slot[i] || !has_loose(by_slot[i]))
			continue;
		watch_release(by_slot[i], "no_process");
		more = more || (by_slot[i] && has_loose(by_slot[i]));
	}
	a->watches.lingering = false;
	if (more)
		linger(a);
}

static void on_linger(void *context, uint32_t events)
{
	watches_expire(context);
}

int watches_listen(struct agent *a)
{
	return loop_timer(a->loop, on_linger, a, &a->linger_timer);
}

void watch_remove(struct watch *w, const char *reason)
{
	struct agent *a = w->agent;
	bool moved = false;
	struct process *p;
	uint64_t id;

	if (w->session) {
		session_end(w->session);
		w->session->watch = NULL;
	}
	idmap_for_each (&a->processes.by_id, i, id, p)
		if (p->watch == w) {
			p->watch = NULL;
			moved = moved || !p->gone_ns;
		}
	disarm(a, w);
	health_take(w);
	a->watches.by_slot[w->slot] = NULL;
	idmap_remove(&a->watches.by_cgroup, w->cgroup_id);
	watch_say_stop(w, reason);
	free_watch(w);
	pressure_refresh(a);
	tell_count(a);
	/* No event tells where a process moved that lives on without its cgroup. */
	if (moved)
		schedule_scan_soon(&a->schedule);
}

void watch_refresh(struct watch *w)
{
	bool by_process = w->n_bindings > 0 && !w->requested;
	struct slot *slot = &w->agent->pins.slots[w->slot];

	for (size_t i = 0; i < w->n_bindings; i++)
		by_process = by_process && w->bindings[i].rule->scope_process;
	w->by_process = w->root || by_process;
	__atomic_store_n(&slot->flags, w->by_process ? SLOT_BY_PROCESS : 0, __ATOMIC_RELEASE);
	pressure_follow(w);
}

/* The state of a binding goes on when its rule does the same under the same name. */
static void rebind(struct watch *w, const struct rules *fresh)
{
	for (size_t i = 0; i < w->n_bindings; i++) {
		struct binding *b = &w->bindings[i];
		const struct rule *same = rules_find(fresh, b->rule->name);

		b->processes = 0; /* counted anew as processes are matched against the new set */
		b->by_cgroup = b->by_cgroup && same && rule_equal(b->rule, same);
		b->rule = same && rule_equal(b->rule, same) ? same : NULL;
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

void watches_rebind(struct agent *a, const struct rules *fresh, uint32_t *ret_unchanged)
{
	uint32_t unchanged = 0;
	struct watch *w;
	uint64_t id;

	idmap_for_each (&a->watches.by_cgroup, i, id, w) {
		size_t before = w->n_bindings;

		rebind(w, fresh);
		if (w->n_bindings == before)
			unchanged++;
	}
	*ret_unchanged = unchanged;
}
