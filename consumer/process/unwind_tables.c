/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/unwind_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/iterator.h"
#include "consumer/process/unwind_plan.h"
#include "consumer/unwind/store/unwind_window.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Attempts to fill a table: an mmap(2) of the process may keep the kernel side from confirming. */
#define FILL_TRIES 4

/*
 * Each EVENT_UNMAPPED without a new mapping doubles the least time to the next, up to
 * QUIET_MAX_NS.
 */
#define QUIET_FIRST_NS (200 * NSEC_PER_MSEC)
#define QUIET_MAX_NS   (10 * NSEC_PER_SEC)

void unwind_tables_init(struct unwind_tables *all, const struct pinned_maps *pins,
			const struct process_targets *targets, struct shares *shares,
			struct cgroups *cgroups)
{
	*all = (struct unwind_tables){
		.pins = pins,
		.targets = targets,
		.shares = shares,
		.cgroups = cgroups,
	};
}

/* Maps the kernel side's table `number`; NULL without memory, which the callers report. */
static struct unwind_process *open_window(const struct unwind_tables *all, uint32_t number,
					  struct unwind_window *window)
{
	int r = unwind_window_open(all->pins->unwind_process_fd,
				   number * sizeof(struct unwind_process),
				   sizeof(struct unwind_process), window);

	return r < 0 ? NULL : window->at;
}

/*
 * Clears the word that publishes the table. False without memory: the word stays set, so the caller
 * must not use the table again.
 */
static bool unpublish_table(const struct unwind_tables *all, uint32_t number)
{
	_cleanup_(unwind_window_close) struct unwind_window window = { 0 };
	struct unwind_process *table = open_window(all, number, &window);

	if (table)
		__atomic_store_n(&table->published, 0, __ATOMIC_RELEASE);
	return table;
}

int unwind_tables_open(struct unwind_tables *all, struct unwind_files *files)
{
	uint32_t count = all->pins->abi.unwind_tables;
	uint64_t grace;

	all->items = calloc(count, sizeof(*all->items));
	if (!all->items)
		return -ENOMEM;
	all->files = files;
	all->count = count;
	for (uint32_t i = 0; i < count; i++)
		if (!unpublish_table(all, i))
			return -ENOMEM;
	grace = unwind_files_grace(files);
	for (uint32_t i = 0; i < count; i++)
		all->items[i] = (struct walk_table){ .state = WALK_TABLE_RETIRED, .grace = grace };
	return 0;
}

void unwind_tables_close(struct unwind_tables *all)
{
	for (uint32_t i = 0; all->items && i < all->count; i++) {
		free(all->items[i].held);
		mappings_done(&all->items[i].maps);
	}
	free(all->items);
	all->items = NULL;
	all->files = NULL;
	all->count = all->live = 0;
}

/*
 * Retires table `number`: the kernel side begins no more walks by it, and it is free after a grace
 * period.
 */
static void retire_table(struct unwind_tables *all, uint32_t number)
{
	struct walk_table *t = &all->items[number];

	shares_sub(t->holder, SHARE_TABLES, 1);
	shares_put(all->shares, t->holder);
	t->holder = NULL;
	t->grace = unpublish_table(all, number) ? unwind_files_grace(all->files) : UINT64_MAX;
	t->state = WALK_TABLE_RETIRED;
	t->process = NULL;
	all->live--;
}

bool unwind_tables_reclaim(struct unwind_tables *all)
{
	uint64_t graced = unwind_files_graced(all->files);
	bool freed = false;

	for (uint32_t i = 0; i < all->count; i++) {
		struct walk_table *t = &all->items[i];

		if (t->state != WALK_TABLE_RETIRED || t->grace > graced)
			continue;
		for (size_t k = 0; k < t->held_count; k++)
			unwind_files_release(all->files, t->held[k]);
		free(t->held);
		t->held = NULL;
		t->held_count = 0;
		t->state = WALK_TABLE_FREE;
		freed = true;
	}
	return freed;
}

uint32_t unwind_tables_count_free(const struct unwind_tables *all)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < all->count; i++)
		count += all->items[i].state == WALK_TABLE_FREE;
	return count;
}

/*
 * Searches round robin, because samples in the ring may name the filling of a table that was
 * retired since.
 */
int unwind_tables_find_free(struct unwind_tables *all, uint32_t *ret_number)
{
	unwind_tables_reclaim(all);
	for (uint32_t k = 0; k < all->count; k++) {
		uint32_t i = (all->next + k) % all->count;

		if (all->items[i].state != WALK_TABLE_FREE)
			continue;
		all->next = (i + 1) % all->count;
		*ret_number = i;
		return 0;
	}
	all->full++;
	return -EBUSY;
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
 * Makes the kernel side fill the table that the claims name. Requests by pid first, like
 * process_mappings.c. Returns 0; the record stays unchanged if the process was not found.
 */
static int read_ranges(const struct unwind_tables *all, struct ranges_record *record)
{
	int r = iterator_read(all->pins->ranges_pid_path, take_record, record);

	if (r < 0 || record->table_generation)
		return r;
	return iterator_read(all->pins->ranges_path, take_record, record);
}

/*
 * Makes the kernel side write the confirmed ranges of the plan into table `number`. Returns 0 with
 * its record; -ESRCH if the process has ended or has another image now: then addresses of the new
 * image would be looked up in the mappings of the old one.
 */
static int fill_table(const struct unwind_tables *all, const struct process *p, uint32_t number,
		      struct ranges_record *ret_record)
{
	struct unwind_claims *claims = all->pins->unwind_claims;
	int r;

	for (int i = 0; i < FILL_TRIES; i++) {
		struct ranges_record record = { 0 };

		claims->start_ns = p->start_ns;
		claims->table = number;
		unwind_plan_claim(p->unwind.plan, claims);
		unwind_plan_claim_runtime(p->unwind.plan, all->files, &claims->runtime);
		__atomic_store_n(&claims->tgid, p->tgid, __ATOMIC_RELEASE);
		r = read_ranges(all, &record);
		__atomic_store_n(&claims->tgid, 0, __ATOMIC_RELEASE);
		if (r < 0)
			return r;
		if (record.table_generation == 0 || record.table != number ||
		    record.count != claims->count || record.image != p->maps.image)
			return -ESRCH;
		*ret_record = record;
		if (!record.missed)
			break;
	}
	return 0;
}

int unwind_tables_publish(struct unwind_tables *all, struct process *p, uint32_t number)
{
	_cleanup_(unwind_window_close) struct unwind_window window = { 0 };
	struct walk_table *t = &all->items[number];
	struct unwind_state *s = &p->unwind;
	struct ranges_record record;
	struct unwind_process *to;
	uint32_t old = s->table;
	int r;

	r = fill_table(all, p, number, &record);
	if (r < 0)
		return r;
	to = open_window(all, number, &window);
	if (!to || mappings_copy(&p->maps, &t->maps) < 0)
		return -ENOMEM;

	/*
	 * The kernel side walks by the table when it is complete and the process's entry names it.
	 */
	unwind_plan_write(s->plan, to->mappings);
	to->quiet_ns = 0;
	__atomic_store_n(&to->published, record.table_generation, __ATOMIC_RELEASE);

	/* Writes the account of the table. */
	t->state = WALK_TABLE_LIVE;
	t->process = p;
	t->holder = shares_of_cgroup(all->shares, all->cgroups, p->cgroup_id, p->tgid);
	shares_add(t->holder, SHARE_TABLES, 1);
	t->table_generation = record.table_generation;
	t->held = unwind_plan_take(s->plan, &t->held_count);
	t->cut = unwind_plan_cut(s->plan);
	t->rows = unwind_plan_how(s->plan) != UNWIND_HOW_FP;
	all->live++;
	all->published++;
	all->cut += t->cut + record.cut;
	all->unconfirmed += record.missed;

	/* Writes the table's members in the process's state. */
	s->cut = t->cut;
	s->unconfirmed = record.missed;
	s->runtime = record.runtime;
	s->table = number + 1;
	s->image = p->maps.image;
	s->shape = unwind_plan_shape(s->plan);
	s->how = unwind_plan_how(s->plan);
	s->published_ns = s->used_ns = clock_mono_ns();

	/* After this call the kernel side begins no walk by the old table. */
	process_targets_set_unwind(all->targets, p);
	if (old)
		retire_table(all, old - 1);
	return 0;
}

void unwind_tables_withdraw(struct unwind_tables *all, struct process *p)
{
	unwind_tables_leave(all, p);
	p->unwind.shape = 0;
	p->unwind.cut = 0;
	p->unwind.how = UNWIND_HOW_UNKNOWN;
	process_targets_set_unwind(all->targets, p);
}

void unwind_tables_leave(struct unwind_tables *all, struct process *p)
{
	if (p->unwind.table)
		retire_table(all, p->unwind.table - 1);
	p->unwind.table = 0;
}

void unwind_tables_notify_less(struct unwind_tables *all, const struct process *p)
{
	_cleanup_(unwind_window_close) struct unwind_window window = { 0 };
	struct unwind_process *to = open_window(all, p->unwind.table - 1, &window);

	if (to)
		to->quiet_ns = MIN(MAX(2 * to->quiet_ns, (uint64_t)QUIET_FIRST_NS),
				   (uint64_t)QUIET_MAX_NS);
}

const struct walk_table *unwind_tables_find(const struct unwind_tables *all,
					    uint32_t table_generation)
{
	for (uint32_t i = 0; i < all->count; i++)
		if ((uint32_t)all->items[i].table_generation == table_generation)
			return &all->items[i];
	return NULL;
}
