/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwinding.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "consumer/agent.h"
#include "consumer/symbols/records.h"
#include "consumer/unwind/unwind_window.h"
#include "consumer/unwinding_again.h"
#include "consumer/unwinding_lines.h"
#include "consumer/unwinding_plan.h"
#include "consumer/unwinding_room.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/macro.h"

/* A filling that the process's own mmap(2) came in the way of is tried again at once. */
#define FILL_TRIES 4

/* EVENT_UNMAPPED that brought nothing new comes half as often each time, down to one in so long. */
#define QUIET_FIRST_NS (200 * NSEC_PER_MSEC)
#define QUIET_MAX_NS   (10 * NSEC_PER_SEC)

static void wait_begin(struct unwinding *u, struct process *p)
{
	struct unwinding_state *s = &p->unwind;

	if (s->waiting)
		return;
	s->waiting = true;
	s->previous = NULL;
	s->next = u->first;
	if (u->first)
		u->first->unwind.previous = p;
	u->first = p;
}

static void wait_end(struct unwinding *u, struct process *p)
{
	struct unwinding_state *s = &p->unwind;

	if (!s->waiting)
		return;
	s->waiting = false;
	*(s->previous ? &s->previous->unwind.next : &u->first) = s->next;
	if (s->next)
		s->next->unwind.previous = s->previous;
	s->previous = s->next = NULL;
}

/* The kernel side's table `number` in memory, or NULL: said where it stops. */
static struct unwind_process *open_table(const struct unwinding *u, uint32_t number,
					 struct unwind_window *window)
{
	int r = unwind_window_open(u->process_fd, number * sizeof(struct unwind_process),
				   sizeof(struct unwind_process), window);

	return r < 0 ? NULL : window->at;
}

/* Without memory the word stays: then the table is not used again either. */
static bool unpublish(struct unwinding *u, uint32_t number)
{
	_cleanup_(unwind_window_close) struct unwind_window window = { 0 };
	struct unwind_process *table = open_table(u, number, &window);

	if (table)
		__atomic_store_n(&table->published, 0, __ATOMIC_RELEASE);
	return table;
}

/* Nobody is to begin a walk by table `number` any more; it is free after a grace. */
static void retire(struct agent *a, uint32_t number)
{
	struct unwinding *u = &a->unwinding;
	struct unwinding_table *t = &u->tables[number];

	owner_sub(t->holder, SHARE_TABLES, 1);
	shares_put(&a->shares, t->holder);
	t->holder = NULL;
	t->grace = unpublish(u, number) ? unwind_files_grace(u->files) : UINT64_MAX;
	t->state = TABLE_RETIRED;
	t->owner = NULL;
	u->live--;
}

/* Frees the retired ones whose grace has passed, and gives their files back. True if there were. */
static bool reclaim(struct unwinding *u)
{
	uint64_t graced = unwind_files_graced(u->files);
	bool freed = false;

	for (uint32_t i = 0; i < u->table_count; i++) {
		struct unwinding_table *t = &u->tables[i];

		if (t->state != TABLE_RETIRED || t->grace > graced)
			continue;
		for (size_t k = 0; k < t->held_count; k++)
			unwind_files_release(u->files, t->held[k]);
		free(t->held);
		t->held = NULL;
		t->held_count = 0;
		t->state = TABLE_FREE;
		freed = true;
	}
	return freed;
}

void unwinding_withdraw(struct agent *a, struct process *p)
{
	if (p->unwind.table)
		retire(a, p->unwind.table - 1);
	p->unwind.table = 0;
	p->unwind.shape = 0;
	p->unwind.cut = 0;
	p->unwind.how = UNWINDING_UNKNOWN;
	process_set_unwind(a, p);
}

/*
 * The number of a free table, or -1. By turns: samples that were walked by a table that is retired
 * since may still be in the ring, and name its filling.
 */
static int64_t free_table(struct agent *a, const struct process *p)
{
	struct unwinding *u = &a->unwinding;

	reclaim(u);
	for (uint32_t k = 0; k < u->table_count; k++) {
		uint32_t i = (u->turn + k) % u->table_count;

		if (u->tables[i].state != TABLE_FREE)
			continue;
		u->turn = (i + 1) % u->table_count;
		return i;
	}
	u->full++;
	unwinding_room_table(a, p);
	return -1;
}

static ssize_t take_record(void *context, const uint8_t *data, size_t bytes)
{
	size_t whole = bytes / sizeof(struct ranges_record) * sizeof(struct ranges_record);

	if (whole > 0)
		memcpy(context, data + whole - sizeof(struct ranges_record),
		       sizeof(struct ranges_record));
	return (ssize_t)whole;
}

/*
 * Has the kernel side take the ranges of the plan into table `number`. 0 with its record; -ESRCH
 * when the process is gone or is another image by now.
 */
static int fill_once(struct agent *a, const struct process *p, uint32_t number,
		     struct ranges_record *ret_record)
{
	struct unwinding *u = &a->unwinding;
	struct ranges_record record = { 0 };
	int r;

	u->claims->start_ns = p->start_ns;
	u->claims->table = number;
	unwinding_plan_claim(p->unwind.plan, u->claims);
	__atomic_store_n(&u->claims->tgid, p->tgid, __ATOMIC_RELEASE);
	r = records_read(a->pins.ranges_path, take_record, &record);
	__atomic_store_n(&u->claims->tgid, 0, __ATOMIC_RELEASE);
	if (r < 0)
		return r;
	if (record.fill == 0 || record.table != number || record.count != u->claims->count)
		return -ESRCH;
	*ret_record = record;
	return 0;
}

static int fill(struct agent *a, const struct process *p, uint32_t number,
		struct ranges_record *ret_record)
{
	int r;

	for (int i = 0; i < FILL_TRIES; i++) {
		r = fill_once(a, p, number, ret_record);
		if (r < 0)
			return r;
		if (!ret_record->missed)
			break;
	}
	return 0;
}

/* The plan becomes table `number`: published, told to the kernel side, the old one retired. */
static void publish(struct agent *a, struct process *p, uint32_t number,
		    const struct ranges_record *record)
{
	_cleanup_(unwind_window_close) struct unwind_window window = { 0 };
	struct unwinding *u = &a->unwinding;
	struct unwind_process *to = open_table(u, number, &window);
	struct unwinding_table *t = &u->tables[number];
	struct unwinding_state *s = &p->unwind;
	uint32_t old = s->table;

	if (!to || mappings_copy(&p->maps, &t->maps) < 0)
		return;
	unwinding_plan_write(s->plan, to->mappings);
	to->quiet_ns = 0;
	__atomic_store_n(&to->published, record->fill, __ATOMIC_RELEASE);
	t->state = TABLE_LIVE;
	t->owner = p;
	t->holder = shares_of_cgroup(&a->shares, &a->cgroups, p->cgroup_id, p->tgid);
	owner_add(t->holder, SHARE_TABLES, 1);
	t->fill = record->fill;
	t->held = unwinding_plan_take(s->plan, &t->held_count);
	u->live++;
	u->published++;
	t->cut = s->cut = unwinding_plan_cut(s->plan);
	u->cut += s->cut + record->cut;
	u->missed += record->missed;
	s->holes = record->missed;
	s->table = number + 1;
	s->image = p->maps.image;
	s->shape = unwinding_plan_shape(s->plan);
	s->how = unwinding_plan_how(s->plan);
	t->rows = s->how != UNWINDING_FP;
	s->published_ns = s->used_ns = clock_mono_ns();
	process_set_unwind(a, p);
	if (old)
		retire(a, old - 1);
}

static void plan_drop(struct agent *a, struct process *p)
{
	unwinding_plan_free(p->unwind.plan, a->unwinding.files);
	p->unwind.plan = NULL;
	wait_end(&a->unwinding, p);
}

/* Nothing is new for this process: it is not to be asked for so often. */
static void grow_quiet(struct unwinding *u, const struct process *p)
{
	_cleanup_(unwind_window_close) struct unwind_window window = { 0 };
	struct unwind_process *to = open_table(u, p->unwind.table - 1, &window);

	if (to)
		to->quiet_ns = MIN(MAX(2 * to->quiet_ns, (uint64_t)QUIET_FIRST_NS),
				   (uint64_t)QUIET_MAX_NS);
}

/* All files are settled. True when the plan is done with, one way or another. */
static bool conclude(struct agent *a, struct process *p)
{
	struct unwinding *u = &a->unwinding;
	struct unwinding_state *s = &p->unwind;
	struct ranges_record record;
	bool asked = s->asked;
	int64_t number;

	s->asked = false;
	if (s->table && !s->holes && s->shape == unwinding_plan_shape(s->plan)) {
		if (asked)
			grow_quiet(u, p);
		return true;
	}
	if (unwinding_plan_foreign(s->plan)) {
		unwinding_withdraw(a, p);
		s->how = UNWINDING_FP;
		s->image = p->maps.image;
		return true;
	}
	number = free_table(a, p);
	if (number < 0) {
		process_mapped(a, p); /* that may be a long time */
		return false;
	}
	if (fill(a, p, (uint32_t)number, &record) == 0)
		publish(a, p, (uint32_t)number, &record);
	return true;
}

/* Goes on with a plan as far as it can. */
static void step(struct agent *a, struct process *p)
{
	struct unwinding *u = &a->unwinding;
	uint32_t lacking;

	if (unwinding_plan_step(p->unwind.plan, u->files) && conclude(a, p)) {
		unwinding_say(a, p);
		lacking = unwinding_plan_lacking(p->unwind.plan);
		plan_drop(a, p);
		if (lacking)
			unwinding_room_rows(a, p, lacking);
		if (!unwinding_waits(a, p))
			process_mapped(a, p);
	} else {
		wait_begin(u, p);
	}
}

bool unwinding_waits(const struct agent *a, const struct process *p)
{
	const struct unwinding_state *s = &p->unwind;

	return a->unwinding.files &&
	       !(s->image == p->maps.image && (s->table || s->how == UNWINDING_FP));
}

static enum rule_unwind wanted(const struct process *p)
{
	return p->rule ? p->rule->unwind : RULE_UNWIND_AUTO;
}

void unwinding_follow(struct agent *a, struct process *p)
{
	if (!a->unwinding.files || p->gone_ns)
		return;
	unwinding_again_young(a, p);
	plan_drop(a, p);
	p->unwind.by = wanted(p);
	p->unwind.plan = unwinding_plan_new(&p->maps, p->unwind.by);
	if (p->unwind.plan)
		step(a, p);
}

void unwinding_rule(struct agent *a, struct process *p)
{
	if (p->maps.count && p->unwind.by != wanted(p))
		unwinding_follow(a, p);
}

void unwinding_sample(struct agent *a, struct process *p, bool unwound, uint64_t time_ns)
{
	struct unwinding_state *s = &p->unwind;

	if (!s->table)
		return;
	if (unwound) {
		s->used_ns = time_ns;
		return;
	}
	if (time_ns > s->published_ns && s->shape) {
		s->shape = 0;
		process_map(a, p, time_ns);
	}
}

static enum unwind_end end_of(const struct sample *s, bool cut)
{
	bool no_caller = s->user_end == UNWIND_END_NO_CALLER;

	if (no_caller && s->flags & SAMPLE_BY_POINTER)
		return UNWIND_END_NO_POINTERS;
	if (cut && (no_caller || s->user_end == UNWIND_END_NO_MAPPING))
		return UNWIND_END_NO_PLACE;
	return (enum unwind_end)s->user_end;
}

struct unwinding_walk unwinding_walked(struct agent *a, const struct sample *s)
{
	static const struct mappings none;
	const struct unwinding *u = &a->unwinding;

	for (uint32_t i = 0; u->files && i < u->table_count; i++) {
		const struct unwinding_table *t = &u->tables[i];

		if ((uint32_t)t->fill != s->fill)
			continue;
		if (t->owner)
			t->owner->unwind.used_ns = s->time_ns;
		return (struct unwinding_walk){ &t->maps, end_of(s, t->cut), t->rows };
	}
	return (struct unwinding_walk){ &none, end_of(s, false), true };
}

void unwinding_leave(struct agent *a, struct process *p)
{
	if (!a->unwinding.files)
		return;
	plan_drop(a, p);
	if (p->unwind.table)
		retire(a, p->unwind.table - 1);
	p->unwind.table = 0;
}

void unwinding_news(struct agent *a)
{
	struct process *p, *next;

	unwind_files_news(a->unwinding.files);
	if (reclaim(&a->unwinding))
		unwinding_room_freed(a);
	for (p = a->unwinding.first; p; p = next) {
		next = p->unwind.next;
		step(a, p);
	}
}

static void on_news(void *context, uint32_t events)
{
	unwinding_news(context);
}

/* What an earlier consumer had published is nobody's now; a tick may still be reading it. */
static int take_over(struct unwinding *u)
{
	uint64_t grace;

	u->tables = calloc(u->table_count, sizeof(*u->tables));
	if (!u->tables)
		return -ENOMEM;
	for (uint32_t i = 0; i < u->table_count; i++)
		if (!unpublish(u, i))
			return -ENOMEM;
	grace = unwind_files_grace(u->files);
	for (uint32_t i = 0; i < u->table_count; i++)
		u->tables[i] = (struct unwinding_table){ .state = TABLE_RETIRED, .grace = grace };
	return 0;
}

int unwinding_start(struct agent *a)
{
	struct unwinding *u = &a->unwinding;
	const struct pins *pins = &a->pins;
	const struct unwind_maps maps = {
		.pool_fd = pins->unwind_pool_fd,
		.pool_elements = pins->abi.unwind_rows,
		.rules = pins->unwind_rules,
		.files = pins->unwind_files,
	};
	int r;

	r = unwind_files_new(&maps, a->symbols, &u->files);
	if (r < 0)
		return r;
	u->process_fd = pins->unwind_process_fd;
	u->claims = pins->unwind_claims;
	u->table_count = pins->abi.unwind_tables;
	return take_over(u);
}

int unwinding_listen(struct agent *a)
{
	return loop_add(a->loop, unwind_files_fd(a->unwinding.files), EPOLLIN, on_news, a,
			&a->unwinding.source);
}

void unwinding_done(struct agent *a)
{
	struct unwinding *u = &a->unwinding;

	for (uint32_t i = 0; u->tables && i < u->table_count; i++) {
		free(u->tables[i].held);
		mappings_done(&u->tables[i].maps);
	}
	free(u->tables);
	u->tables = NULL;
	unwind_files_free(u->files);
	u->files = NULL;
}
