/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/path_wait.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/discovery/discovery.h"
#include "consumer/discovery/process_match.h"
#include "consumer/io/turn.h"
#include "shared/tools/clock.h"

/* Includes later events behind the waiting ones; beyond this number a scan finds their state. */
#define BEHIND_MAX (4 * PATH_WAIT_MAX)

enum waits_for {
	WAITS_TO_MATCH,	 /* process_match_see */
	WAITS_TO_END,	 /* process_match_gone */
	WAITS_AS_CGROUP, /* process_match_cgroup */
};

struct waiting {
	struct waiting *next;
	enum waits_for kind;
	struct sighting seen; /* for an end: tgid, start_ns, comm; for a cgroup: cgroup_id */
};

static void append_waiting(struct discovery *d, enum waits_for kind, const struct sighting *seen)
{
	struct path_wait *q = &d->waiting;
	struct waiting *w = q->count < BEHIND_MAX ? malloc(sizeof(*w)) : NULL;

	if (!w) {
		schedule_repair_soon(d->schedule);
		return;
	}
	*w = (struct waiting){ .kind = kind, .seen = *seen };
	if (!q->first)
		q->last = &q->first;
	*q->last = w;
	q->last = &w->next;
	q->count++;
	/* If nothing is watched, no other drain may follow. */
	schedule_drain_by(d->schedule, clock_mono_ns());
}

static bool is_waiting(const struct path_wait *q, uint32_t tgid, uint64_t start_ns)
{
	for (const struct waiting *w = q->first; w; w = w->next)
		if (w->seen.tgid == tgid && w->seen.start_ns == start_ns)
			return true;
	return false;
}

/* Whether there is space for one more; else a scan finds it again. */
static bool has_room(struct discovery *d)
{
	if (d->waiting.count < PATH_WAIT_MAX)
		return true;
	schedule_repair_soon(d->schedule);
	return false;
}

/* Whether the path is being looked up; first tries without a lookup. */
static bool lacks_path(struct discovery *d, uint64_t cgroup_id, uint32_t pid_hint)
{
	return !cgroups_path(d->cgroups, cgroup_id, pid_hint) &&
	       cgroups_look_awaits(d->cgroups, cgroup_id);
}

bool path_wait_process(struct discovery *d, const struct sighting *seen)
{
	if (!is_waiting(&d->waiting, seen->tgid, seen->start_ns) &&
	    (!lacks_path(d, seen->cgroup_id, seen->tgid) || !has_room(d)))
		return false;
	append_waiting(d, WAITS_TO_MATCH, seen);
	return true;
}

bool path_wait_end(struct discovery *d, uint32_t tgid, uint64_t start_ns, const char *comm)
{
	struct sighting end = { .tgid = tgid, .start_ns = start_ns };

	if (!is_waiting(&d->waiting, tgid, start_ns))
		return false;
	strncpy(end.comm, comm, sizeof(end.comm) - 1);
	append_waiting(d, WAITS_TO_END, &end);
	return true;
}

bool path_wait_cgroup(struct discovery *d, uint64_t cgroup_id)
{
	const struct sighting seen = { .cgroup_id = cgroup_id };

	if (!lacks_path(d, cgroup_id, 0) || !has_room(d))
		return false;
	append_waiting(d, WAITS_AS_CGROUP, &seen);
	return true;
}

static void end_process(struct discovery *d, const struct sighting *end)
{
	struct process *p = process_find(d->processes, end->tgid, end->start_ns);

	if (!p)
		return;
	if (end->comm[0])
		memcpy(p->comm, end->comm, sizeof(p->comm));
	process_match_gone(d, p);
}

/* Passes the first waiting event on: its path is known now, or no walk looks for it. */
static void hand_on(struct discovery *d)
{
	struct path_wait *q = &d->waiting;
	struct waiting *w = q->first;

	q->first = w->next;
	q->count--;
	if (w->kind == WAITS_TO_MATCH)
		process_match_see(d, &w->seen);
	else if (w->kind == WAITS_TO_END)
		end_process(d, &w->seen);
	else
		process_match_cgroup(d, w->seen.cgroup_id);
	free(w);
}

/* The end of a process needs no path, but it waits behind its process. */
static bool may_go_on(const struct discovery *d)
{
	const struct waiting *w = d->waiting.first;

	return w && !cgroups_look_awaits(d->cgroups, w->seen.cgroup_id);
}

void path_wait_step(struct discovery *d)
{
	uint64_t until_ns = turn_until_ns(), due_ns = cgroups_look_step(d->cgroups, until_ns);

	while (may_go_on(d)) {
		hand_on(d);
		if (clock_mono_ns() >= until_ns)
			break;
	}
	if (due_ns)
		schedule_drain_by(d->schedule, due_ns);
}

bool path_wait_has_rest(const struct discovery *d)
{
	return may_go_on(d);
}

void path_wait_done(struct discovery *d)
{
	struct path_wait *q = &d->waiting;

	while (q->first) {
		struct waiting *w = q->first;

		q->first = w->next;
		free(w);
	}
	q->count = 0;
}
