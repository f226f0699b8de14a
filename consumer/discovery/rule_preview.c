/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/rule_preview.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "consumer/discovery/discovery.h"
#include "consumer/discovery/process_scan.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/parse.h"

/* Bytes of a cgroup.procs file: some 100,000 processes. */
#define PROCS_BYTES (1u << 20)

struct preview {
	struct discovery *discovery;
	const struct rules *rules;
	struct jsonw *w;
	size_t room; /* matches that may still be written */
	struct rule_preview_left left;
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
	const char *path = cgroups_path(v->discovery->cgroups, t->cgroup_id, t->tgid);
	const struct rule *rule = rules_match(v->rules, t->comm, path);

	if (rule)
		preview_write(v, rule, t->tgid, t->comm, path);
}

static int read_procs(struct cgroups *c, const char *path, char **ret_text, size_t *ret_bytes)
{
	_cleanup_close_ int fd = cgroups_open_file(c, path, "cgroup.procs");

	return fd < 0 ? fd : io_read_fd(fd, PROCS_BYTES, ret_text, ret_bytes);
}

/* Lists the processes of a cgroup that a rule by cgroup selects and no rule by name matches. */
static int preview_cgroup(void *context, const char *path, uint64_t id)
{
	struct preview *v = context;
	const struct rule *rule = rules_match_cgroup(v->rules, path);
	_cleanup_free_ char *procs = NULL;
	char *rest, *line;
	size_t bytes;
	int r;

	if (!rule || id == v->discovery->cgroups->root_id)
		return 0;
	r = read_procs(v->discovery->cgroups, path, &procs, &bytes);
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

int rule_preview_write(struct discovery *d, const struct rules *rules, size_t max, struct jsonw *w,
		       struct rule_preview_left *ret_left)
{
	struct preview v = { .discovery = d, .rules = rules, .w = w, .room = max };
	int r;

	d->pins->control->scan_trie = !d->pins->control->active;
	r = process_scan_each(d, preview_task, &v);
	d->pins->control->scan_trie = d->pins->control->active;
	if (r < 0)
		return r;
	if (rules->n_by_cgroup)
		cgroups_walk(d->cgroups, preview_cgroup, &v);
	*ret_left = v.left;
	return 0;
}
