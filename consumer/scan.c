/* SPDX-License-Identifier: BSD-2-Clause */
/* The scan: what discovery by events may have missed, and what was there before us. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/agent.h"
#include "consumer/discover.h"
#include "consumer/matching.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/io.h"
#include "shared/macro.h"
#include "shared/parse.h"

/* The seq file hands out whole records only, at most its buffer of 8 pages at a time. */
#define READ_BYTES (32u << 10)

/* Of a cgroup.procs file in a preview: some 100,000 processes. */
#define PROCS_BYTES (1u << 20)

typedef void (*task_call)(void *context, const struct task_record *t);

static int each_task(const char *path, task_call call, void *context)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
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
	struct agent *a = context;
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
	matching_see(a, &seen);
	p = process_find(&a->processes, t->tgid, t->start_ns);
	if (p)
		p->scan = a->scan_number;
	w = idmap_get(&a->watches.by_cgroup, t->cgroup_id);
	if (w)
		w->scan = a->scan_number;
}

/*
 * What was known before the scan and was not listed has gone, or left every watched cgroup and
 * matching name. It lingers, so that samples still on their way find it.
 */
static void let_go(struct agent *a, uint64_t began_ns)
{
	struct process *p;
	uint64_t id;

	/* matching_gone only marks: the table stays as it is. */
	idmap_for_each (&a->processes.by_id, i, id, p)
		if (!p->gone_ns && p->scan != a->scan_number && p->seen_ns < began_ns)
			matching_gone(a, p);
}

static int take_cgroup(void *context, const char *path, uint64_t id)
{
	struct agent *a = context;

	cgroups_learn(&a->cgroups, id, path);
	if (rules_match_cgroup(a->active.set->rules, path))
		matching_cgroup(a, id);
	return 0;
}

/*
 * Why the watch must end; NULL when it must not, or when that is unknown. Whoever a cgroup is
 * delegated to may close it to us: that ends no watch.
 */
static const char *ended(struct agent *a, const struct watch *w)
{
	uint64_t id = 0;
	int r;

	/* The kernel has just listed somebody in it: no file knows better, and a watch that this
	 * scan ended would be made again by the next. */
	if (w->root || w->scan == a->scan_number)
		return NULL;
	r = cgroups_id(&a->cgroups, w->path, &id);
	if (cgroupfs_vanished(r) || (r == 0 && id != w->cgroup_id))
		return "cgroup_removed";
	if (r == 0)
		r = cgroups_occupied(&a->cgroups, w->path);
	if (r < 0)
		cgroupfs_unread_add(&a->cgroups.unknown, w->path, r);
	return r == 0 ? "cgroup_empty" : NULL;
}

static void check_watches(struct agent *a)
{
	a->cgroups.unknown = (struct cgroupfs_unread){};
	for (uint32_t i = 0; i < a->pins.abi.slots; i++) {
		struct watch *w = a->watches.by_slot[i];
		const char *reason = w ? ended(a, w) : NULL;

		if (reason)
			watch_remove(w, reason);
		else if (w)
			pressure_follow_again(&a->pressure, w);
	}
}

int discover_scan(struct agent *a)
{
	uint64_t began_ns = clock_mono_ns();
	int r;

	a->scan_number++;
	schedule_scanned(&a->schedule, began_ns);
	if (a->active.set->rules->n_by_cgroup)
		cgroups_walk(&a->cgroups, take_cgroup, a);
	cgroups_walked(&a->cgroups);
	if (a->active.set->rules->count || a->watches.count) {
		a->pins.control->scan_trie = a->pins.control->active;
		r = each_task(a->pins.tasks_path, take_task, a);
		if (r < 0)
			return r;
	}
	let_go(a, began_ns);
	check_watches(a);
	cgroups_unseen_check(&a->unseen, began_ns);
	processes_sweep(&a->processes, clock_mono_ns());
	shares_sweep(&a->shares, clock_mono_ns());
	return 0;
}

struct preview {
	struct agent *agent;
	const struct rules *rules;
	struct jsonw *w;
	size_t room; /* matches that may still be written */
	struct discover_left left;
};

static void preview_write(struct preview *v, const struct rule *rule, uint32_t pid,
			  const char *comm, const char *path)
{
	if (!v->room) {
		v->left.omitted++;
		return;
	}
	v->room--;
	jsonw_object(v->w, NULL);
	jsonw_string(v->w, "rule", rule->name);
	jsonw_u64(v->w, "pid", pid);
	jsonw_string(v->w, "comm", comm);
	jsonw_string(v->w, "cgroup", path);
	jsonw_object_end(v->w);
}

static void read_comm(uint32_t pid, char comm[COMM_BYTES])
{
	_cleanup_free_ char *text = NULL;
	char path[32];
	size_t bytes;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	if (io_read_file(AT_FDCWD, path, 64, &text, &bytes) == 0)
		snprintf(comm, COMM_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
}

static void preview_task(void *context, const struct task_record *t)
{
	struct preview *v = context;
	const char *path = cgroups_path(&v->agent->cgroups, t->cgroup_id, t->tgid);
	const struct rule *rule = rules_match(v->rules, t->comm, path);

	if (rule)
		preview_write(v, rule, t->tgid, t->comm, path);
}

static int read_procs(struct cgroups *c, const char *path, char **ret_text, size_t *ret_bytes)
{
	_cleanup_close_ int fd = cgroups_open_file(c, path, "cgroup.procs");

	return fd < 0 ? fd : io_read_fd(fd, PROCS_BYTES, ret_text, ret_bytes);
}

/* Processes of a cgroup that a rule by cgroup selects and no rule by name has. */
static int preview_cgroup(void *context, const char *path, uint64_t id)
{
	struct preview *v = context;
	const struct rule *rule = rules_match_cgroup(v->rules, path);
	_cleanup_free_ char *procs = NULL;
	char *rest, *line;
	size_t bytes;
	int r;

	if (!rule || id == v->agent->cgroups.root_id)
		return 0;
	r = read_procs(&v->agent->cgroups, path, &procs, &bytes);
	if (r < 0) {
		v->left.unreadable += !cgroupfs_vanished(r);
		return 0;
	}
	for (rest = procs; (line = strsep(&rest, "\n"));) {
		char comm[COMM_BYTES] = "";
		uint64_t pid;

		if (parse_u64(line, 1, INT32_MAX, &pid) < 0)
			continue;
		read_comm((uint32_t)pid, comm);
		if (!rules_match(v->rules, comm, path))
			preview_write(v, rule, (uint32_t)pid, comm, path);
	}
	return 0;
}

int discover_preview(struct agent *a, const struct rules *rules, size_t max, struct jsonw *w,
		     struct discover_left *ret_left)
{
	struct preview v = { .agent = a, .rules = rules, .w = w, .room = max };
	int r;

	a->pins.control->scan_trie = !a->pins.control->active;
	r = each_task(a->pins.tasks_path, preview_task, &v);
	a->pins.control->scan_trie = a->pins.control->active;
	if (r < 0)
		return r;
	if (rules->n_by_cgroup)
		cgroups_walk(&a->cgroups, preview_cgroup, &v);
	*ret_left = v.left;
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

int discover_find(struct agent *a, uint32_t tgid, struct task_record *ret_task)
{
	struct find f = { .tgid = tgid };
	int r = each_task(a->pins.tasks_path, find_task, &f);

	if (r < 0)
		return r;
	if (!f.found)
		return -ESRCH;
	*ret_task = f.task;
	return 0;
}
