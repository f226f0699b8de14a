/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/method_session_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/discovery/task_list.h"
#include "consumer/io/turn.h"
#include "consumer/methods/methods.h"
#include "consumer/watch/binding.h"
#include "shared/files/namespaces.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A cgroup lookup that the cgroup's owner delays is repeated for this long. */
#define LOOKUP_NS (200 * NSEC_PER_MSEC)

/* How often the processes are read if the watch of the request ended in the meantime. */
#define READINGS_MAX 3

/* The parsed and checked parameters. */
struct request {
	const char *rule, *cgroup, *reason;
	uint32_t pid, during_ms;
	uint32_t signals; /* as in struct trigger_reason */
};

/* session.start in progress. */
struct start {
	struct control_job job; /* must be the first member */
	struct methods *methods;
	struct request q;	      /* its texts are the next three */
	char *rule, *cgroup, *reason; /* owned */
	struct control_peer peer;
	uint64_t began_ns;
	/* For a process in the root cgroup, while all processes are read to find it: */
	struct task_list tasks;
	uint32_t slot, epoch; /* of the watch of the root cgroup that the request keeps */
	unsigned int readings;
};

static int take_number(const struct json_node *value, uint64_t max, uint32_t *ret)
{
	int64_t n = json_node_i64(value);

	if (!json_node_is(value, JSON_INTEGER) || n < 1 || (uint64_t)n > max)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

static int take_reason(const struct json_node *value, struct request *q,
		       struct control_error *error)
{
	if (!json_node_is(value, JSON_STRING) || !reason_text_is_right(value->text, value->bytes))
		return control_error_fail(error, CONTROL_BAD_PARAMS,
					  "params.reason: want " REASON_TEXT_RIGHT);
	q->reason = value->text;
	return 0;
}

static int take_signals(const struct json_node *value, struct request *q,
			struct control_error *error)
{
	uint32_t n = json_node_is(value, JSON_ARRAY) ? json_node_elements(value) : 0, all = 0;
	bool right = n > 0;

	for (const struct json_node *m = n ? json_node_first(value) : NULL; m;
	     m = json_node_next(m)) {
		uint32_t bit =
			json_node_is(m, JSON_STRING) ? rules_signal_bit(m->text, m->bytes) : 0;

		right = right && bit && !(all & bit) && (bit != RULES_SIGNALS_AUTO || n == 1);
		all |= bit;
	}
	if (!right)
		return control_error_fail(error, CONTROL_BAD_PARAMS, "params.signals: want %s",
					  rules_signals_right);
	q->signals = all;
	return 0;
}

static int take_params(const struct json_node *params, struct request *ret,
		       struct control_error *error)
{
	struct request q = {};
	int given = 0;

	if (!params)
		return control_error_fail(error, CONTROL_BAD_PARAMS,
					  "params: want one of rule, cgroup, pid");
	for (const struct json_node *m = json_node_first(params); m; m = json_node_next(m)) {
		bool text = json_node_is(m, JSON_STRING);

		if (json_node_has_key(m, "reason")) {
			if (take_reason(m, &q, error) < 0)
				return -1;
			continue;
		}
		if (json_node_has_key(m, "signals")) {
			if (take_signals(m, &q, error) < 0)
				return -1;
			continue;
		}
		if (json_node_has_key(m, "rule") && text)
			q.rule = m->text, given++;
		else if (json_node_has_key(m, "cgroup") && text)
			q.cgroup = m->text, given++;
		else if (json_node_has_key(m, "pid") && take_number(m, INT32_MAX, &q.pid) == 0)
			given++;
		else if (!json_node_has_key(m, "during_ms") ||
			 take_number(m, 60000, &q.during_ms) < 0 || q.during_ms < 100)
			return control_error_fail(
				error, CONTROL_BAD_PARAMS,
				"params.%.64s: unknown key or wrong value; want rule or cgroup "
				"(strings), pid (number), during_ms (100 to 60000), reason "
				"(string), signals (array of strings)",
				m->key);
	}
	if (given != 1)
		return control_error_fail(error, CONTROL_BAD_PARAMS,
					  "params: want exactly one of rule, cgroup, pid");
	*ret = q;
	return 0;
}

/* The sessions that one request started; watches that were held back are counted. */
struct started {
	const struct session *sessions[SESSIONS_MAX];
	size_t n, n_held;
	struct trigger_held held; /* the last one; reason NULL: none */
};

static int start_on(const struct start *j, struct watch *w, const struct rule *rule,
		    struct started *all)
{
	struct trigger trigger = {
		.watch = w,
		.rule = rule,
		.reason = { .kind = TRIGGER_REQUEST,
			    .uid = j->peer.uid,
			    .pid = (uint32_t)j->peer.pid,
			    .signals = j->q.signals },
		.during_ms = j->q.during_ms,
		.only_tgid = j->q.pid,
	};
	struct session *s;
	int r;

	if (all->n >= SESSIONS_MAX) {
		all->held = (struct trigger_held){ "too_many_sessions", 1000 };
		all->n_held++;
		return -EAGAIN;
	}
	snprintf(trigger.reason.text, sizeof(trigger.reason.text), "%s",
		 j->q.reason ? j->q.reason : "");
	r = trigger_fire(j->methods->d->triggers, &trigger, &s, &all->held);
	all->n_held += r == -EAGAIN;
	if (r < 0)
		return r;
	all->sessions[all->n++] = s;
	return 0;
}

static int start_rule(const struct start *j, struct started *all, struct control_error *error)
{
	struct methods *m = j->methods;
	const struct rule *rule = rules_find(m->d->active->set->rules, j->rule);
	int r = -ENOENT;

	if (!rule)
		return control_error_fail(error, CONTROL_NOT_FOUND, "no rule of the name %.64s",
					  j->rule);
	for (uint32_t i = 0; i < m->t->pins->abi.slots; i++) {
		struct watch *w = m->t->watches->by_slot[i];
		int one;

		if (!w || !binding_find(w, rule))
			continue;
		one = start_on(j, w, rule, all);
		r = r == 0 ? 0 : one;
	}
	if (r == -ENOENT)
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "the rule %.64s matches no running process", j->rule);
	return r;
}

/* Marks the process for sampling: in the root cgroup only marked processes are sampled. */
static int mark_process(struct methods *m, const struct task_record *task)
{
	struct process *p = NULL;
	int r = process_get(m->d->processes, task->tgid, task->start_ns, &p);

	if (r < 0 || !p)
		return r;
	memcpy(p->comm, task->comm, sizeof(p->comm));
	p->cgroup_id = task->cgroup_id;
	p->requested = true;
	return process_targets_match(m->d->targets, p);
}

/* Removes a watch that only this request keeps. */
static void release_requested(struct watch *w)
{
	if (!w->session)
		w->requested = false;
	bindings_release(w, "no_process");
}

static int fail_no_process(const struct start *j, struct control_error *error)
{
	const char *why = namespaces_hide_proc();

	if (!why)
		return control_error_fail(error, CONTROL_NOT_FOUND, "no process %u", j->q.pid);
	return control_error_fail(error, CONTROL_NOT_FOUND,
				  "process %u is not there, or hidden: %s", j->q.pid, why);
}

/*
 * Sets the error for a process that is in /proc but was not listed by the kernel: it has ended, or
 * another reason.
 */
static int fail_unlisted(const struct start *j, struct control_error *error)
{
	switch (task_list_unlisted(j->q.pid)) {
	case TASK_LIST_KERNEL:
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "process %u is a thread of the kernel: there is no "
					  "program to capture",
					  j->q.pid);
	case TASK_LIST_HIDDEN:
		return control_error_fail(
			error, CONTROL_NOT_FOUND,
			"process %u is there, but this kernel does not show it to "
			"BPF programs",
			j->q.pid);
	case TASK_LIST_GONE:
		break;
	}
	return fail_no_process(j, error);
}

/* Creates a watch that only this request keeps; it ends with the session. 0 with *ret_watch. */
static int keep_watch(struct start *j, uint64_t cgroup_id, struct watch **ret_watch,
		      struct control_error *error)
{
	struct watch *w = NULL;
	int r = watch_get(j->methods->d->watches, cgroup_id, j->q.pid, &w);

	if (r == -EXDEV)
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "the cgroup is outside of the loader's --scope");
	if (r < 0)
		return control_error_fail(error, CONTROL_INTERNAL, "cannot watch the cgroup: %s",
					  r == -ENOSPC ? "all slots are taken" : strerror(-r));
	if (!w->session)
		w->requested = true;
	bindings_refresh(w);
	*ret_watch = w;
	return 0;
}

static int start_kept(struct start *j, struct watch *w, struct started *all)
{
	int r = start_on(j, w, NULL, all);

	if (r < 0) {
		triggers_release_process(j->methods->d->triggers, j->q.pid);
		release_requested(w);
	}
	return r;
}

/* The watch of the root cgroup that the request keeps; NULL: it has ended in the meantime. */
static struct watch *root_watch(const struct start *j)
{
	return watches_at(j->methods->d->watches, j->slot, j->epoch);
}

/*
 * Begins to read all processes: the iterator lists the requested one, because its cgroup is watched
 * by now, and gives its exact start time. Returns 1.
 */
static int begin_reading(struct start *j, uint64_t cgroup_id, struct control_error *error)
{
	const struct pinned_maps *pins = j->methods->d->pins;
	struct watch *w = NULL;
	int r = keep_watch(j, cgroup_id, &w, error);

	if (r < 0 || !w)
		return r;
	j->slot = w->slot;
	j->epoch = w->epoch;
	j->readings++;
	r = task_list_open(pins, pins->control->active, &j->tasks);
	if (r == 0)
		return 1;
	release_requested(w);
	return fail_no_process(j, error);
}

/*
 * Continues that reading. Returns 1 if there is more; 0: a session has started; -1; -errno with
 * all->held.
 */
static int read_tasks(struct start *j, struct started *all, struct control_error *error)
{
	uint64_t root_id = j->methods->d->cgroups->root_id, until_ns = turn_until_ns();
	struct task_record task = {};
	struct watch *w;
	int r;

	do
		r = task_list_next(&j->tasks, until_ns, &task);
	while (r > 0 && task.tgid != j->q.pid);
	if (r == -EAGAIN)
		return 1;
	task_list_close(&j->tasks);
	w = root_watch(j);
	if (!w && j->readings < READINGS_MAX)
		return begin_reading(j, root_id, error);
	if (r > 0 && w && mark_process(j->methods, &task) == 0)
		return start_kept(j, w, all);
	if (w)
		release_requested(w);
	return fail_unlisted(j, error);
}

/* Repeats a lookup that did not finish in time. Returns 1, or `r` if it has taken too long. */
static int again_soon(const struct start *j, int r)
{
	return r == -EBUSY && clock_mono_ns() - j->began_ns < LOOKUP_NS ? 1 : r;
}

static int start_pid(struct start *j, struct started *all, struct control_error *error)
{
	struct cgroups *c = j->methods->d->cgroups;
	struct watch *w = NULL;
	char path[4096];
	uint64_t id = 0;
	int r;

	if (cgroups_of_pid(j->q.pid, path, sizeof(path)) < 0)
		return fail_no_process(j, error);
	r = again_soon(j, cgroups_id(c, path, &id));
	if (r != 0)
		return r > 0 ? r : fail_no_process(j, error);
	if (id == c->root_id)
		return begin_reading(j, id, error);
	r = keep_watch(j, id, &w, error);
	return r < 0 || !w ? r : start_kept(j, w, all);
}

/* Writes the path as the kernel does: "/a//b/" becomes "/a/b". */
static void join_slashes(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++)
		if (*from != '/' || (from[1] && from[1] != '/'))
			*to++ = *from;
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

static int start_cgroup(struct start *j, struct started *all, struct control_error *error)
{
	struct cgroups *c = j->methods->d->cgroups;
	struct watch *w = NULL;
	uint64_t id = 0;
	int r = -EINVAL;

	if (j->cgroup[0] == '/')
		r = again_soon(j, cgroups_id(c, j->cgroup, &id));
	if (r > 0)
		return r;
	if (r < 0)
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "no cgroup %.128s below the cgroup2 mount", j->cgroup);
	/* No walk has met the cgroup yet if it was made a moment ago: this is its path. */
	join_slashes(j->cgroup);
	cgroups_learn(c, id, j->cgroup);
	if (id == c->root_id)
		return control_error_fail(
			error, CONTROL_BAD_PARAMS,
			"the root cgroup cannot be captured as a whole: name a pid");
	r = keep_watch(j, id, &w, error);
	return r < 0 || !w ? r : start_kept(j, w, all);
}

static void write_started(const struct started *all, struct jsonw *w)
{
	char text[SESSION_TEXT_BYTES];
	const struct session *s = all->sessions[0];

	event_line_session_text(s->result->id, text);
	jsonw_object(w, NULL);
	jsonw_string(w, "session", text);
	jsonw_string(w, "cgroup", s->result->cgroup);
	jsonw_u64(w, "ends_in_ms", (s->end_ns - s->target.start_ns) / NSEC_PER_MSEC);
	jsonw_array(w, "sessions");
	for (size_t i = 0; i < all->n; i++) {
		event_line_session_text(all->sessions[i]->result->id, text);
		jsonw_string(w, NULL, text);
	}
	jsonw_array_end(w);
	jsonw_u64_nonzero(w, "held", all->n_held);
	jsonw_object_end(w);
}

/* Writes why no session began. Returns -1. */
static int fail_held(const struct trigger_held *held, struct control_error *error)
{
	char text[SESSION_TEXT_BYTES];

	jsonw_object(&error->data, NULL);
	jsonw_string(&error->data, "reason", held->reason);
	jsonw_u64(&error->data, "retry_ms", held->retry_ms);
	if (held->session) {
		event_line_session_text(held->session, text);
		jsonw_string(&error->data, "session", text);
	}
	jsonw_object_end(&error->data);
	return control_error_fail(error, CONTROL_HELD, "held back: %s", held->reason);
}

/* Like control_job's step, without an answer; -errno: all->held has the reason, if there is one. */
static int start_some(struct start *j, struct started *all, struct control_error *error)
{
	if (j->tasks.open)
		return read_tasks(j, all, error);
	if (j->rule)
		return start_rule(j, all, error);
	return j->cgroup ? start_cgroup(j, all, error) : start_pid(j, all, error);
}

static int step_start(struct control_job *job, struct jsonw *result, struct control_error *error)
{
	struct start *j = (struct start *)job;
	struct started all = {};
	int r = start_some(j, &all, error);

	if (all.n) {
		write_started(&all, result);
		return 0;
	}
	if (r > 0)
		return 1;
	if (all.held.reason)
		return fail_held(&all.held, error);
	return error->code ? -1 : control_error_fail(error, CONTROL_INTERNAL, "%s", strerror(-r));
}

static void free_start(struct control_job *job)
{
	struct start *j = (struct start *)job;

	if (j->tasks.open && root_watch(j))
		release_requested(root_watch(j));
	task_list_close(&j->tasks);
	free(j->rule);
	free(j->cgroup);
	free(j->reason);
	free(j);
}

int method_session_start(void *context, const struct control_peer *peer,
			 const struct json_node *params, struct control_job **ret_job,
			 struct control_error *error)
{
	struct request q = {};
	struct start *j;

	if (take_params(params, &q, error) < 0)
		return -1;
	j = calloc(1, sizeof(*j));
	if (!j)
		return control_error_fail(error, CONTROL_INTERNAL, "no memory");
	j->job = (struct control_job){ .step = step_start, .free = free_start };
	j->methods = context;
	j->peer = *peer;
	j->began_ns = clock_mono_ns();
	j->rule = q.rule ? strdup(q.rule) : NULL;
	j->cgroup = q.cgroup ? strdup(q.cgroup) : NULL;
	j->reason = q.reason ? strdup(q.reason) : NULL;
	if ((q.rule && !j->rule) || (q.cgroup && !j->cgroup) || (q.reason && !j->reason)) {
		free_start(&j->job);
		return control_error_fail(error, CONTROL_INTERNAL, "no memory");
	}
	j->q = (struct request){ j->rule, j->cgroup, j->reason, q.pid, q.during_ms, q.signals };
	*ret_job = &j->job;
	return 0;
}
