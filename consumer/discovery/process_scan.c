/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/process_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "consumer/discovery/discovery.h"
#include "consumer/discovery/process_match.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* The kernel's seq file returns whole records only, at most its buffer of 8 pages at a time. */
#define READ_BYTES (32u << 10)

int process_scan_each(const struct discovery *d, process_scan_call call, void *context)
{
	_cleanup_close_ int fd = open(d->pins->tasks_path, O_RDONLY | O_CLOEXEC);
	static _Alignas(8) char buffer[READ_BYTES];
	size_t have = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, buffer + have, sizeof(buffer) - have);
		size_t at = 0;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		have += (size_t)n;
		for (; have - at >= sizeof(struct task_record); at += sizeof(struct task_record)) {
			struct task_record t;

			memcpy(&t, buffer + at, sizeof(t));
			t.comm[sizeof(t.comm) - 1] = 0;
			call(context, &t);
		}
		have -= at;
		memmove(buffer, buffer + at, have);
	}
}

static void take_task(void *context, const struct task_record *t)
{
	struct discovery *d = context;
	struct process *p;
	struct watch *w;
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
	process_match_see(d, &seen);
	p = process_find(d->processes, t->tgid, t->start_ns);
	if (p)
		p->scan = d->scan_number;
	w = idmap_get(&d->watches->by_cgroup, t->cgroup_id);
	if (w)
		w->scan = d->scan_number;
}

/*
 * Handles a process that was known before the scan and that the iterator did not list. It lists
 * every process that the kernel side has marked, so this one has ended; but within a scope of the
 * loader it may have left the scope, and then nobody here can tell whether it lives.
 */
static void handle_unlisted(struct discovery *d, struct process *p)
{
	if (d->scope->count)
		process_match_leave(d, p, "not_seen");
	else
		process_match_gone(d, p);
}

/*
 * Lets go of the processes that were known before the scan and have ended, or have left every
 * watched cgroup and matching name. They linger, so that samples still on their way find them.
 */
static void let_go(struct discovery *d, uint64_t began_ns)
{
	struct process *p;
	uint64_t id;

	/* Neither call changes the table during the iteration: both only mark the process. */
	idmap_for_each (&d->processes->by_id, i, id, p) {
		if (p->gone_ns || p->seen_ns >= began_ns)
			continue;
		if (p->scan != d->scan_number)
			handle_unlisted(d, p);
		else if (!p->rule && !p->requested &&
			 !idmap_get(&d->watches->by_cgroup, p->cgroup_id))
			process_match_leave(d, p, "moved");
	}
}

static int take_cgroup(void *context, const char *path, uint64_t id)
{
	struct discovery *d = context;

	cgroups_learn(d->cgroups, id, path);
	if (rules_match_cgroup(d->active->set->rules, path))
		process_match_cgroup(d, id);
	return 0;
}

/*
 * Returns why the watch must end; NULL when it must not, or when that is unknown. The user to whom
 * a cgroup is delegated may make it unreadable for the consumer: that does not end a watch.
 */
static const char *why_ended(struct discovery *d, const struct watch *w)
{
	uint64_t id = 0;
	int r;

	/*
	 * The kernel has just listed a process in it, so no file has to say it: if this scan ended
	 * the watch, the next would start it again.
	 */
	if (w->root || w->scan == d->scan_number)
		return NULL;
	r = cgroups_id(d->cgroups, w->path, &id);
	if (cgroupfs_vanished(r) || (r == 0 && id != w->cgroup_id))
		return "cgroup_removed";
	if (r == 0)
		r = cgroups_occupied(d->cgroups, w->path);
	if (r < 0)
		cgroupfs_unread_add(&d->cgroups->unknown, w->path, r);
	return r == 0 ? "cgroup_empty" : NULL;
}

static void check_watches(struct discovery *d)
{
	d->cgroups->unknown = (struct cgroupfs_unread){};
	for (uint32_t i = 0; i < d->pins->abi.slots; i++) {
		struct watch *w = d->watches->by_slot[i];
		const char *reason = w ? why_ended(d, w) : NULL;

		if (reason)
			watch_remove(w, reason);
		else if (w)
			pressure_follow_again(d->pressure, w);
	}
}

int process_scan_run(struct discovery *d)
{
	uint64_t began_ns = clock_mono_ns();
	int r;

	d->scan_number++;
	schedule_scanned(d->schedule, began_ns);
	if (d->active->set->rules->n_by_cgroup)
		cgroups_walk(d->cgroups, take_cgroup, d);
	cgroup_lookup_walked(d->cgroups);
	if (d->active->set->rules->count || d->watches->count || d->processes->by_id.count) {
		d->pins->control->scan_trie = d->pins->control->active;
		r = process_scan_each(d, take_task, d);
		if (r < 0)
			return r;
	}
	let_go(d, began_ns);
	check_watches(d);
	cgroups_unseen_check(d->unseen, began_ns);
	shares_sweep(d->shares, clock_mono_ns());
	return 0;
}

struct find {
	uint32_t tgid;
	bool found;
	struct task_record task;
};

static void find_task(void *context, const struct task_record *t)
{
	struct find *f = context;

	if (t->tgid != f->tgid)
		return;
	f->task = *t;
	f->found = true;
}

int process_scan_find(struct discovery *d, uint32_t tgid, struct task_record *ret_task)
{
	struct find f = { .tgid = tgid };
	int r = process_scan_each(d, find_task, &f);

	if (r < 0)
		return r;
	if (!f.found)
		return -ESRCH;
	*ret_task = f.task;
	return 0;
}
