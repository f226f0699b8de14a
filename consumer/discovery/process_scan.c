/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/process_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/cgroup/cgroups_walk.h"
#include "consumer/discovery/discovery.h"
#include "consumer/discovery/process_match.h"
#include "consumer/io/turn.h"
#include "consumer/watch/binding.h"
#include "consumer/watch/watch_tree.h"
#include "shared/tools/array.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Marks the watches that hold a process of that cgroup. */
static void mark_watches(struct discovery *d, uint64_t cgroup_id)
{
	struct watch *w = watch_tree_find(d->watches, cgroup_id);

	for (int i = 0; w && i < WATCHES_NESTED; i++) {
		w->scan = d->scan.number;
		w = watch_tree_above(w);
	}
}

static void take_task(struct discovery *d, const struct task_record *t)
{
	struct process *p;
	struct sighting seen = {
		.tgid = t->tgid,
		.ppid = t->ppid,
		.uid = UID_UNKNOWN,
		.start_ns = t->start_ns,
		.cgroup_id = t->cgroup_id,
		.time_ns = clock_mono_ns(),
		.found = "scan",
	};

	memcpy(seen.comm, t->comm, sizeof(seen.comm));
	if (!path_wait_process(d, &seen))
		process_match_see(d, &seen);
	p = process_find(d->processes, t->tgid, t->start_ns);
	if (p)
		p->scan = d->scan.number;
	mark_watches(d, t->cgroup_id);
}

/*
 * Handles a process that was known before the scan and that the iterator did not list. It lists
 * every process that the kernel side has marked, so this one has ended; but within a scope of the
 * loader it may have left the scope, and then its state is not known here.
 */
static void handle_unlisted(struct discovery *d, struct process *p)
{
	if (d->scope->count)
		process_match_leave(d, p, "not_seen");
	else
		process_match_gone(d, p);
}

/* Returns whether the scan shows that the process has ended or left. */
static bool is_to_go(const struct discovery *d, const struct process *p)
{
	if (p->gone_ns || p->left_ns || p->seen_ns >= d->scan.began_ns)
		return false;
	return p->scan != d->scan.number ||
	       (!p->rule && !p->requested && !watch_tree_find(d->watches, p->cgroup_id));
}

/*
 * Releases the processes that were known before the scan and have ended, or have left every watched
 * cgroup and matching name. They linger, so that samples still on their way find them. Each part
 * goes through the whole table, which may have changed since the previous part; it skips processes
 * that an earlier part has released.
 */
static bool let_go(struct discovery *d, uint64_t until_ns)
{
	struct process *p;
	uint64_t id;

	/* Neither call changes the table during the iteration: both only mark the process. */
	idmap_for_each (&d->processes->by_id, i, id, p) {
		if (!is_to_go(d, p))
			continue;
		if (p->scan != d->scan.number)
			handle_unlisted(d, p);
		else
			process_match_leave(d, p, "moved");
		if (clock_mono_ns() >= until_ns)
			return false;
	}
	return true;
}

/*
 * Returns why the watch must end; NULL if it must not, or if that is unknown. The user of a
 * delegated cgroup may make it unreadable for the consumer: that does not end a watch.
 */
static const char *why_ended(struct discovery *d, const struct watch *w)
{
	uint64_t id = 0;
	int r;

	/*
	 * The kernel has just listed a process in it, so no file is needed: if this scan ended the
	 * watch, the next would start it again.
	 */
	if (w->root || w->scan == d->scan.number)
		return NULL;
	r = cgroups_id(d->cgroups, w->path, &id);
	if (cgroupfs_vanished(r) || (r == 0 && id != w->cgroup_id))
		return "cgroup_removed";
	if (r == 0)
		r = cgroups_populated(d->cgroups, w->path);
	if (r < 0)
		cgroupfs_unread_add(&d->cgroups->unknown, w->path, r);
	return r == 0 ? "cgroup_empty" : NULL;
}

/*
 * Ends the watch if nothing is left to watch; after a change of the rules also if no rule has it.
 * If the tasks could not be read, only the rules are known.
 */
static void check_watch(struct discovery *d, struct watch *w)
{
	const char *reason = d->scan.failed ? NULL : why_ended(d, w);
	uint32_t slot = w->slot;

	if (reason) {
		watch_remove(w, reason);
		return;
	}
	if (!d->scan.failed)
		pressure_follow_again(d->pressure, w);
	if (!d->scan.new_rules)
		return;
	bindings_release(w, "rule_gone");
	if (d->watches->by_slot[slot])
		bindings_refresh(d->watches->by_slot[slot]);
}

static bool check_watches(struct discovery *d, uint64_t until_ns)
{
	struct process_scan *s = &d->scan;

	while (s->next < d->pins->abi.slots) {
		struct watch *w = d->watches->by_slot[s->next++];

		if (!w)
			continue;
		check_watch(d, w);
		if (clock_mono_ns() >= until_ns)
			return false;
	}
	return true;
}

/* Records the cgroups that a rule by cgroup selects, for take_cgroups. */
static int note_cgroup(void *context, const char *path, uint64_t id)
{
	struct discovery *d = context;
	struct process_scan *s = &d->scan;

	cgroups_learn(d->cgroups, id, path);
	if (!rules_match_cgroup(d->active->set->rules, path))
		return 0;
	if (array_reserve(&s->cgroups, &s->cgroup_room, s->cgroup_count + 1, sizeof(*s->cgroups)) <
	    0)
		return -ENOMEM;
	s->cgroups[s->cgroup_count++] = id;
	return 0;
}

static void forget_cgroups(struct process_scan *s)
{
	free(s->cgroups);
	s->cgroups = NULL;
	s->cgroup_count = s->cgroup_room = 0;
}

static void end_walk(struct discovery *d)
{
	cgroups_walk_free(d->scan.walk);
	d->scan.walk = NULL;
	cgroup_lookup_walked(d->cgroups);
}

static bool walk_cgroups(struct discovery *d, uint64_t until_ns)
{
	struct process_scan *s = &d->scan;

	if (!s->walk && d->active->set->rules->n_by_cgroup)
		(void)cgroups_walk_new(d->cgroups, note_cgroup, d, &s->walk); /* it has the error */
	if (s->walk && cgroups_walk_step(s->walk, until_ns) > 0)
		return false;
	end_walk(d);
	return true;
}

static bool take_cgroups(struct discovery *d, uint64_t until_ns)
{
	struct process_scan *s = &d->scan;

	while (s->next < s->cgroup_count) {
		uint64_t id = s->cgroups[s->next++];

		/*
		 * A cgroup that was removed since the walk is unknown: looking it up takes a whole
		 * walk.
		 */
		if (cgroups_knows(d->cgroups, id))
			process_match_cgroup(d, id);
		if (clock_mono_ns() >= until_ns)
			return false;
	}
	forget_cgroups(s);
	return true;
}

static bool take_tasks(struct discovery *d, uint64_t until_ns)
{
	struct process_scan *s = &d->scan;
	struct task_record task = {};
	int r = 0;

	if (!s->tasks.open) {
		if (!d->active->set->rules->count && !d->watches->count &&
		    !d->processes->by_id.count)
			return true;
		r = task_list_open(d->pins, d->pins->control->active, &s->tasks);
	}
	while (r == 0 && (r = task_list_next(&s->tasks, until_ns, &task)) > 0) {
		take_task(d, &task);
		if (clock_mono_ns() >= until_ns)
			return false;
		r = 0;
	}
	if (r == -EAGAIN)
		return false;
	task_list_close(&s->tasks);
	s->failed = r;
	return true;
}

/* Continues the current stage until `until_ns` (clock_mono_ns); true when the stage has ended. */
static bool continue_stage(struct discovery *d, uint64_t until_ns)
{
	switch (d->scan.stage) {
	case SCAN_WALK:
		return walk_cgroups(d, until_ns);
	case SCAN_CGROUPS:
		return take_cgroups(d, until_ns);
	case SCAN_TASKS:
		return take_tasks(d, until_ns);
	case SCAN_LET_GO:
		return d->scan.failed ? true : let_go(d, until_ns);
	case SCAN_WATCHES:
		return check_watches(d, until_ns);
	case SCAN_NONE:
		break;
	}
	return true;
}

/* Continues the stage, and counts the time that it takes. */
static bool step_stage(struct discovery *d, uint64_t until_ns)
{
	uint64_t cpu_ns = clock_thread_ns(), listed_ns = d->cgroups->listed_cpu_ns;
	bool ended = continue_stage(d, until_ns);

	d->scan.cpu_ns += clock_thread_ns() - cpu_ns + d->cgroups->listed_cpu_ns - listed_ns;
	return ended;
}

static void begin_scan(struct discovery *d)
{
	struct process_scan *s = &d->scan;

	s->number++;
	s->stage = SCAN_WALK;
	s->next = 0;
	s->failed = 0;
	s->repeat = false;
	s->cpu_ns = 0;
	s->began_ns = clock_mono_ns();
	d->cgroups->unknown = (struct cgroupfs_unread){};
	cgroups_look_again(d->cgroups);
	watch_tree_settle(d->watches);
	schedule_scanned(d->schedule, s->began_ns);
}

static void end_scan(struct discovery *d)
{
	struct process_scan *s = &d->scan;

	s->stage = SCAN_NONE;
	s->new_rules = false;
	schedule_scan_took(d->schedule, s->cpu_ns);
	if (!s->failed) {
		cgroups_unseen_check(d->unseen, s->began_ns);
		shares_sweep(d->shares, clock_mono_ns());
	}
	if (s->repeat)
		begin_scan(d);
}

void process_scan_ask(struct discovery *d)
{
	if (d->scan.stage != SCAN_NONE)
		d->scan.repeat = true;
	else
		begin_scan(d);
}

void process_scan_stop(struct discovery *d)
{
	if (!process_scan_runs(d))
		return;
	end_walk(d);
	task_list_close(&d->scan.tasks);
	forget_cgroups(&d->scan);
	d->scan.stage = SCAN_NONE;
}

void process_scan_rules(struct discovery *d)
{
	process_scan_stop(d);
	begin_scan(d);
	d->scan.new_rules = true;
}

bool process_scan_runs(const struct discovery *d)
{
	return d->scan.stage != SCAN_NONE;
}

int process_scan_step(struct discovery *d)
{
	uint64_t until_ns = turn_until_ns();
	struct process_scan *s = &d->scan;
	int r = 0;

	while (r == 0 && process_scan_runs(d) && step_stage(d, until_ns)) {
		s->next = 0;
		if (s->stage++ == SCAN_WATCHES) {
			r = s->failed;
			end_scan(d);
		}
	}
	if (process_scan_runs(d))
		schedule_drain_soon(d->schedule);
	return r;
}
