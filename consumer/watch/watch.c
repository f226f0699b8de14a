/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch/watch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/watch/watch_tree.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Time between lines about a lack of slots. */
#define FULL_EVERY_NS (60 * NSEC_PER_SEC)

/* The slot of a displaced watch is kept this long for the cgroup that it was displaced for. */
#define PROMISE_NS NSEC_PER_SEC

int watches_init(struct watches *ws)
{
	uint32_t slots = ws->pins->abi.slots;

	idmap_init(&ws->by_cgroup, slots);
	ws->by_slot = calloc(slots, sizeof(struct watch *));
	ws->epochs = calloc(slots, sizeof(*ws->epochs));
	ws->tree.frees = calloc(slots, sizeof(*ws->tree.frees));
	if (!ws->by_slot || !ws->epochs || !ws->tree.frees)
		return -ENOMEM;
	/* The ring may still hold samples of an earlier consumer: continue its epochs. */
	for (uint32_t i = 0; i < slots; i++)
		ws->epochs[i] = ws->pins->slots[i].epoch;
	return 0;
}

void watches_done(struct watches *ws)
{
	for (uint32_t i = 0; ws->by_slot && i < ws->pins->abi.slots; i++)
		if (ws->by_slot[i])
			watch_remove(ws->by_slot[i], "agent_stop");
	if (ws->by_slot)
		watch_tree_settle(ws);
	watch_tree_done(ws);
	loop_remove(ws->linger_timer);
	loop_remove(ws->tree_timer);
	idmap_done(&ws->by_cgroup);
	free(ws->by_slot);
	free(ws->epochs);
	ws->linger_timer = ws->tree_timer = NULL;
	ws->by_slot = NULL;
	ws->epochs = NULL;
}

/* The entries of cgroups below the watch that had a slot must not lead to the slot's next watch. */
static int find_slot(struct watches *ws, uint32_t *ret_slot)
{
	uint32_t slots = ws->pins->abi.slots;

	for (uint32_t i = 0; i < slots; i++) {
		uint32_t slot = (ws->next + i) % slots;

		if (!ws->by_slot[slot] && watch_tree_is_free(ws, slot)) {
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

/*
 * Writes one line in FULL_EVERY_NS: each scan tries again, and an owner of many cgroups can create
 * more.
 */
static void say_full(struct watches *ws)
{
	uint64_t now_ns = clock_mono_ns();

	ws->refused++;
	if (ws->full_ns && now_ns - ws->full_ns < FULL_EVERY_NS)
		return;
	event_line_error(
		ws->log->lines, NULL, "watches_full",
		"load with a larger --watches, or make the rules narrower; trocar status shows the "
		"owners with the most",
		write_refused, &ws->refused,
		"all %u watch slots are taken: further matching cgroups are not watched",
		ws->pins->abi.slots);
	ws->full_ns = now_ns;
	ws->refused = 0;
}

uint32_t watch_slot_flags(const struct watch *w)
{
	return (w->by_process ? SLOT_BY_PROCESS : 0) | (w->root ? SLOT_NO_KTHREADS : 0);
}

bool watch_shares_slot(const struct watch *w, const struct rule *rule, uint32_t only_tgid)
{
	if (only_tgid)
		return true;
	if (!rule || (!rule->scope_process && !w->root))
		return false;
	return w->n_bindings > 1 || (!w->by_process && rule->n_comms);
}

bool watch_lingers(const struct watch *w)
{
	for (size_t i = 0; i < w->n_bindings; i++)
		if (binding_is_kept(&w->bindings[i]))
			return false;
	return !w->requested;
}

/* Returns whether `w` is displaced before `other`, which may be NULL. */
static bool goes_before(const struct watch *w, const struct watch *other)
{
	uint64_t mine = w->owner->held[SHARE_WATCHES];

	if (!other || mine != other->owner->held[SHARE_WATCHES])
		return !other || mine > other->owner->held[SHARE_WATCHES];
	if (watch_lingers(w) != watch_lingers(other))
		return watch_lingers(w);
	return w->start_ns > other->start_ns;
}

/*
 * Returns the watch that must give its slot to a new watch of `owner`, or NULL. Among the watches
 * that yield to `owner` (shares_yield) it prefers watches of the owner with the most watches, then
 * lingering ones, then the youngest. It never takes a watch in a session or one kept by a request.
 */
static struct watch *find_displaced(const struct watches *ws, const struct owner *owner)
{
	struct watch *best = NULL;

	for (uint32_t i = 0; i < ws->pins->abi.slots; i++) {
		struct watch *w = ws->by_slot[i];

		if (w && !w->session && !w->requested &&
		    shares_yield(w->owner, owner, SHARE_WATCHES, 1) && goes_before(w, best))
			best = w;
	}
	return best;
}

/* Returns whether the last free slot is kept for another cgroup. */
static bool is_promised(const struct watches *ws, uint64_t cgroup_id)
{
	return ws->promised_id && ws->promised_id != cgroup_id &&
	       ws->count + 1 >= ws->pins->abi.slots &&
	       clock_mono_ns() - ws->promised_ns < PROMISE_NS;
}

/*
 * Finds a slot; if none is free, removes a watch that must yield to a watch of `owner`. The slot of
 * a removed watch may become free only with the next walk (watch_tree_is_free). Until then it is
 * kept for this cgroup, so that a scan does not give it back to the displaced one.
 */
static int take_slot(struct watches *ws, uint64_t cgroup_id, const struct owner *owner,
		     uint32_t *ret_slot)
{
	struct watch *displaced;

	if (is_promised(ws, cgroup_id)) {
		ws->tree.wanted = true;
		return -ENOSPC;
	}
	if (find_slot(ws, ret_slot) == 0)
		return 0;
	watch_tree_settle(ws);
	if (find_slot(ws, ret_slot) == 0)
		return 0;
	if (ws->count == ws->pins->abi.slots) {
		displaced = find_displaced(ws, owner);
		if (!displaced) {
			say_full(ws);
			return -ENOSPC;
		}
		ws->promised_id = cgroup_id;
		ws->promised_ns = clock_mono_ns();
		watch_remove(displaced, "displaced");
		watch_tree_settle(ws);
	}
	if (find_slot(ws, ret_slot) == 0)
		return 0;
	ws->tree.wanted = true;
	return -ENOSPC;
}

static void free_watch(struct watch *w)
{
	ruleset_unref(w->set);
	shares_sub(w->owner, SHARE_WATCHES, 1);
	shares_put(w->all->shares, w->owner);
	facts_record_done(&w->facts);
	free(w->bindings);
	free(w->path);
	free(w);
}

/* Takes ownership of the path and the reference to the owner, also on failure. */
static struct watch *new_watch(struct watches *ws, uint64_t cgroup_id, char *path,
			       struct owner *owner, uint32_t slot)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w) {
		shares_put(ws->shares, owner);
		free(path);
		return NULL;
	}
	w->all = ws;
	w->cgroup_id = cgroup_id;
	w->slot = slot;
	w->owner = owner;
	shares_add(owner, SHARE_WATCHES, 1);
	w->root = cgroup_id == ws->log->cgroups->root_id;
	w->by_process = w->root;
	w->start_ns = w->recorded_ns = clock_mono_ns();
	w->path = path;
	return w;
}

/*
 * Returns the payer number under which the owner's watches share the kernel side's tables: the
 * number of the owner's other watches, or one that no other owner has. There are as many numbers as
 * slots. A cgroup without a known owner is an owner of its own.
 */
static uint32_t choose_payer(const struct watches *ws, const struct watch *w)
{
	uint32_t n = ws->pins->abi.slots, free = w->slot;
	_cleanup_free_ bool *taken = calloc(n, sizeof(*taken));

	for (uint32_t i = 0; taken && i < n; i++) {
		const struct watch *other = ws->by_slot[i];
		uint32_t payer = ws->pins->slots[i].payer;

		if (!other || other == w || payer >= n)
			continue;
		if (other->owner && other->owner == w->owner)
			return payer;
		taken[payer] = true;
	}
	for (uint32_t i = 0; taken && taken[free] && i < n; i++)
		free = i;
	return free;
}

/*
 * Fills the slot before the map entry that leads to it: a tick that finds the slot finds it ready.
 */
static int arm_slot(struct watches *ws, struct watch *w)
{
	struct slot *slot = &ws->pins->slots[w->slot];
	int r;

	slot->session = 0;
	slot->epoch = w->epoch;
	slot->flags = watch_slot_flags(w);
	slot->outer = watch_tree_outer(ws, w->cgroup_id);
	slot->left_out = 0;
	slot->payer = choose_payer(ws, w);
	__atomic_store_n(&slot->state, SLOT_RECORDER, __ATOMIC_RELEASE);
	r = watch_tree_enter(w);
	if (r < 0)
		return r;
	ws->count++;
	ws->pins->control->heartbeat_ns = clock_mono_ns();
	__atomic_store_n(&ws->pins->control->armed, ws->count, __ATOMIC_RELEASE);
	return 0;
}

static void disarm_slot(struct watches *ws, struct watch *w)
{
	ws->count--;
	__atomic_store_n(&ws->pins->control->armed, ws->count, __ATOMIC_RELEASE);
	watch_tree_leave(w);
	__atomic_store_n(&ws->pins->slots[w->slot].state, SLOT_IDLE, __ATOMIC_RELEASE);
	ws->pins->slots[w->slot].session = 0;
}

/*
 * Passes the number of watches to the sampler and the schedule: they open sampling events and set
 * the drain interval by it.
 */
static void tell_count(struct watches *ws)
{
	sampler_watched(ws->sampler, ws->count > 0);
	schedule_watches(ws->schedule, ws->count);
}

struct watch *watches_at(const struct watches *ws, uint32_t slot, uint32_t epoch)
{
	struct watch *w = slot < ws->pins->abi.slots ? ws->by_slot[slot] : NULL;

	return w && w->epoch == epoch ? w : NULL;
}

/* Keeps the current counters of the slot. */
static void note_counters(struct watch *w)
{
	uint64_t now_ns = clock_mono_ns();
	struct slot_counters sum;

	if (counter_history_wants(&w->counters, now_ns) &&
	    pinned_maps_slot(w->all->pins, w->slot, &sum) == 0)
		counter_history_add(&w->counters, now_ns, &sum);
}

void watches_note_counters(struct watches *ws)
{
	uint32_t left = ws->count;

	for (uint32_t i = 0; left && i < ws->pins->abi.slots; i++)
		if (ws->by_slot[i]) {
			note_counters(ws->by_slot[i]);
			left--;
		}
}

int watch_get(struct watches *ws, uint64_t cgroup_id, uint32_t pid_hint, struct watch **ret_watch)
{
	struct watch *w = idmap_get(&ws->by_cgroup, cgroup_id);
	_cleanup_free_ char *path = NULL;
	struct owner *owner;
	const char *known;
	uint32_t slot;
	int r;

	if (w) {
		*ret_watch = w;
		return 0;
	}
	known = cgroups_path(ws->log->cgroups, cgroup_id, pid_hint);
	if (!known)
		return -ENOENT;
	if (!scope_holds(ws->scope, known)) {
		scope_refuse(ws->scope, known, ws->log->lines);
		return -EXDEV;
	}
	/*
	 * Copies the path: watch_remove of a displaced watch writes a line, which may look up
	 * cgroups.
	 */
	path = strdup(known);
	if (!path)
		return -ENOMEM;
	owner = shares_of_cgroup(ws->shares, ws->log->cgroups, cgroup_id, pid_hint);
	r = take_slot(ws, cgroup_id, owner, &slot);
	if (r < 0) {
		shares_put(ws->shares, owner);
		return r;
	}
	w = new_watch(ws, cgroup_id, TAKE_PTR(path), owner, slot);
	if (!w)
		return -ENOMEM;
	w->epoch = ++ws->epochs[w->slot];
	if (pinned_maps_slot(ws->pins, w->slot, &w->counted) < 0)
		w->counted = (struct slot_counters){};
	counter_history_add(&w->counters, w->start_ns, &w->counted);
	r = idmap_put(&ws->by_cgroup, cgroup_id, w);
	if (r < 0) {
		free_watch(w);
		return r;
	}
	ws->by_slot[w->slot] = w;
	r = arm_slot(ws, w);
	if (r < 0) {
		ws->by_slot[w->slot] = NULL;
		idmap_remove(&ws->by_cgroup, cgroup_id);
		free_watch(w);
		return r;
	}
	tell_count(ws);
	if (ws->promised_id == cgroup_id)
		ws->promised_id = 0;
	*ret_watch = w;
	return 0;
}

void watch_remove(struct watch *w, const char *reason)
{
	struct watches *ws = w->all;
	bool moved = false;
	struct process *p;
	uint64_t id;

	if (w->session)
		session_end(ws->sessions, w->session);
	idmap_for_each (&ws->processes->by_id, i, id, p)
		if (p->watch == w) {
			p->watch = NULL;
			moved = moved || !p->gone_ns;
		}
	disarm_slot(ws, w);
	ws->by_slot[w->slot] = NULL;
	idmap_remove(&ws->by_cgroup, w->cgroup_id);
	ws->calls->stopped(ws->context, w, reason);
	free_watch(w);
	tell_count(ws);
	/* No event reports the new place of a process that outlives its cgroup: scan. */
	if (moved)
		schedule_scan_soon(ws->schedule);
}
