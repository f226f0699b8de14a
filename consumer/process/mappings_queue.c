/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/mappings_queue.h"

#include <errno.h>

#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

void mappings_queue_init(struct mappings_queue *q, struct processes *processes,
			 struct process_mappings *mappings)
{
	*q = (struct mappings_queue){ .processes = processes, .mappings = mappings };
	mappings_walk_init(&q->walk, mappings->pins, mappings->symbols);
}

void mappings_queue_done(struct mappings_queue *q)
{
	mappings_walk_done(&q->walk);
}

bool mappings_queue_is_used(const struct mappings_queue *q)
{
	return !q->mappings->pins->abi.vma_open_coded;
}

static void append_process(struct mappings_queue *q, struct process *p)
{
	p->wait.state = MAPPINGS_QUEUED;
	p->wait.next = NULL;
	p->wait.previous = q->last;
	*(q->last ? &q->last->wait.next : &q->first) = p;
	q->last = p;
	q->count++;
}

static void remove_process(struct mappings_queue *q, struct process *p)
{
	*(p->wait.previous ? &p->wait.previous->wait.next : &q->first) = p->wait.next;
	*(p->wait.next ? &p->wait.next->wait.previous : &q->last) = p->wait.previous;
	p->wait.next = p->wait.previous = NULL;
	q->count--;
}

void mappings_queue_ask(struct mappings_queue *q, struct process *p, uint64_t since_ns)
{
	if (!process_is_needed(p))
		return;
	if (p->wait.state != MAPPINGS_UNASKED) {
		p->wait.since_ns = MAX(p->wait.since_ns, since_ns);
		return;
	}
	p->wait.since_ns = since_ns;
	p->wait.walks = 0;
	append_process(q, p);
}

void mappings_queue_leave(struct mappings_queue *q, struct process *p)
{
	if (p->wait.state == MAPPINGS_QUEUED)
		remove_process(q, p);
	p->wait.state = MAPPINGS_UNASKED;
}

bool mappings_queue_has_rest(const struct mappings_queue *q)
{
	return q->first || q->walk.count;
}

/*
 * Requests the mappings of waiting processes in the next walk. A process without space waits for
 * the walk after it.
 */
static int ask_waiting(struct mappings_queue *q)
{
	struct process *p, *next;
	int r;

	for (p = q->first; p; p = next) {
		const struct process_key key = process_key(p);

		next = p->wait.next;
		r = mappings_walk_ask(&q->walk, &key);
		if (r == -EEXIST)
			continue;
		if (r < 0) {
			q->full++;
			return r;
		}
		remove_process(q, p);
		p->wait.state = MAPPINGS_ASKED;
	}
	return 0;
}

/*
 * Fills the walk. If another consumer's elements may have filled the map, removes them: only this
 * consumer's belong there. Returns the first process if none could be requested, NULL otherwise.
 */
static struct process *fill_walk(struct mappings_queue *q)
{
	struct process *p;

	ask_waiting(q);
	if (q->walk.count || !q->first)
		return NULL;
	mappings_walk_clear(q->mappings->pins);
	ask_waiting(q);
	if (q->walk.count || !q->first)
		return NULL;
	p = q->first;
	mappings_queue_leave(q, p);
	p->tried_ns = clock_mono_ns();
	q->failed++;
	return p;
}

/* Makes `p` wait for the next walk. */
static void wait_again(struct mappings_queue *q, struct process *p)
{
	if (p->wait.state == MAPPINGS_ASKED)
		append_process(q, p);
}

/*
 * Takes the mappings, unless an execve(2) followed: the reading may be of the image before it, or
 * of both. Returns whether `p` no longer waits.
 */
static bool take_mappings(struct mappings_queue *q, struct process *p, struct mappings *maps)
{
	uint64_t read_ns = maps->read_ns;

	if (read_ns < p->exec_ns) {
		mappings_done(maps);
		wait_again(q, p);
		return false;
	}
	process_mappings_take(q->mappings, p, maps);
	if (read_ns < p->wait.since_ns)
		wait_again(q, p);
	else
		mappings_queue_leave(q, p);
	return true;
}

/*
 * Takes an answer of the walk. Returns the process if it no longer waits, or has other mappings
 * now.
 */
static struct process *take_answer(struct mappings_queue *q, struct mappings_answer *answer)
{
	struct process *p = process_find(q->processes, answer->key.tgid, answer->key.start_ns);

	if (!p || p->wait.state == MAPPINGS_UNASKED) {
		mappings_done(&answer->maps);
		return NULL;
	}
	if (answer->r == 0 || answer->r == -EOVERFLOW)
		return take_mappings(q, p, &answer->maps) ? p : NULL;
	if (answer->r != -ESRCH && ++p->wait.walks < MAPPINGS_QUEUE_WALKS) {
		wait_again(q, p);
		return NULL;
	}
	q->failed += answer->r != -ESRCH;
	mappings_queue_leave(q, p);
	p->tried_ns = clock_mono_ns();
	return p;
}

struct process *mappings_queue_next(struct mappings_queue *q, uint64_t until_ns)
{
	struct mappings_answer answer;
	struct process *p;

	do {
		p = mappings_walk_runs(&q->walk) ? NULL : fill_walk(q);
		while (!p && mappings_walk_next(&q->walk, until_ns, &answer) > 0)
			p = take_answer(q, &answer);
		if (p)
			return p;
	} while (mappings_queue_has_rest(q) && clock_mono_ns() < until_ns);
	return NULL;
}

void mappings_queue_write_status(const struct mappings_queue *q, struct jsonw *w)
{
	if (!mappings_queue_is_used(q))
		return;
	jsonw_object(w, "mappings_queue");
	jsonw_u64(w, "waiting", q->count + q->walk.count);
	jsonw_u64(w, "walks", q->walk.walks);
	jsonw_u64(w, "full", q->full);
	jsonw_u64(w, "failed", q->failed);
	jsonw_object_end(w);
}
