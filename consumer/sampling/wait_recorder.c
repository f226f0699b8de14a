/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/wait_recorder.h"

#include <stdlib.h>

#include "shared/tools/macro.h"

#define THREADS_MAX 65536

/* Losses closer together than this are counted together. */
#define LOSSES_APART_NS (LOOKS_RECORD_EVERY_NS - NSEC_PER_SEC)

void wait_recorder_init(struct wait_recorder *r, size_t max_bytes)
{
	*r = (struct wait_recorder){ .max_bytes = max_bytes };
	wait_stacks_init(&r->stacks, THREADS_MAX);
	idmap_init(&r->threads, THREADS_MAX);
	idmap_init(&r->losses, THREADS_MAX);
}

static void free_wait(struct wait_recorder *r, struct recorded_wait *w)
{
	wait_stacks_drop(&r->stacks, w->stack);
	free(w);
}

static void drop_oldest(struct wait_recorder *r)
{
	struct recorded_wait *w = r->oldest;

	r->oldest = w->next;
	if (!r->oldest)
		r->newest = NULL;
	r->over--;
	free_wait(r, w);
}

void wait_recorder_done(struct wait_recorder *r)
{
	uint64_t evicted = r->evicted, id;
	struct recorded_wait *w;
	struct wait_losses *l;

	while (r->oldest)
		drop_oldest(r);
	idmap_for_each (&r->threads, i, id, w)
		free_wait(r, w);
	idmap_for_each (&r->losses, i, id, l)
		free(l);
	idmap_done(&r->threads);
	idmap_done(&r->losses);
	wait_stacks_done(&r->stacks);
	wait_recorder_init(r, r->max_bytes);
	r->evicted = evicted;
}

size_t wait_recorder_bytes(const struct wait_recorder *r)
{
	return r->stacks.bytes + idmap_bytes(&r->stacks.by_hash) + idmap_bytes(&r->threads) +
	       (r->over + r->threads.count) * sizeof(struct recorded_wait);
}

static void count_loss(struct wait_recorder *r, uint32_t slot, uint32_t epoch, uint64_t ns)
{
	struct wait_losses *l = idmap_get(&r->losses, slot + 1ull);

	r->evicted++;
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l || idmap_put(&r->losses, slot + 1ull, l) < 0) {
			free(l);
			return;
		}
	}
	if (l->epoch != epoch)
		*l = (struct wait_losses){ .epoch = epoch };
	if (l->at[l->last].ns + LOSSES_APART_NS < ns) {
		l->last = (l->last + 1) % WAIT_RECORDER_LOSSES;
		l->at[l->last].count = 0;
	}
	l->at[l->last].ns = MAX(l->at[l->last].ns, ns);
	l->at[l->last].count++;
}

static void evict_oldest(struct wait_recorder *r)
{
	const struct stack_sample *h = &r->oldest->stack->sample;

	count_loss(r, h->slot, h->epoch, r->oldest->to_ns);
	drop_oldest(r);
}

/* The wait is over. Keeps it, or drops it if it belongs to a session. */
static void end_wait(struct wait_recorder *r, struct recorded_wait *w, uint64_t to_ns, bool keep)
{
	idmap_remove(&r->threads, w->tid);
	if (!keep) {
		free_wait(r, w);
		return;
	}
	w->to_ns = to_ns;
	w->next = NULL;
	if (r->newest)
		r->newest->next = w;
	else
		r->oldest = w;
	r->newest = w;
	r->over++;
}

/* Returns a new open wait of the thread with this stack; NULL without space. */
static struct recorded_wait *add_wait(struct wait_recorder *r, const struct look_seen *seen)
{
	struct recorded_wait *w;

	while (r->oldest && wait_recorder_bytes(r) >= r->max_bytes)
		evict_oldest(r);
	w = wait_recorder_bytes(r) < r->max_bytes ? calloc(1, sizeof(*w)) : NULL;
	if (!w)
		return NULL;
	w->stack = wait_stacks_get(&r->stacks, seen->sample, &seen->record->on);
	if (!w->stack) {
		free(w);
		return NULL;
	}
	w->tid = seen->head->tid;
	w->switches = seen->record->switches;
	if (idmap_put(&r->threads, w->tid, w) < 0) {
		free_wait(r, w);
		return NULL;
	}
	return w;
}

/* Returns whether the sample found the thread of `w` in the same wait. */
static bool goes_on(const struct recorded_wait *w, const struct look_seen *seen)
{
	const struct stack_sample *was = &w->stack->sample, *is = seen->sample;

	return w->switches == seen->record->switches && was->wait == is->wait &&
	       was->tgid == is->tgid && was->start_ns == is->start_ns && was->slot == is->slot &&
	       was->epoch == is->epoch;
}

/* The same wait was unwound again: better, or by another table. */
static void replace_stack(struct wait_recorder *r, struct recorded_wait *w,
			  const struct look_seen *seen)
{
	struct wait_stack *stack = wait_stacks_get(&r->stacks, seen->sample, &seen->record->on);

	if (!stack)
		return;
	wait_stacks_drop(&r->stacks, w->stack);
	w->stack = stack;
}

static struct recorded_wait *take_whole(struct wait_recorder *r, const struct look_pass *pass,
					const struct look_seen *seen)
{
	struct recorded_wait *w = idmap_get(&r->threads, seen->head->tid);
	uint64_t now_ns = seen->head->time_ns, since_ns = now_ns, before_ns = 0;

	if (w && goes_on(w, seen)) {
		replace_stack(r, w, seen);
		return w;
	}
	if (w) {
		before_ns = since_ns = MIN(now_ns, w->seen_ns);
		end_wait(r, w, now_ns - (now_ns - since_ns) / 2, pass->all);
	} else if (pass->all && r->passes[r->last].began_ns) {
		before_ns = since_ns = MIN(now_ns, r->passes[r->last].began_ns);
	}
	w = add_wait(r, seen);
	if (!w) {
		count_loss(r, seen->sample->slot, seen->sample->epoch, now_ns);
		return NULL;
	}
	w->from_ns = now_ns - (now_ns - since_ns) / 2;
	w->first_ns = now_ns;
	w->before_ns = before_ns;
	return w;
}

void wait_recorder_seen(struct wait_recorder *r, const struct look_pass *pass,
			const struct look_seen *seen)
{
	struct recorded_wait *w = idmap_get(&r->threads, seen->head->tid);

	if (seen->record)
		w = take_whole(r, pass, seen);
	else if (!w)
		r->unknown = true;
	if (!w)
		return;
	w->seen_ns = seen->head->time_ns;
	w->pass = pass->number;
}

/* Ends the waits of the threads that the pass did not report. */
static void end_waits(struct wait_recorder *r, const struct look_pass *pass)
{
	struct recorded_wait *first = NULL, *w;
	uint64_t tid;

	idmap_for_each (&r->threads, i, tid, w) {
		if (w->pass == pass->number)
			continue;
		w->next = first;
		first = w;
	}
	while (first) {
		w = first;
		first = w->next;
		end_wait(r, w, w->seen_ns + (pass->began_ns - MIN(pass->began_ns, w->seen_ns)) / 2,
			 true);
	}
}

bool wait_recorder_passed(struct wait_recorder *r, const struct look_pass *pass)
{
	bool unknown = r->unknown;

	if (!pass->all)
		return false;
	if (!pass->cut)
		end_waits(r, pass);
	r->last = (r->last + 1) % WAIT_RECORDER_PASSES;
	r->passes[r->last] = (struct recorded_pass){ pass->number, pass->began_ns, pass->cut };
	r->unknown = false;
	return unknown && wait_recorder_bytes(r) < r->max_bytes / 2;
}

void wait_recorder_expire(struct wait_recorder *r, uint64_t before_ns)
{
	while (r->oldest && r->oldest->to_ns < before_ns)
		drop_oldest(r);
}

void wait_recorder_each(const struct wait_recorder *r, uint64_t from_ns,
			void (*call)(void *context, const struct recorded_wait *wait, bool open),
			void *context)
{
	struct recorded_wait *w;
	uint64_t tid;

	for (w = r->oldest; w; w = w->next)
		if (w->to_ns > from_ns)
			call(context, w, false);
	idmap_for_each (&r->threads, i, tid, w)
		call(context, w, true);
}

const struct recorded_pass *wait_recorder_last(const struct wait_recorder *r)
{
	return r->passes[r->last].began_ns ? &r->passes[r->last] : NULL;
}

uint64_t wait_recorder_lost(const struct wait_recorder *r, uint32_t slot, uint32_t epoch,
			    uint64_t from_ns)
{
	const struct wait_losses *l = idmap_get(&r->losses, slot + 1ull);
	uint64_t count = 0;

	if (!l || l->epoch != epoch)
		return 0;
	for (int i = 0; i < WAIT_RECORDER_LOSSES; i++)
		if (l->at[i].ns >= from_ns)
			count += l->at[i].count;
	return count;
}

uint64_t wait_recorder_count(const struct wait_recorder *r, uint64_t from_ns, uint64_t to_ns,
			     uint64_t *ret_cut)
{
	uint64_t count = 0, cut = 0;

	for (int i = 0; i < WAIT_RECORDER_PASSES; i++) {
		const struct recorded_pass *pass = &r->passes[i];

		if (!pass->began_ns || pass->began_ns < from_ns || pass->began_ns >= to_ns)
			continue;
		count++;
		cut += pass->cut;
	}
	*ret_cut = cut;
	return count;
}
