/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/oom_watch.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/output/event_budget.h"
#include "consumer/trigger/trigger.h"
#include "consumer/watch/watch_tree.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Pages of an unset limit: PAGE_COUNTER_MAX of include/linux/page_counter.h. */
#define NO_LIMIT_PAGES (INT64_MAX / 65536)

static const char no_limit[] =
	"this kernel does not report it, and memory.events was not read before";
static const char no_memory[] = "the process had given up its memory already";
static const char no_path[] = "the cgroup's path could not be looked up";

/* The known facts of a kill, and the finished steps. */
struct kill {
	struct triggers *triggers;
	struct event_budget *budget;
	const struct event *event;
	const struct oom_victim *victim;
	struct watch *watch;	/* the innermost watch */
	struct oom_kill line;	/* members of the line */
	const char *limit_name; /* last part of the path; "" if not known */
	bool written;
};

static uint64_t bytes_of(uint64_t pages)
{
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns the watch of the victim's slot if it existed at the time of the kill, else NULL. */
static struct watch *find_watch(const struct watches *ws, const struct event *e,
				const struct oom_victim *v)
{
	struct watch *w = v->slot < ws->pins->abi.slots ? ws->by_slot[v->slot] : NULL;

	return w && w->start_ns <= e->time_ns ? w : NULL;
}

/* ---- the cgroup with the limit */

/* Returns the last part of a path. */
static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Cuts `path`, the path of the victim's cgroup, down to the cgroup with the id: the limit belongs
 * to the victim's cgroup or to one above. Returns it, or NULL.
 */
static const char *find_above(struct cgroups *c, char *path, uint64_t id)
{
	uint64_t found;
	char *slash;

	while (*path) {
		if (cgroups_id(c, path, &found) == 0 && found == id)
			return path;
		slash = strrchr(path, '/');
		if (!slash)
			return NULL;
		*slash = '\0';
	}
	return NULL;
}

/* Sets the path of the limit's cgroup, if known. */
static void find_limit_path(struct kill *k)
{
	const struct facts_place_source *s = &k->watch->facts.place.source[FACTS_MEMORY];
	struct cgroups *c = k->triggers->log->cgroups;
	uint64_t id = k->victim->limit_cgroup_id;
	const char *path = NULL, *own;
	char above[PATH_MAX];

	if (id)
		path = cgroups_path(c, id, 0);
	if (id && !path) {
		own = cgroups_path(c, k->event->cgroup_id, k->event->tgid);
		snprintf(above, sizeof(above), "%s", own ? own : k->watch->path);
		path = find_above(c, above, id);
	}
	if (!id && s->where == FACTS_V1 && s->path && !strcmp(last_part(s->path), k->limit_name))
		path = s->path;
	if (path && strlen(path) < sizeof(k->line.limit_cgroup))
		snprintf(k->line.limit_cgroup, sizeof(k->line.limit_cgroup), "%s", path);
}

/*
 * Uses the OOM counter of the cgroup with the limit, in cgroup2: whether it has grown since it was
 * last read.
 */
static void find_by_counter(struct kill *k)
{
	const struct facts_record *record = &k->watch->facts;
	const struct facts_place_source *s = &record->place.source[FACTS_MEMORY];
	const struct facts *before = facts_record_until(record, k->event->time_ns);
	uint64_t was, is;
	struct facts now;

	if (!k->watch->all->facts || s->where != FACTS_V2 || !s->path || !before ||
	    !facts_get(before, FACT_MEMORY_EVENTS_OOM, &was))
		return;
	facts_reader_read(k->watch->all->facts, k->watch->path, &record->place, FACTS_CHEAP, &now);
	if (!facts_get(&now, FACT_MEMORY_EVENTS_OOM, &is))
		return;
	k->line.limit = is > was ? OOM_LIMIT_CGROUP : OOM_LIMIT_NONE;
	if (is <= was)
		return;
	k->limit_name = last_part(s->path);
	snprintf(k->line.limit_cgroup, sizeof(k->line.limit_cgroup), "%s", s->path);
}

static void find_limit(struct kill *k)
{
	const struct oom_victim *v = k->victim;

	k->line.limit = v->limit <= OOM_LIMIT_NONE ? (enum oom_limit)v->limit : OOM_LIMIT_UNKNOWN;
	if (k->line.limit != OOM_LIMIT_CGROUP) {
		find_by_counter(k);
		return;
	}
	k->limit_name = v->limit_name;
	if (v->limit_pages < NO_LIMIT_PAGES)
		k->line.limit_bytes = bytes_of(v->limit_pages);
	find_limit_path(k);
}

/* ---- the line */

static void write_memory(const struct kill *k, struct jsonw *w)
{
	const struct oom_victim *v = k->victim;

	if (!v->has_memory) {
		jsonw_null(w, "rss");
		jsonw_string(w, "rss_reason", no_memory);
		return;
	}
	jsonw_object(w, "rss");
	jsonw_u64(w, "anon_bytes", bytes_of(v->anon_pages));
	jsonw_u64(w, "file_bytes", bytes_of(v->file_pages));
	jsonw_u64(w, "shmem_bytes", bytes_of(v->shmem_pages));
	jsonw_object_end(w);
	jsonw_u64(w, "swap_bytes", bytes_of(v->swap_pages));
}

static void write_limit(const struct kill *k, struct jsonw *w)
{
	static const char *const of[] = {
		[OOM_LIMIT_UNKNOWN] = NULL,
		[OOM_LIMIT_CGROUP] = "cgroup",
		[OOM_LIMIT_NONE] = "machine",
	};

	jsonw_string(w, "limit", of[k->line.limit]);
	if (!of[k->line.limit])
		jsonw_string(w, "limit_reason", no_limit);
	if (k->line.limit != OOM_LIMIT_CGROUP)
		return;
	jsonw_string(w, "limit_name", k->limit_name);
	if (k->line.limit_cgroup[0])
		jsonw_string(w, "limit_cgroup", k->line.limit_cgroup);
	jsonw_u64_nonzero(w, "limit_bytes", k->line.limit_bytes);
}

/* Writes in which cgroup below the watch's the process was. */
static void write_place(const struct kill *k, struct jsonw *w)
{
	const char *path;

	if (k->event->cgroup_id == k->watch->cgroup_id)
		return;
	path = cgroups_path(k->triggers->log->cgroups, k->event->cgroup_id, k->event->tgid);
	jsonw_string(w, "in_cgroup", path);
	if (!path)
		jsonw_string(w, "in_cgroup_reason", no_path);
	jsonw_u64(w, "in_cgroup_id", k->event->cgroup_id);
}

/* Writes the line, once, with the id of `session`; NULL: no session runs on the watch. */
static void write_line(struct kill *k, const struct rule *rule, struct session *session)
{
	/* No rule: lines about starts must not use up the budget of these lines. */
	const struct event_about about = { NULL, k->watch->cgroup_id, k->event->uid,
					   k->watch->owner };
	struct event_subject subject;
	struct jsonw w;

	if (k->written)
		return;
	k->written = true;
	if (!event_budget_take(k->budget, &about, LINE_OOM))
		return;
	subject = event_log_subject(k->triggers->log, rule, k->watch->cgroup_id);
	subject.session = session ? session->result->id : 0;
	event_line_begin(k->triggers->log->lines, &w, "oom", &subject);
	jsonw_u64(&w, "pid", k->event->tgid);
	jsonw_u64(&w, "start_ns", k->event->start_ns);
	jsonw_string(&w, "comm", k->line.comm);
	jsonw_u64(&w, "uid", k->event->uid);
	write_place(k, &w);
	write_memory(k, &w);
	jsonw_i64(&w, "oom_score_adj", k->victim->score_adj);
	jsonw_object(&w, "asked");
	jsonw_u64(&w, "pid", k->victim->asker_tgid);
	jsonw_string_n(&w, "comm", k->victim->asker_comm,
		       strnlen(k->victim->asker_comm, COMM_BYTES));
	jsonw_object_end(&w);
	write_limit(k, &w);
	if (event_line_end(k->triggers->log->lines, &w) && session)
		session->result->oom_kills.lines++;
}

/* ---- sessions */

/* Called when a session has begun; the line comes before the session's own line. */
static void on_begun(void *context, struct session *session)
{
	struct kill *k = context;

	oom_kills_add(&session->result->oom_kills, &k->line);
	write_line(k, session->result->rule, session);
}

/* Whether the rule wants this victim: scope_process covers matched processes only. */
static bool is_wanted(const struct watch *w, const struct binding *b, const struct process *p)
{
	if (!b->rule->on_oom_kill)
		return false;
	return (!b->rule->scope_process && !w->root) || (p && p->rule == b->rule);
}

/* Begins the sessions of the watch's rules. */
static void fire_rules(struct kill *k, struct watch *w, const struct process *p)
{
	for (size_t i = 0; i < w->n_bindings; i++) {
		struct trigger trigger = {
			.watch = w,
			.rule = w->bindings[i].rule,
			.reason = { .kind = TRIGGER_OOM_KILL, .pid = k->event->tgid },
			.begun = on_begun,
			.context = k,
		};
		struct trigger_held held;
		struct session *session;

		if (!is_wanted(w, &w->bindings[i], p))
			continue;
		memcpy(trigger.reason.comm, k->line.comm, sizeof(trigger.reason.comm));
		trigger_fire(k->triggers, &trigger, &session, &held);
	}
}

/* Adds the kill to the sessions that already run. Returns the innermost one, or NULL. */
static struct session *add_to_running(const struct kill *k)
{
	struct session *nearest = NULL;

	for (struct watch *w = k->watch; w; w = watch_tree_above(w)) {
		if (!w->session || w->session->ending)
			continue;
		oom_kills_add(&w->session->result->oom_kills, &k->line);
		nearest = nearest ? nearest : w->session;
	}
	return nearest;
}

void oom_watch_take(struct triggers *t, struct event_budget *budget, const struct event *e)
{
	const struct oom_victim *v = (const struct oom_victim *)(e + 1);
	const struct process *p = process_find(t->watches->processes, e->tgid, e->start_ns);
	const struct rule *rule = p ? p->rule : NULL;
	struct kill k = {
		.triggers = t, .budget = budget, .event = e, .victim = v, .limit_name = ""
	};
	struct session *running;

	k.watch = find_watch(t->watches, e, v);
	/* For a watch by process, the kernel side knows only the cgroup. */
	if (!k.watch || (k.watch->by_process && (!p || p->watch != k.watch)))
		return;
	k.line = (struct oom_kill){ .pid = e->tgid, .has_memory = v->has_memory };
	memcpy(k.line.comm, e->comm, sizeof(k.line.comm) - 1);
	k.line.rss_bytes = bytes_of(v->anon_pages + v->file_pages + v->shmem_pages);
	k.line.swap_bytes = bytes_of(v->swap_pages);
	find_limit(&k);
	running = add_to_running(&k);
	if (running)
		write_line(&k, rule, running);
	for (struct watch *w = k.watch; w; w = watch_tree_above(w))
		fire_rules(&k, w, p);
	write_line(&k, rule, NULL);
}
