/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/rule_preview.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/cgroup/cgroups_walk.h"
#include "consumer/discovery/discovery.h"
#include "consumer/discovery/task_list.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"
#include "shared/tools/parse.h"

#define MATCHES_BYTES (8u << 20)

enum stage {
	STAGE_TRIES, /* waits for the idle tries to be free */
	STAGE_TASKS, /* tasks that the iterator lists */
	STAGE_WALK,  /* over the cgroups, for rules by cgroup */
	STAGE_PROCS, /* processes of the cgroups that these rules select */
	STAGE_DONE,
};

/* A cgroup that a rule by cgroup selects. */
struct selected {
	struct selected *next;
	char path[];
};

struct rule_preview {
	struct discovery *discovery;
	struct ruleset *set;
	enum stage stage;
	uint64_t fills;	  /* value of discovery.fills when it filled the tries */
	size_t max, room; /* matches in all, and how many may still be written */
	struct rule_preview_left left;
	struct jsonw matches; /* an array that is not closed yet */
	struct task_list tasks;
	struct task_record held; /* waits for the path of its cgroup; tgid 0: none waits */
	struct cgroups_walk *walk;
	struct selected *selected; /* owned */
	int procs_fd;		   /* cgroup.procs of the first selected cgroup; -1: not open */
	size_t procs_bytes;
	char procs[4096]; /* bytes read from it and not yet processed */
};

static void drop_selected(struct rule_preview *v)
{
	struct selected *s = v->selected;

	v->selected = s->next;
	free(s);
}

static void close_procs(struct rule_preview *v)
{
	if (v->procs_fd >= 0)
		close(v->procs_fd);
	v->procs_fd = -1;
	v->procs_bytes = 0;
}

/* Returns to the first stage. */
static void start_over(struct rule_preview *v)
{
	task_list_close(&v->tasks);
	cgroups_walk_free(v->walk);
	v->walk = NULL;
	while (v->selected)
		drop_selected(v);
	close_procs(v);
	jsonw_done(&v->matches);
	jsonw_init(&v->matches, MATCHES_BYTES);
	jsonw_array(&v->matches, NULL);
	v->held.tgid = 0;
	v->room = v->max;
	v->left = (struct rule_preview_left){};
	v->stage = STAGE_TRIES;
}

int rule_preview_new(struct discovery *d, struct rules *rules, size_t max,
		     struct rule_preview **ret_preview)
{
	struct rule_preview *v = calloc(1, sizeof(*v));
	int r = v ? ruleset_new(rules, d->active->set->generation, "check", &v->set) : -ENOMEM;

	if (r < 0) {
		rules_free(rules);
		free(v);
		return r;
	}
	v->discovery = d;
	v->max = max;
	v->procs_fd = -1;
	jsonw_init(&v->matches, MATCHES_BYTES);
	start_over(v);
	*ret_preview = v;
	return 0;
}

/* Empties the idle tries, unless other rules were put there, and releases them. */
static void release_tries(struct rule_preview *v)
{
	struct discovery *d = v->discovery;

	if (d->preview != v)
		return;
	if (v->fills == d->fills)
		(void)ruleset_clear(d->pins,
				    !d->pins->control->active); /* the next fill repeats it */
	d->preview = NULL;
}

void rule_preview_free(struct rule_preview *v)
{
	if (!v)
		return;
	start_over(v);
	release_tries(v);
	jsonw_done(&v->matches);
	ruleset_unref(v->set);
	free(v);
}

static void write_match(struct rule_preview *v, const struct rule *rule, uint32_t pid,
			const char *comm, const char *path)
{
	if (!v->room) {
		v->left.omitted++;
		return;
	}
	v->room--;
	jsonw_object(&v->matches, NULL);
	jsonw_string(&v->matches, "rule", rule->name);
	jsonw_u64(&v->matches, "pid", pid);
	jsonw_string(&v->matches, "comm", comm);
	jsonw_string(&v->matches, "cgroup", path);
	jsonw_object_end(&v->matches);
}

/* Returns like rule_preview_step, for this stage. */
static int take_tries(struct rule_preview *v)
{
	struct discovery *d = v->discovery;
	int r;

	if (d->preview && d->preview != v)
		return 1;
	d->preview = v;
	v->fills = ++d->fills;
	r = ruleset_fill(d->pins, !d->pins->control->active, v->set);
	return r < 0 ? r : task_list_open(d->pins, !d->pins->control->active, &v->tasks);
}

/* Returns false if the path of its cgroup is still being looked up. */
static bool preview_task(struct rule_preview *v, const struct task_record *t, bool waits)
{
	struct cgroups *c = v->discovery->cgroups;
	const char *path = cgroups_path(c, t->cgroup_id, t->tgid);
	const struct rule *rule;

	if (!path && waits && cgroups_look_awaits(c, t->cgroup_id))
		return false;
	/* The iterator also lists processes of watched cgroups: take_cgroups finds those. */
	rule = rules_match(v->set->rules, t->comm, path);
	if (rule && rule->n_comms)
		write_match(v, rule, t->tgid, t->comm, path);
	return true;
}

/* Continues with the held task. Returns false if it still waits. */
static bool take_held(struct rule_preview *v)
{
	if (!v->held.tgid)
		return true;
	if (cgroups_look_awaits(v->discovery->cgroups, v->held.cgroup_id))
		return false;
	preview_task(v, &v->held, false);
	v->held.tgid = 0;
	return true;
}

static int take_tasks(struct rule_preview *v, uint64_t until_ns)
{
	struct task_record task = {};
	int r;

	if (!take_held(v))
		return 1;
	while ((r = task_list_next(&v->tasks, until_ns, &task)) > 0) {
		if (!preview_task(v, &task, true)) {
			v->held = task;
			schedule_drain_soon(v->discovery->schedule);
			return 1;
		}
		if (clock_mono_ns() >= until_ns)
			return 1;
	}
	return r == -EAGAIN ? 1 : r;
}

static int select_cgroup(void *context, const char *path, uint64_t id)
{
	struct rule_preview *v = context;
	size_t bytes = strlen(path) + 1;
	struct selected *s;

	if (id == v->discovery->cgroups->root_id || !rules_match_cgroup(v->set->rules, path))
		return 0;
	s = malloc(sizeof(*s) + bytes);
	if (!s)
		return -ENOMEM;
	memcpy(s->path, path, bytes);
	s->next = v->selected;
	v->selected = s;
	return 0;
}

static int walk_cgroups(struct rule_preview *v, uint64_t until_ns)
{
	if (!v->set->rules->n_by_cgroup)
		return 0;
	/* If the root cannot be read, `status` reports it, and there is nothing to list. */
	if (!v->walk && cgroups_walk_new(v->discovery->cgroups, select_cgroup, v, &v->walk) != 0)
		return 0;
	return cgroups_walk_step(v->walk, until_ns) > 0;
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

/* Takes one line of cgroup.procs: a process that no rule by name matches. */
static void take_pid(struct rule_preview *v, const char *line)
{
	const char *path = v->selected->path;
	char comm[COMM_BYTES] = "";
	const struct rule *rule;
	uint64_t pid;

	if (parse_u64(line, 1, INT32_MAX, &pid) < 0)
		return;
	read_comm((uint32_t)pid, comm);
	rule = rules_match(v->set->rules, comm, path);
	if (rule && !rule->n_comms)
		write_match(v, rule, (uint32_t)pid, comm, path);
}

/* Cuts a line off the buffer. Returns false if there is no complete line. */
static bool cut_line(struct rule_preview *v, char line[32])
{
	char *end = memchr(v->procs, '\n', v->procs_bytes);
	size_t bytes = end ? (size_t)(end - v->procs) : 0;

	if (!end)
		return false;
	snprintf(line, 32, "%.*s", (int)bytes, v->procs);
	v->procs_bytes -= bytes + 1;
	memmove(v->procs, end + 1, v->procs_bytes);
	return true;
}

/* Continues with the processes of the first cgroup. Returns like rule_preview_step. */
static int take_cgroup(struct rule_preview *v, uint64_t until_ns)
{
	char line[32];
	ssize_t n;

	if (v->procs_fd < 0)
		v->procs_fd =
			cgroups_open_file(v->discovery->cgroups, v->selected->path, "cgroup.procs");
	if (v->procs_fd < 0)
		return v->procs_fd;
	for (;;) {
		while (cut_line(v, line)) {
			take_pid(v, line);
			if (clock_mono_ns() >= until_ns)
				return 1;
		}
		n = read(v->procs_fd, v->procs + v->procs_bytes, sizeof(v->procs) - v->procs_bytes);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		v->procs_bytes += (size_t)n;
	}
}

static int take_cgroups(struct rule_preview *v, uint64_t until_ns)
{
	while (v->selected) {
		int r = take_cgroup(v, until_ns);

		if (r > 0)
			return 1;
		v->left.unreadable += r < 0 && !cgroupfs_vanished(r);
		close_procs(v);
		drop_selected(v);
		if (clock_mono_ns() >= until_ns)
			return 1;
	}
	return 0;
}

static int continue_stage(struct rule_preview *v, uint64_t until_ns)
{
	switch (v->stage) {
	case STAGE_TRIES:
		return take_tries(v);
	case STAGE_TASKS:
		return take_tasks(v, until_ns);
	case STAGE_WALK:
		return walk_cgroups(v, until_ns);
	case STAGE_PROCS:
		return take_cgroups(v, until_ns);
	case STAGE_DONE:
		break;
	}
	return 0;
}

int rule_preview_step(struct rule_preview *v, uint64_t until_ns)
{
	int r = 0;

	if (v->stage != STAGE_TRIES && v->fills != v->discovery->fills)
		start_over(v);
	while (r == 0 && v->stage != STAGE_DONE) {
		r = continue_stage(v, until_ns);
		if (r == 0)
			v->stage++;
	}
	if (r != 0)
		return r;
	jsonw_array_end(&v->matches);
	return jsonw_end(&v->matches);
}

void rule_preview_write(const struct rule_preview *v, struct jsonw *w,
			struct rule_preview_left *ret_left)
{
	jsonw_raw(w, "matches", v->matches.data, v->matches.bytes);
	*ret_left = v->left;
}
