/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/thread_accounts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/time/account_reader.h"
#include "consumer/evidence/time/account_table.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define ADD_AT_ONCE 64 /* threads between two readings of the clock */

static int compare_before(const void *a, const void *b)
{
	const struct thread_before *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static int read_losses(const struct pinned_maps *pins, uint32_t slot,
		       struct slot_accounts *ret_losses)
{
	return pinned_maps_signal(pins, PINNED_MAP_account_losses, slot,
				  sizeof(*ret_losses) / sizeof(uint64_t), (uint64_t *)ret_losses);
}

/* Maps a part without a row in account_parts.def to the rest. */
static uint32_t tame_part(uint32_t part)
{
	return part < ACCOUNT_PARTS_ ? part : ACCOUNT_OTHER;
}

/* Lists the waits that are not over. 0 or -ENOMEM. */
static int keep_open(const struct account_reader *r, struct open_waits *ret_open)
{
	struct open_waits open = { .items = calloc(MAX(r->count, (size_t)1), sizeof(*open.items)) };

	if (!open.items)
		return -ENOMEM;
	for (size_t i = 0; i < r->count; i++) {
		const struct account_head *head = &r->items[i].head;
		struct open_wait *wait = &open.items[open.count];

		if (!head->open_wait_ns)
			continue;
		*wait = (struct open_wait){
			.wait_ns = head->open_wait_ns,
			.tid = head->tid,
			.tgid = head->account.tgid,
			.call = head->account.call,
			.begin_ns = head->account.since_ns - head->open_wait_ns,
			.part = tame_part(head->account.kind),
		};
		memcpy(wait->comm, head->account.comm, sizeof(wait->comm) - 1);
		open.count++;
	}
	*ret_open = open;
	return 0;
}

struct thread_entry {
	struct account_reader living;
	struct thread_baseline before;
};

static void free_entry(struct thread_entry **t)
{
	thread_accounts_leave(*t);
}

int thread_accounts_enter(const struct pinned_maps *pins, uint32_t slot,
			  struct thread_entry **ret_entry)
{
	_cleanup_(free_entry) struct thread_entry *t = calloc(1, sizeof(*t));
	int e;

	if (!t)
		return -ENOMEM;
	t->living.fd = -1;
	t->before.begin_ns = clock_mono_ns();
	e = read_losses(pins, slot, &t->before.losses);
	if (e == 0)
		e = account_reader_open(&t->living, pins, slot, 0);
	if (e < 0)
		return e;
	*ret_entry = TAKE_PTR(t);
	return 0;
}

int thread_accounts_enter_step(struct thread_entry *t, uint64_t until_ns)
{
	return account_reader_step(&t->living, until_ns);
}

/* Records the accounts that were read; accounts of one tid are adjacent. */
static int note_before(const struct account_reader *r, struct thread_baseline *before)
{
	before->items = calloc(MAX(r->count, (size_t)1), sizeof(*before->items));
	if (!before->items)
		return -ENOMEM;
	for (size_t i = 0; i < r->count; i++) {
		struct thread_before *b = &before->items[before->count++];
		const struct time_account *a = &r->items[i].head.account;

		b->tid = r->items[i].head.tid;
		b->first_ns = a->first_ns;
		b->since_ns = a->since_ns;
		b->longest_ns = a->longest_ns;
		b->switches = a->switches;
		memcpy(b->part_ns, a->part_ns, sizeof(b->part_ns));
		b->queue = r->items[i].queue;
	}
	array_sort(before->items, before->count, sizeof(*before->items), compare_before);
	return 0;
}

int thread_accounts_entered(struct thread_entry *entry, struct thread_baseline *ret_before)
{
	_cleanup_(free_entry) struct thread_entry *t = entry;
	int e = thread_accounts_enter_step(t, UINT64_MAX);

	if (e == 0)
		e = note_before(&t->living, &t->before);
	if (e == 0)
		e = keep_open(&t->living, &t->before.open);
	if (e < 0)
		return e;
	t->before.read_ns = clock_mono_ns() - t->before.begin_ns;
	*ret_before = t->before;
	t->before = (struct thread_baseline){};
	return 0;
}

void thread_accounts_leave(struct thread_entry *t)
{
	if (!t)
		return;
	account_reader_done(&t->living);
	thread_accounts_forget(&t->before);
	free(t);
}

int thread_accounts_begin(const struct pinned_maps *pins, uint32_t slot,
			  struct thread_baseline *ret_before)
{
	struct thread_entry *t;
	int e = thread_accounts_enter(pins, slot, &t);

	return e < 0 ? e : thread_accounts_entered(t, ret_before);
}

/* The accounts under construction. */
struct difference {
	const struct thread_baseline *before;
	struct thread_accounts all;
	size_t space;
};

static struct thread_account *add_thread(struct difference *d)
{
	if (array_reserve(&d->all.items, &d->space, d->all.count + 1, sizeof(*d->all.items)) < 0)
		return NULL;
	d->all.items[d->all.count] = (struct thread_account){};
	return &d->all.items[d->all.count++];
}

/*
 * Subtracts the earlier waits for a CPU. If the longest wait was earlier, the session's longest is
 * not known.
 */
static void subtract_queue(const struct thread_queue *b, struct thread_queue *q)
{
	for (int i = 0; i < QUEUE_BUCKETS; i++)
		q->waits[i] -= b->waits[i];
	for (int i = 0; i < QUEUE_BEHIND_; i++)
		q->behind_ns[i] -= MIN(b->behind_ns[i], q->behind_ns[i]);
	if (q->longest_end_ns == b->longest_end_ns)
		q->longest_ns = 0;
}

/* Subtracts the time before the session. Returns when the thread joined it. */
static uint64_t subtract_before(const struct difference *d, const struct time_account *a,
				struct thread_account *t)
{
	const struct thread_before key = { .tid = t->tid, .first_ns = a->first_ns };
	const struct thread_before *b =
		array_find(&key, d->before->items, d->before->count, sizeof(key), compare_before);

	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		t->part_ns[i] = a->part_ns[i] - (b ? MIN(b->part_ns[i], a->part_ns[i]) : 0);
	/*
	 * A wait that was open at the begin has grown since: only its time in the session counts.
	 */
	t->longest_kind = tame_part(a->longest_kind);
	t->longest_ns = MIN(a->longest_ns, t->part_ns[t->longest_kind]);
	if (b && b->longest_ns == a->longest_ns)
		t->longest_ns = 0;
	if (b) {
		t->switches.voluntary -= b->switches.voluntary;
		t->switches.involuntary -= b->switches.involuntary;
		subtract_queue(&b->queue, &t->queue);
		return b->since_ns;
	}
	/*
	 * A thread born in the session with an account that began later was in another cgroup until
	 * then, unless it had no account because the table was full.
	 */
	if (a->born_ns >= d->before->begin_ns &&
	    (a->first_ns <= a->born_ns || d->all.losses.unqueued)) {
		t->fate |= THREAD_BORN;
		return a->born_ns;
	}
	t->fate |= THREAD_ARRIVED;
	return a->first_ns;
}

/* Adds a thread until `until_ns`. 0 or -ENOMEM. */
static int add_account(struct difference *d, uint32_t tid, const struct time_account *a,
		       const struct thread_queue *queue, uint32_t fate, uint64_t open_ns,
		       uint64_t until_ns)
{
	struct thread_account *t;
	uint64_t sum_ns = 0, from_ns;

	if (until_ns <= d->before->begin_ns) /* of another session, which began before */
		return 0;
	t = add_thread(d);
	if (!t)
		return -ENOMEM;
	*t = (struct thread_account){ .tid = tid, .tgid = a->tgid, .start_ns = a->start_ns };
	t->fate = fate;
	t->switches = a->switches;
	t->queue = *queue;
	memcpy(t->comm, a->comm, sizeof(t->comm) - 1);
	from_ns = subtract_before(d, a, t);
	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		sum_ns += t->part_ns[i];
	t->wall_ns = MAX(until_ns - MIN(from_ns, until_ns), sum_ns);
	t->unaccounted_ns = t->wall_ns - sum_ns;
	t->open_ns = MIN(open_ns, sum_ns);
	return 0;
}

/* Stages of a reading. */
enum stage {
	STAGE_READ,   /* the records of living threads */
	STAGE_LIVING, /* their differences */
	STAGE_GONE,   /* the records of other threads, which only the map has */
	STAGE_WHOLE,
};

struct thread_reading {
	const struct pinned_maps *pins;
	struct account_reader living;
	struct difference d;
	enum stage stage;
	size_t next; /* index of the next living thread to add */
	struct account_elements elements;
};

static void free_reading(struct thread_reading **t)
{
	thread_accounts_close(*t);
}

/*
 * Counts each thread once: either the reading of living threads has it, or only the map. A thread
 * that began after that reading belongs to the time after the session.
 */
static bool is_gone(const struct thread_reading *t, const struct account_key *key,
		    const struct time_account *a)
{
	return account_reader_wants(&t->living, a) && a->first_ns < t->d.all.end_ns &&
	       !account_reader_find(&t->living, key->tid, a->first_ns);
}

static int add_gone(struct thread_reading *t, const struct account_elements *e)
{
	for (uint32_t i = 0; i < e->part.count; i++) {
		const struct time_account *a = &e->values[i].account;
		bool ended = a->flags & ACCOUNT_ENDED && !(a->flags & ACCOUNT_MOVED);
		int error;

		if (!is_gone(t, &e->keys[i], a))
			continue;
		error = add_account(&t->d, e->keys[i].tid, a, &e->values[i].queue,
				    ended ? THREAD_ENDED : THREAD_LEFT, 0, a->since_ns);
		if (error < 0)
			return error;
	}
	return 0;
}

/*
 * Adds threads that have ended or moved elsewhere: only the map has them. Returns 1, 0 at the end,
 * or -errno.
 */
static int step_gone(struct thread_reading *t)
{
	int error = account_table_read(t->pins, &t->elements);

	if (error == 0)
		error = add_gone(t, &t->elements);
	return error < 0 ? error : t->elements.part.more;
}

/* Adds some of the living threads. Returns 1, 0 at the end, or -errno. */
static int step_living(struct thread_reading *t)
{
	size_t end = MIN(t->next + ADD_AT_ONCE, t->living.count);

	for (; t->next < end; t->next++) {
		const struct account_record *record = &t->living.items[t->next];
		int e = add_account(&t->d, record->head.tid, &record->head.account, &record->queue,
				    0, record->head.open_ns,
				    MAX(record->head.account.since_ns, t->d.all.end_ns));

		if (e < 0)
			return e;
	}
	return t->next < t->living.count;
}

static struct slot_accounts subtract_losses(const struct slot_accounts *now,
					    const struct slot_accounts *before)
{
	return (struct slot_accounts){
		.ended = now->ended - before->ended,
		.unqueued = now->unqueued - before->unqueued,
		.calls_full = now->calls_full - before->calls_full,
		.calls_full_ns = now->calls_full_ns - before->calls_full_ns,
		.no_memory = now->no_memory - before->no_memory,
		.ended_no_memory = now->ended_no_memory - before->ended_no_memory,
		.calls_no_memory = now->calls_no_memory - before->calls_no_memory,
	};
}

int thread_accounts_open(const struct pinned_maps *pins, uint32_t slot, uint32_t only_tgid,
			 const struct thread_baseline *before, struct thread_reading **ret_reading)
{
	_cleanup_(free_reading) struct thread_reading *t = calloc(1, sizeof(*t));
	struct slot_accounts losses;
	int e;

	if (!t)
		return -ENOMEM;
	t->living.fd = -1;
	t->pins = pins;
	t->d.before = before;
	t->d.all.end_ns = clock_mono_ns();
	e = read_losses(pins, slot, &losses);
	if (e == 0)
		e = account_reader_open(&t->living, pins, slot, only_tgid);
	if (e < 0)
		return e;
	t->d.all.losses = subtract_losses(&losses, &before->losses);
	*ret_reading = TAKE_PTR(t);
	return 0;
}

/* Takes the next step. Returns 1 if there are more, 0, or -errno. */
static int take_step(struct thread_reading *t, uint64_t until_ns)
{
	int more = 0;

	switch (t->stage) {
	case STAGE_READ:
		more = account_reader_step(&t->living, until_ns);
		break;
	case STAGE_LIVING:
		more = step_living(t);
		break;
	case STAGE_GONE:
		more = step_gone(t);
		break;
	case STAGE_WHOLE:
		return 0;
	}
	if (more)
		return more;
	t->stage++;
	return 1;
}

int thread_accounts_step(struct thread_reading *t, uint64_t until_ns)
{
	int more;

	do
		more = take_step(t, until_ns);
	while (more > 0 && clock_mono_ns() < until_ns);
	return more;
}

int thread_accounts_take(struct thread_reading *reading, struct thread_accounts *ret_accounts)
{
	_cleanup_(free_reading) struct thread_reading *t = reading;
	int e = thread_accounts_step(t, UINT64_MAX);

	if (e == 0)
		e = keep_open(&t->living, &t->d.all.open);
	if (e < 0)
		return e;
	t->d.all.read_ns = clock_mono_ns() - t->d.all.end_ns;
	t->d.all.lost = t->living.lost + t->d.all.losses.ended;
	t->d.all.no_memory = t->living.no_memory + t->d.all.losses.ended_no_memory;
	*ret_accounts = t->d.all;
	t->d.all = (struct thread_accounts){};
	return 0;
}

int thread_accounts_end(const struct pinned_maps *pins, uint32_t slot, uint32_t only_tgid,
			const struct thread_baseline *before, struct thread_accounts *ret_accounts)
{
	struct thread_reading *t;
	int e = thread_accounts_open(pins, slot, only_tgid, before, &t);

	return e < 0 ? e : thread_accounts_take(t, ret_accounts);
}

void thread_accounts_close(struct thread_reading *t)
{
	if (!t)
		return;
	account_reader_done(&t->living);
	thread_accounts_done(&t->d.all);
	free(t);
}

void thread_accounts_forget(struct thread_baseline *before)
{
	free(TAKE_PTR(before->items));
	free(TAKE_PTR(before->open.items));
	before->count = before->open.count = 0;
}

void thread_accounts_done(struct thread_accounts *accounts)
{
	free(TAKE_PTR(accounts->items));
	free(TAKE_PTR(accounts->open.items));
	accounts->count = accounts->open.count = 0;
}
