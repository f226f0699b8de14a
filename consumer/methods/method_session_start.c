/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/method_session_start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "consumer/discovery/process_scan.h"
#include "consumer/methods/methods.h"
#include "consumer/watch/binding.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* The parsed and checked parameters. */
struct request {
	const char *rule, *cgroup;
	uint32_t pid, during_ms;
};

static int take_number(const struct json_node *value, uint64_t max, uint32_t *ret)
{
	int64_t n = json_node_i64(value);

	if (!json_node_is(value, JSON_INTEGER) || n < 1 || (uint64_t)n > max)
		return -EINVAL;
	*ret = (uint32_t)n;
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
				"params.%.64s: not such a key, or not such a value; want "
				"rule or cgroup (strings), pid (number), during_ms (100 to "
				"60000)",
				m->key);
	}
	if (given != 1)
		return control_error_fail(error, CONTROL_BAD_PARAMS,
					  "params: want exactly one of rule, cgroup, pid");
	*ret = q;
	return 0;
}

/* The sessions that one request started. */
struct started {
	const struct session *sessions[SESSIONS_MAX];
	size_t n;
};

static int start_on(struct methods *m, struct watch *w, const struct rule *rule,
		    const struct control_peer *peer, uint32_t during_ms, uint32_t pid,
		    struct started *all, struct trigger_held *held)
{
	struct trigger trigger = {
		.watch = w,
		.rule = rule,
		.reason = { .kind = TRIGGER_REQUEST, .uid = peer->uid, .pid = (uint32_t)peer->pid },
		.during_ms = during_ms,
		.only_tgid = pid,
	};
	struct session *s;
	int r;

	if (all->n >= SESSIONS_MAX) {
		*held = (struct trigger_held){ "too_many_sessions", 1000 };
		return -EAGAIN;
	}
	r = trigger_fire(m->d->triggers, &trigger, &s, held);
	if (r < 0)
		return r;
	all->sessions[all->n++] = s;
	return 0;
}

static int start_rule(struct methods *m, const struct request *q, const struct control_peer *peer,
		      struct started *all, struct trigger_held *held, struct control_error *error)
{
	const struct rule *rule = rules_find(m->d->active->set->rules, q->rule);
	int r = -ENOENT;

	if (!rule)
		return control_error_fail(error, CONTROL_NOT_FOUND, "no rule of the name %.64s",
					  q->rule);
	for (uint32_t i = 0; i < m->t->pins->abi.slots; i++) {
		struct watch *w = m->t->watches->by_slot[i];
		int one;

		if (!w || !binding_find(w, rule))
			continue;
		one = start_on(m, w, rule, peer, q->during_ms, 0, all, held);
		r = r == 0 ? 0 : one;
	}
	if (r == -ENOENT)
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "the rule %.64s matches no running process", q->rule);
	return r;
}

/*
 * Marks the process for sampling: in the root cgroup only marked processes are sampled. The scan
 * lists it, because its cgroup is watched by now, and gives its exact start time.
 */
static int mark_process(struct methods *m, uint32_t pid)
{
	struct task_record task = {};
	struct process *p = NULL;
	int r = process_scan_find(m->d, pid, &task);

	if (r == 0)
		r = process_get(m->d->processes, pid, task.start_ns, &p);
	if (r < 0 || !p)
		return r;
	memcpy(p->comm, task.comm, sizeof(p->comm));
	p->cgroup_id = task.cgroup_id;
	p->requested = true;
	return process_targets_match(m->d->targets, p);
}

/* Creates a watch that only this request keeps; it ends with the session. */
static int start_requested(struct methods *m, const struct request *q, uint64_t cgroup_id,
			   const struct control_peer *peer, struct started *all,
			   struct trigger_held *held, struct control_error *error)
{
	struct watch *w;
	int r = watch_get(m->d->watches, cgroup_id, q->pid, &w);

	if (r == -EXDEV)
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "the cgroup is outside of the loader's --scope");
	if (r < 0)
		return control_error_fail(error, CONTROL_INTERNAL, "cannot watch the cgroup: %s",
					  r == -ENOSPC ? "all slots are taken" : strerror(-r));
	if (!w->session)
		w->requested = true;
	bindings_refresh(w);
	if (w->root && mark_process(m, q->pid) < 0) {
		w->requested = w->session && w->requested;
		bindings_release(w, "no_process");
		return control_error_fail(error, CONTROL_NOT_FOUND, "no process %u", q->pid);
	}
	r = start_on(m, w, NULL, peer, q->during_ms, q->pid, all, held);
	if (r < 0 && !w->session)
		w->requested = false;
	if (r < 0) {
		triggers_release_process(m->d->triggers, q->pid);
		bindings_release(w, "no_process");
	}
	return r;
}

static int start_pid(struct methods *m, const struct request *q, const struct control_peer *peer,
		     struct started *all, struct trigger_held *held, struct control_error *error)
{
	char path[4096];
	uint64_t id;

	if (cgroups_of_pid(q->pid, path, sizeof(path)) < 0 ||
	    cgroups_id(m->d->cgroups, path, &id) < 0)
		return control_error_fail(error, CONTROL_NOT_FOUND, "no process %u", q->pid);
	return start_requested(m, q, id, peer, all, held, error);
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

static int start_cgroup(struct methods *m, const struct request *q, const struct control_peer *peer,
			struct started *all, struct trigger_held *held, struct control_error *error)
{
	_cleanup_free_ char *path = strdup(q->cgroup);
	uint64_t id;

	if (!path)
		return control_error_fail(error, CONTROL_INTERNAL, "no memory");
	if (q->cgroup[0] != '/' || cgroups_id(m->d->cgroups, q->cgroup, &id) < 0)
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "no cgroup %.128s below the cgroup2 mount", q->cgroup);
	/* No walk has met the cgroup yet if it was made a moment ago: this is its path. */
	join_slashes(path);
	cgroups_learn(m->d->cgroups, id, path);
	if (id == m->d->cgroups->root_id)
		return control_error_fail(
			error, CONTROL_BAD_PARAMS,
			"the root cgroup cannot be captured as a whole: name a pid");
	return start_requested(m, q, id, peer, all, held, error);
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
	jsonw_object_end(w);
}

int method_session_start(void *context, const struct control_peer *peer,
			 const struct json_node *params, struct jsonw *result,
			 struct control_error *error)
{
	struct methods *m = context;
	struct started all = {};
	struct trigger_held held = {};
	struct request q = {};
	int r;

	if (take_params(params, &q, error) < 0)
		return -1;
	if (q.rule)
		r = start_rule(m, &q, peer, &all, &held, error);
	else if (q.cgroup)
		r = start_cgroup(m, &q, peer, &all, &held, error);
	else
		r = start_pid(m, &q, peer, &all, &held, error);
	if (all.n) {
		write_started(&all, result);
		return 0;
	}
	if (held.reason) {
		jsonw_object(&error->data, NULL);
		jsonw_string(&error->data, "reason", held.reason);
		jsonw_u64(&error->data, "retry_ms", held.retry_ms);
		jsonw_object_end(&error->data);
		return control_error_fail(error, CONTROL_HELD, "held back: %s", held.reason);
	}
	return error->code ? -1 : control_error_fail(error, CONTROL_INTERNAL, "%s", strerror(-r));
}
