/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/match_queue.h"

#include "consumer/discovery/discovery.h"
#include "consumer/io/turn.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"

/* A walk waits this long for a scan that still finds processes for it. */
#define HOLD_NS (200 * NSEC_PER_MSEC)

/*
 * Returns whether the mappings of `p` are known. Reads them, unless a walk has to: then they were
 * requested when `p` was queued.
 */
static bool read_mappings(struct discovery *d, struct process *p)
{
	if (mappings_queue_is_used(d->queue))
		return p->maps.count;
	return process_mappings_read(d->mappings, p, 0);
}

static const char *why_no_exe(const struct process *p, bool mapped)
{
	if (mapped)
		return "no mapping of the executable was seen";
	if (p->wait.walks >= MAPPINGS_QUEUE_WALKS)
		return "its mappings could not be read: they changed in the meantime";
	return "the process had gone before its mappings were read";
}

static void write_match(struct discovery *d, struct process *p, const char *found)
{
	struct event_subject subject = event_log_subject(d->log, p->rule, p->cgroup_id);
	bool mapped = read_mappings(d, p);
	struct runtime runtime = {};
	struct jsonw w;

	event_line_begin(d->log->lines, &w, "process.match", &subject);
	jsonw_u64(&w, "pid", p->tgid);
	jsonw_u64(&w, "start_ns", p->start_ns);
	jsonw_u64(&w, "ppid", p->ppid);
	jsonw_string(&w, "comm", p->comm);
	jsonw_string(&w, "exe", p->maps.exe ? p->maps.exe->path : NULL);
	if (!p->maps.exe)
		jsonw_string(&w, "exe_reason", why_no_exe(p, mapped));
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
			jsonw_string(&w, "version_reason", "the file names do not contain it");
		jsonw_string(&w, "how", runtime.how);
		jsonw_object_end(&w);
	}
	event_line_end(d->log->lines, &w);
}

/* A queued process may have lost its rule since: then it matches nothing. */
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

/* Whether a walk has to read the mappings of `p`; if so, requests them. */
static bool waits_for_walk(struct discovery *d, struct process *p)
{
	if (!mappings_queue_is_used(d->queue) || (p->maps.count && !p->maps.stale))
		return false;
	mappings_queue_ask(d->queue, p, 0);
	return true;
}

void match_queue_add(struct discovery *d, struct process *p, const char *found)
{
	struct match_queue *q = &d->matches;
	bool walked = mappings_queue_is_used(d->queue), waits = waits_for_walk(d, p);

	p->match.found = found;
	if (p->match.queued)
		return;
	/* A process that waits for no walk has its mappings: nothing else has to be read. */
	if (walked ? !waits : !q->first && !turn_is_over()) {
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

/*
 * Whether the next walk should wait: a scan may find more processes for it. One walk per few
 * processes that a scan iteration finds would make the time of a start grow with the square of
 * their number.
 */
static bool waits_for_scan(struct discovery *d)
{
	struct match_queue *q = &d->matches;
	uint64_t now_ns = clock_mono_ns();

	if (d->scan.stage == SCAN_NONE || mappings_walk_runs(&d->queue->walk) ||
	    d->queue->count >= ASKED_MAX) {
		q->held_ns = 0;
		return false;
	}
	if (!q->held_ns)
		q->held_ns = now_ns;
	return now_ns - q->held_ns < HOLD_NS;
}

/* Writes the lines of processes after a walk has read their mappings, or has given up. */
static void step_walk(struct discovery *d)
{
	struct match_queue *q = &d->matches;
	uint64_t until_ns = turn_until_ns();
	struct process *p;

	if (waits_for_scan(d))
		return;
	while ((p = mappings_queue_next(d->queue, until_ns))) {
		if (p->match.queued) {
			remove_process(q, p);
			write_queued(d, p);
		}
		if (clock_mono_ns() >= until_ns)
			return;
	}
}

void match_queue_step(struct discovery *d)
{
	struct match_queue *q = &d->matches;
	uint64_t until_ns = turn_until_ns();
	struct process *p;

	if (mappings_queue_is_used(d->queue)) {
		step_walk(d);
		return;
	}
	while ((p = q->first)) {
		remove_process(q, p);
		write_queued(d, p);
		if (clock_mono_ns() >= until_ns)
			return;
	}
}
