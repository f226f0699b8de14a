/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/process_match.h"

#include <errno.h>
#include <string.h>

#include "consumer/discovery/discovery.h"
#include "consumer/discovery/match_queue.h"
#include "consumer/watch/binding.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/counter.h"
#include "shared/tools/macro.h"

/*
 * Writes process.match. If the rule's line budget omitted it, writes it when the process is seen
 * again and the budget has space; does not count it as omitted a second time.
 */
static void say_match(struct discovery *d, struct process *p, const char *found, bool fresh)
{
	const struct event_about about = { p->rule, p->cgroup_id, p->uid, NULL };

	if (p->match.queued) {
		if (fresh)
			match_queue_add(d, p, found);
		return;
	}
	if (!fresh && (p->announced || (p->left_out && !event_budget_has_room(d->budget, &about))))
		return;
	if (!event_budget_take(d->budget, &about, LINE_MATCH)) {
		p->left_out = true;
		return;
	}
	match_queue_add(d, p, found);
}

static void fire_exec(struct discovery *d, const struct process *p)
{
	struct trigger trigger = {
		.watch = p->watch,
		.rule = p->rule,
		.reason = { .kind = TRIGGER_EXEC, .pid = p->tgid },
	};
	struct trigger_held held;
	struct session *session;

	memcpy(trigger.reason.comm, p->comm, sizeof(trigger.reason.comm));
	trigger_fire(d->triggers, &trigger, &session, &held);
}

/*
 * Returns the rule for a process: by name and cgroup, else the rule selected by its cgroup alone.
 */
static const struct rule *find_rule(struct discovery *d, const struct sighting *seen)
{
	const char *path = cgroups_path(d->cgroups, seen->cgroup_id, seen->tgid);
	const struct rule *rule = rules_match(d->active->set->rules, seen->comm, path);

	/* The event's rule was of another generation, and no rule of this one matches. */
	if (!rule && seen->generation && seen->generation != d->active->set->generation)
		d->counts->stale_events++;
	return rule || !path ? rule : rules_match_cgroup(d->active->set->rules, path);
}

static void update_process(struct process *p, const struct sighting *seen)
{
	memcpy(p->comm, seen->comm, sizeof(p->comm));
	p->cgroup_id = seen->cgroup_id;
	if (seen->ppid)
		p->ppid = seen->ppid;
	if (seen->uid != UID_UNKNOWN)
		p->uid = seen->uid;
	if (seen->image)
		process_mappings_exec(p, seen->time_ns);
}

static void write_left(struct discovery *d, const struct process *p, const struct rule *rule,
		       const char *reason)
{
	const struct event_about about = { rule, p->cgroup_id, p->uid, NULL };
	struct event_subject subject;
	struct jsonw w;

	if (!event_budget_take(d->budget, &about, LINE_LEFT))
		return;
	subject = event_log_subject(d->log, rule, p->cgroup_id);
	event_line_begin(d->log->lines, &w, "process.left", &subject);
	jsonw_u64(&w, "pid", p->tgid);
	jsonw_u64(&w, "start_ns", p->start_ns);
	jsonw_string(&w, "comm", p->comm);
	jsonw_string(&w, "reason", reason);
	event_line_end(d->log->lines, &w);
}

/*
 * Writes process.left if process.match was written: the process lives, and no longer matches `rule`
 * (NULL: the set in force does not have that rule).
 */
static void say_left(struct discovery *d, struct process *p, const struct rule *rule,
		     const char *reason)
{
	if (p->announced)
		write_left(d, p, rule, reason);
	else if (p->left_out)
		event_budget_leave_out(d->budget, rule, LINE_LEFT);
	p->announced = p->left_out = false;
}

/* Reads the mappings of a process that has returned after leaving: they may have changed since. */
static void read_again(struct discovery *d, struct process *p)
{
	p->tried_ns = 0;
	if (mappings_queue_is_used(d->queue))
		mappings_queue_ask(d->queue, p, clock_mono_ns());
	else
		process_mappings_read(d->mappings, p, clock_mono_ns());
}

/*
 * Makes a matched process. If the table is full, losses.c reports it, and a later scan finds the
 * process again.
 */
static bool make_process(struct discovery *d, const struct sighting *seen,
			 struct process **ret_process)
{
	if (process_get(d->processes, seen->tgid, seen->start_ns, ret_process) == 0)
		return true;
	d->counts->matches_full++;
	schedule_scan_again(d->schedule);
	return false;
}

void process_match_see(struct discovery *d, const struct sighting *seen)
{
	const struct rule *rule = find_rule(d, seen);
	struct process *p = process_find(d->processes, seen->tgid, seen->start_ns);
	const struct rule *was = p ? p->rule : NULL;
	bool moved, fresh, back;

	if ((!p && !rule) || (!p && !make_process(d, seen, &p)) || p->gone_ns)
		return;
	/* The kernel's table gets only the needed part: put a process that had left back first. */
	back = rule && p->left_ns;
	if (back)
		process_back(d->processes, p);
	moved = p->cgroup_id != seen->cgroup_id;
	/*
	 * The kernel reports a rename within execve(2) just before its exec event: the same match,
	 * written twice.
	 */
	fresh = was != rule || seen->image;
	if (p->watch && (moved || was != rule))
		binding_leave(p);
	update_process(p, seen);
	p->rule = rule;
	/* Unchanged processes are in the kernel's table already: a scan must stay cheap. */
	if (fresh || p->generation != d->active->set->generation)
		process_targets_match(d->targets, p);
	p->generation = d->active->set->generation;
	process_unwind_matched(d->unwind, p);
	if (!rule) {
		say_left(d, p, was, !was ? "rule_gone" : moved ? "moved" : "renamed");
		return;
	}
	if (back)
		read_again(d, p);
	say_match(d, p, seen->found, fresh);
	if (!p->watch && binding_join(d->watches, p) < 0)
		return;
	if (rule->on_exec && seen->image)
		fire_exec(d, p);
}

static void say_exit(struct discovery *d, const struct process *p)
{
	const struct event_about about = { p->rule, p->cgroup_id, p->uid, NULL };
	struct event_subject subject;
	uint64_t lived_ns;
	struct jsonw w;

	if (!event_budget_take(d->budget, &about, LINE_EXIT))
		return;
	(void)counter_growth(p->start_ns, clock_boot_ns(), &lived_ns); /* another time namespace */
	subject = event_log_subject(d->log, p->rule, p->cgroup_id);
	event_line_begin(d->log->lines, &w, "process.exit", &subject);
	jsonw_u64(&w, "pid", p->tgid);
	jsonw_u64(&w, "start_ns", p->start_ns);
	jsonw_string(&w, "comm", p->comm);
	jsonw_u64(&w, "lived_ms", lived_ns / NSEC_PER_MSEC);
	event_line_end(d->log->lines, &w);
}

void process_match_gone(struct discovery *d, struct process *p)
{
	if (p->gone_ns)
		return;
	process_gone(d->processes, p);
	process_targets_forget(d->targets, p);
	mappings_queue_leave(d->queue, p);
	match_queue_leave(d, p);
	if (p->announced)
		say_exit(d, p);
	else if (p->left_out)
		event_budget_leave_out(d->budget, p->rule, LINE_EXIT);
	process_unwind_leave(d->unwind, p);
	binding_leave(p);
}

void process_match_leave(struct discovery *d, struct process *p, const char *reason)
{
	const struct rule *rule = p->rule;

	if (p->gone_ns || p->left_ns)
		return;
	mappings_queue_leave(d->queue, p);
	match_queue_leave(d, p);
	binding_leave(p);
	p->rule = NULL;
	say_left(d, p, rule, reason);
	process_unwind_leave(d->unwind, p);
	process_targets_forget(d->targets, p);
	process_left(d->processes, p);
}

/*
 * Returns whether a rule without a name watches that cgroup: a cgroup with processes of its own, or
 * a cgroup with processes below it that the rule names by its complete path.
 */
static bool may_watch(struct discovery *d, const struct rule *rule, const char *path)
{
	if (!strcmp(rule->cgroup_prefix, path))
		return cgroups_populated(d->cgroups, path) != 0;
	return cgroups_occupied(d->cgroups, path) != 0;
}

void process_match_cgroup(struct discovery *d, uint64_t cgroup_id)
{
	const char *path = cgroups_path(d->cgroups, cgroup_id, 0);
	const struct rule *rule;
	struct binding *b;
	struct watch *w;

	rule = path ? rules_match_cgroup(d->active->set->rules, path) : NULL;
	if (!rule || cgroup_id == d->cgroups->root_id || !may_watch(d, rule, path) ||
	    watch_get(d->watches, cgroup_id, 0, &w) < 0)
		return;
	b = binding_find(w, rule);
	if (b && b->by_cgroup)
		return;
	/*
	 * The iterator lists the processes of a watched cgroup: the scan writes their
	 * process.match.
	 */
	if (binding_add_cgroup(w, rule) == 0)
		schedule_scan_soon(d->schedule);
}
