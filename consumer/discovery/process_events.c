/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/process_events.h"

#include <stdio.h>
#include <string.h>

#include "consumer/conditions/oom_watch.h"
#include "consumer/discovery/discovery.h"
#include "consumer/discovery/process_match.h"
#include "consumer/io/turn.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

bool process_events_valid(const void *record, size_t bytes)
{
	const struct event *e = record;

	if (bytes < sizeof(*e) || e->kind < EVENT_EXEC || e->kind >= EVENT_KINDS_END_)
		return false;
	if (e->path_bytes > CGROUP_PATH_BYTES || bytes < sizeof(*e) + e->path_bytes)
		return false;
	if (e->kind == EVENT_OOM)
		return !e->path_bytes && bytes >= sizeof(*e) + sizeof(struct oom_victim);
	return !e->path_bytes || !e->path[e->path_bytes - 1];
}

static const char *event_path(const struct event *e)
{
	return e->path_bytes && !e->path_cut ? e->path : NULL;
}

static const char *const found_names[] = {
	[EVENT_EXEC] = "exec",
	[EVENT_FORK] = "fork",
	[EVENT_RENAME] = "rename",
	[EVENT_UNNAME] = "rename",
};

/*
 * Matches the process of an exec, fork or rename. EVENT_UNNAME: no rule by name has the new name,
 * which an execve or a rename gave; a rule by cgroup may still match.
 */
static void on_match(struct discovery *d, const struct event *e)
{
	struct sighting seen = {
		.tgid = e->tgid,
		.ppid = e->ppid,
		.uid = e->uid,
		.start_ns = e->start_ns,
		.cgroup_id = e->cgroup_id,
		.time_ns = e->time_ns,
		.found = found_names[e->kind],
		.image = e->flags & EVENT_NEW_IMAGE,
	};

	memcpy(seen.comm, e->comm, sizeof(seen.comm) - 1);
	if (e->kind != EVENT_UNNAME)
		seen.generation = e->generation;
	if (!path_wait_process(d, &seen))
		process_match_see(d, &seen);
}

static void on_gone(struct discovery *d, const struct event *e)
{
	struct process *p = process_find(d->processes, e->tgid, e->start_ns);
	char comm[COMM_BYTES] = "";

	memcpy(comm, e->comm, sizeof(comm) - 1);
	if (path_wait_end(d, e->tgid, e->start_ns, comm) || !p)
		return;
	if (e->comm[0])
		memcpy(p->comm, e->comm, sizeof(p->comm) - 1);
	process_match_gone(d, p);
}

static void on_populated(struct discovery *d, const struct event *e)
{
	const char *path = event_path(e);

	if (path)
		cgroups_learn(d->cgroups, e->cgroup_id, path);
	if (!path_wait_cgroup(d, e->cgroup_id))
		process_match_cgroup(d, e->cgroup_id);
}

static void on_empty(struct discovery *d, const struct event *e)
{
	struct watch *w = idmap_get(&d->watches->by_cgroup, e->cgroup_id);

	if (w)
		watch_remove(w, e->kind == EVENT_RMDIR ? "cgroup_removed" : "cgroup_empty");
	if (e->kind == EVENT_RMDIR)
		cgroups_forget(d->cgroups, e->cgroup_id);
}

/* Reports that the kernel side met an address which the process's unwind table does not have. */
static void on_unmapped(struct discovery *d, const struct event *e)
{
	struct process *p = process_find(d->processes, e->tgid, e->start_ns);

	if (p)
		process_unwind_unmapped(d->unwind, p, e->time_ns);
}

static void on_oom(struct discovery *d, const struct event *e)
{
	oom_watch_take(d->triggers, d->budget, e);
}

static void on_mkdir(struct discovery *d, const struct event *e)
{
	const char *path = event_path(e);

	/* The cgroup has no process yet: keep only its name. */
	if (path)
		cgroups_learn(d->cgroups, e->cgroup_id, path);
}

static void (*const handlers[])(struct discovery *d, const struct event *e) = {
	[EVENT_EXEC] = on_match,	  [EVENT_FORK] = on_match,  [EVENT_RENAME] = on_match,
	[EVENT_EXIT] = on_gone,		  [EVENT_MKDIR] = on_mkdir, [EVENT_RMDIR] = on_empty,
	[EVENT_POPULATED] = on_populated, [EVENT_EMPTY] = on_empty, [EVENT_UNNAME] = on_match,
	[EVENT_UNMAPPED] = on_unmapped,	  [EVENT_OOM] = on_oom,
};

static void take_event(void *context, const void *record, size_t bytes)
{
	struct discovery *d = context;

	if (!process_events_valid(record, bytes)) {
		d->counts->bad_records++;
		return;
	}
	handlers[((const struct event *)record)->kind](d, record);
}

void process_events_drain(struct discovery *d)
{
	if (ring_used(&d->pins->events))
		ring_drain(&d->pins->events, turn_until_ns(), take_event, d);
}
