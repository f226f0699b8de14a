/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_tasks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_functions.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define EARLIER TEXT_REPORT_EARLIER
#define DURING	TEXT_REPORT_DURING

#define TASKS_TOP 20

/* The threads with one name in a process. */
struct task {
	uint64_t pid;
	uint32_t comm, exe; /* texts */
};

struct tasks {
	struct pool pool;
	struct task_sum {
		uint64_t samples, ns[TREE_COLUMNS];
		uint32_t task;
	} * sums;
	uint32_t space;
	uint64_t ns[TREE_COLUMNS]; /* of all its threads */
};

static void tasks_done(struct tasks *t)
{
	pool_done(&t->pool);
	free(t->sums);
}

static int add_task(struct tasks *t, const struct store_key *key, const struct store_value *value,
		    int column)
{
	struct task task = { .pid = key->pid, .comm = key->comm, .exe = key->exe };
	struct task_sum *sum;
	uint32_t number;
	int r;

	r = pool_put(&t->pool, &task, sizeof(task), &number);
	if (r == 0)
		r = pool_grow(t->pool.budget, (void **)&t->sums, &t->space, number + 1,
			      sizeof(*t->sums));
	if (r < 0)
		return r;
	sum = &t->sums[number];
	sum->task = number;
	sum->samples = store_sum(sum->samples, value->count);
	sum->ns[column] = store_sum(sum->ns[column], value->weight_ns);
	t->ns[column] = store_sum(t->ns[column], value->weight_ns);
	return 0;
}

static int add_tasks(struct tasks *t, const struct view *view)
{
	const struct store *s = &view->input->store;
	int r = 0;

	for (uint32_t i = store_first(s, view->session); r == 0 && i != STORE_NONE;
	     i = store_next(s, view->session, i)) {
		const struct store_key *key = store_key_get(s, i);
		int column = view_column(view, key, VIEW_PHASES);

		if (column >= 0)
			r = add_task(t, key, &s->values[i], column);
	}
	return r;
}

static int compare_tasks(const void *a, const void *b)
{
	const struct task_sum *x = a, *y = b;

	for (int c = TREE_COLUMNS - 1; c >= 0; c--)
		if (x->ns[c] != y->ns[c])
			return x->ns[c] < y->ns[c] ? 1 : -1;
	return x->task < y->task ? -1 : 1;
}

static void add_time(struct text_table *table, uint64_t ns)
{
	char text[TEXT_UNIT_BYTES];

	text_table_printf(table, "%s", text_duration_us(ns / NSEC_PER_USEC, text));
}

static void add_row(struct text_table *table, const struct store *store, const struct tasks *t,
		    const struct task_sum *sum)
{
	size_t bytes;
	const struct task *task = pool_get(&t->pool, sum->task, &bytes);

	add_time(table, sum->ns[DURING]);
	section_share(table, sum->ns[DURING], t->ns[DURING]);
	add_time(table, sum->ns[EARLIER]);
	text_table_printf(table, "%" PRIu64, sum->samples);
	text_table_printf(table, "%" PRIu64, task->pid);
	text_table_add(table, store_tame(store, task->comm));
	text_table_add(table, store_tame(store, task->exe));
}

int text_report_tasks(const struct view *view, FILE *out)
{
	const char *const heads[] = {
		"DURING",  "SHARE", view->earlier == STORE_ONSET ? "ONSET" : "BEFORE",
		"SAMPLES", "PID",   "THREADS",
		"PROGRAM"
	};
	_cleanup_(text_table_done) struct text_table table;
	_cleanup_(tasks_done) struct tasks tasks = { 0 };
	int r;

	text_table_init(&table, ARRAY_SIZE(heads));
	pool_init(&tasks.pool, &view->input->store.budget);
	r = add_tasks(&tasks, view);
	if (r < 0)
		return r;
	if (tasks.pool.count)
		qsort(tasks.sums, tasks.pool.count, sizeof(*tasks.sums), compare_tasks);
	text_table_words(&table, heads, ARRAY_SIZE(heads));
	for (uint32_t i = 0; i < tasks.pool.count && i < TASKS_TOP; i++)
		add_row(&table, &view->input->store, &tasks, &tasks.sums[i]);
	section_head(out, "threads", "by name and process");
	r = text_table_print(&table, 2, out);
	section_more(out, tasks.pool.count, TASKS_TOP);
	return r;
}
