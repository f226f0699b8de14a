/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/match_queue.h"

#include "consumer/discovery/discovery.h"
#include "consumer/io/turn.h"
#include "shared/tools/clock.h"

static void write_match(struct discovery *d, struct process *p, const char *found)
{
	struct event_subject subject = event_log_subject(d->log, p->rule, p->cgroup_id);
	bool mapped = process_mappings_read(d->mappings, p, 0);
	struct runtime runtime = {};
	struct jsonw w;

	event_line_begin(d->log->lines, &w, "process.match", &subject);
	jsonw_u64(&w, "pid", p->tgid);
	jsonw_u64(&w, "start_ns", p->start_ns);
	jsonw_u64(&w, "ppid", p->ppid);
	jsonw_string(&w, "comm", p->comm);
	jsonw_string(&w, "exe", p->maps.exe ? p->maps.exe->path : NULL);
	if (!p->maps.exe)
		jsonw_string(&w, "exe_reason",
			     mapped ? "no mapping of the executable was seen"
				    : "the process had gone before its mappings were read");
	jsonw_string(&w, "found", found);
	if (subject.cgroup)
		container_write(&subject.container, subject.cgroup, &w);
	if (mapped)
		mappings_runtime(&p->maps, &runtime);
	if (runtime.name) {
		jsonw_object(&w, "runtime");
		jsonw_string(&w, "name", runtime.name);
		jsonw_string(&w, "version", runtime.version[0] ? runtime.version : NULL);
		if (!runtime.version[0])
			jsonw_string(&w, "version_reason", "the file names do not say");
		jsonw_string(&w, "how", runtime.how);
		jsonw_object_end(&w);
	}
	event_line_end(d->log->lines, &w);
}

/* A process that was queued may have lost its rule since: then it matches nothing. */
static void write_queued(struct discovery *d, struct process *p)
{
	if (!p->rule)
		return;
	write_match(d, p, p->match.found);
	p->announced = true;
	process_unwind_step(d->unwind);
	process_unwind_announced(d->unwind, p);
}

static void append_process(struct match_queue *q, struct process *p)
{
	p->match.queued = true;
	p->match.next = NULL;
	p->match.previous = q->last;
	*(q->last ? &q->last->match.next : &q->first) = p;
	q->last = p;
	q->count++;
}

static void remove_process(struct match_queue *q, struct process *p)
{
	*(p->match.previous ? &p->match.previous->match.next : &q->first) = p->match.next;
	*(p->match.next ? &p->match.next->match.previous : &q->last) = p->match.previous;
	p->match.next = p->match.previous = NULL;
	p->match.queued = false;
	q->count--;
}

void match_queue_add(struct discovery *d, struct process *p, const char *found)
{
	struct match_queue *q = &d->matches;

	p->match.found = found;
	if (p->match.queued)
		return;
	if (!q->first && !turn_is_over()) {
		write_queued(d, p);
		return;
	}
	append_process(q, p);
	if (q->count == 1)
		schedule_drain_soon(d->schedule);
}

void match_queue_leave(struct discovery *d, struct process *p)
{
	if (!p->match.queued)
		return;
	remove_process(&d->matches, p);
	write_queued(d, p);
}

void match_queue_step(struct discovery *d)
{
	struct match_queue *q = &d->matches;
	uint64_t until_ns = turn_until_ns();
	struct process *p;

	while ((p = q->first)) {
		remove_process(q, p);
		write_queued(d, p);
		if (clock_mono_ns() >= until_ns)
			return;
	}
}
