/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/text.h"
#include "ctl/render/text_report_calls.h"
#include "ctl/render/text_report_disks.h"
#include "ctl/render/text_report_facts.h"
#include "ctl/render/text_report_findings.h"
#include "ctl/render/text_report_lines.h"
#include "ctl/render/text_report_locks.h"
#include "ctl/render/text_report_neighbours.h"
#include "ctl/render/text_report_pools.h"
#include "ctl/render/text_report_programs.h"
#include "ctl/render/text_report_queue.h"
#include "ctl/render/text_report_stalls.h"
#include "ctl/render/text_report_waits.h"
#include "ctl/view/hot.h"
#include "ctl/view/view.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define TOP_TASKS 20

/* Shares of fewer samples are rough, as in session.end. */
#define FEW_SAMPLES 30

/* Columns of VIEW_PHASES. */
enum { EARLIER, DURING };

struct text_report {
	struct input *input;
	struct view view;
	uint64_t top;
	uint64_t samples[TREE_COLUMNS]; /* of the session, by column of VIEW_PHASES */
	FILE *out;
};

/* The column of a key of the session; negative: it is not shown. */
static int find_column(const struct text_report *r, uint32_t number, uint32_t session)
{
	const struct store_key *key = store_key_get(&r->input->store, number);

	return key->session == session ? view_column(&r->view, key, VIEW_PHASES) : -1;
}

static char *format_percent(uint64_t part, uint64_t whole)
{
	char text[32];

	if (!whole)
		return strdup("-");
	snprintf(text, sizeof(text), "%5.1f %%", 100 * (double)part / (double)whole);
	return strdup(text);
}

static char *format_duration(uint64_t ns)
{
	char text[TEXT_UNIT_BYTES];

	return strdup(text_duration_us(ns / NSEC_PER_USEC, text));
}

/* The module of each label: of the first frame that has it. */
static int find_modules(struct text_report *r, uint32_t **ret_modules)
{
	struct labels *labels = &r->view.labels;
	const struct store *s = &r->input->store;
	uint32_t *modules;

	modules = malloc((labels->texts.count + 1) * sizeof(*modules));
	if (!modules)
		return -ENOMEM;
	memset(modules, 0xff, labels->texts.count * sizeof(*modules)); /* STORE_NONE */
	for (uint32_t i = s->frames.count; i-- > 0;)
		if (i < labels->space && labels->of_frame[i])
			modules[labels->of_frame[i] - 1] = store_frame_get(s, i)->module;
	*ret_modules = modules;
	return 0;
}

static void add_function(const struct text_report *r, struct text_table *table,
			 const struct tree_node *root, const struct hot_function *f,
			 uint32_t module)
{
	_cleanup_free_ char *path = text_report_lines_text(&r->input->store, module);

	text_table_add(table, format_percent(f->self[DURING], root->total[DURING]));
	text_table_add(table, format_percent(f->total[DURING], root->total[DURING]));
	text_table_add(table, format_percent(f->self[EARLIER], root->total[EARLIER]));
	text_table_add(table, format_percent(f->total[EARLIER], root->total[EARLIER]));
	text_table_add(table, strdup(labels_get(&r->view.labels, f->label)));
	text_table_add(table, path ? strdup(labels_base(path)) : NULL);
}

static int print_functions(struct text_report *r, const struct tree *tree)
{
	bool onset = r->view.earlier == STORE_ONSET;
	const char *const heads[] = { "SELF",
				      "TOTAL",
				      onset ? "SELF ONSET" : "SELF BEFORE",
				      onset ? "TOTAL ONSET" : "TOTAL BEFORE",
				      "FUNCTION",
				      "MODULE" };
	_cleanup_(text_table_done) struct text_table table;
	_cleanup_(hot_done) struct hot hot = { 0 };
	_cleanup_free_ uint32_t *modules = NULL;
	int e;

	text_table_init(&table, ARRAY_SIZE(heads));
	e = hot_init(&hot, tree, &r->view.labels, DURING);
	if (e == 0)
		e = find_modules(r, &modules);
	if (e < 0)
		return e;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	for (uint32_t i = 0; i < hot.count && i < r->top; i++)
		add_function(r, &table, &tree->nodes[TREE_ROOT], &hot.functions[i],
			     modules[hot.functions[i].label]);
	fprintf(r->out, "\nfunctions (%" PRIu64 " samples during, %" PRIu64 " %s)\n",
		r->samples[DURING], r->samples[EARLIER], view_phase(&r->view, EARLIER));
	if (r->samples[DURING] < FEW_SAMPLES)
		fprintf(r->out, "  fewer than %d samples during: the percentages are rough\n",
			FEW_SAMPLES);
	e = text_table_print(&table, 2, r->out);
	if (hot.count > r->top)
		fprintf(r->out, "  and %" PRIu64 " more (--top N)\n", hot.count - r->top);
	return e;
}

/* A process, or the threads of one name in it. */
struct task {
	uint64_t pid;
	uint32_t name, zero; /* a text */
};

struct tasks {
	struct pool pool;
	struct task_sum {
		uint64_t samples, ns[TREE_COLUMNS];
		uint32_t task;
	} * sums;
	uint32_t space;
};

static void tasks_done(struct tasks *t)
{
	pool_done(&t->pool);
	free(t->sums);
}

static int add_task(struct tasks *t, const struct store_key *key, const struct store_value *value,
		    int column, bool threads)
{
	struct task task = { .pid = key->pid, .name = threads ? key->comm : key->exe };
	struct task_sum *sum;
	uint32_t number;
	int e;

	e = pool_put(&t->pool, &task, sizeof(task), &number);
	if (e == 0)
		e = pool_grow(t->pool.budget, (void **)&t->sums, &t->space, number + 1,
			      sizeof(*t->sums));
	if (e < 0)
		return e;
	sum = &t->sums[number];
	sum->task = number;
	sum->samples = store_sum(sum->samples, value->count);
	sum->ns[column] = store_sum(sum->ns[column], value->weight_ns);
	return 0;
}

static int compare_tasks(const void *a, const void *b)
{
	const struct task_sum *x = a, *y = b;

	for (int c = TREE_COLUMNS - 1; c >= 0; c--)
		if (x->ns[c] != y->ns[c])
			return x->ns[c] < y->ns[c] ? 1 : -1;
	return x->task < y->task ? -1 : 1;
}

static void add_row(const struct text_report *r, const struct tasks *t, const struct task_sum *sum,
		    const struct tree_node *root, struct text_table *table)
{
	size_t bytes;
	const struct task *task = pool_get(&t->pool, sum->task, &bytes);
	_cleanup_free_ char *name = text_report_lines_text(&r->input->store, task->name);
	char number[32];

	text_table_add(table, format_duration(sum->ns[DURING]));
	text_table_add(table, format_percent(sum->ns[DURING], root->total[DURING]));
	text_table_add(table, format_duration(sum->ns[EARLIER]));
	snprintf(number, sizeof(number), "%" PRIu64, sum->samples);
	text_table_add(table, strdup(number));
	snprintf(number, sizeof(number), "%" PRIu64, task->pid);
	text_table_add(table, strdup(number));
	text_table_add(table, name ? strdup(name) : NULL);
}

static int print_tasks(struct text_report *r, const struct tree *tree, uint32_t session,
		       bool threads)
{
	const char *const heads[] = {
		"DURING",  "SHARE", r->view.earlier == STORE_ONSET ? "ONSET" : "BEFORE",
		"SAMPLES", "PID",   threads ? "THREADS" : "PROGRAM"
	};
	_cleanup_(text_table_done) struct text_table table;
	_cleanup_(tasks_done) struct tasks tasks = { 0 };
	const struct store *s = &r->input->store;
	int e = 0;

	text_table_init(&table, ARRAY_SIZE(heads));
	pool_init(&tasks.pool, &r->input->store.budget);
	for (uint32_t i = 0; e == 0 && i < s->keys.count; i++)
		if (find_column(r, i, session) >= 0)
			e = add_task(&tasks, store_key_get(s, i), &s->values[i],
				     find_column(r, i, session), threads);
	if (e < 0)
		return e;
	qsort(tasks.sums, tasks.pool.count, sizeof(*tasks.sums), compare_tasks);
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	for (uint32_t i = 0; i < tasks.pool.count && i < TOP_TASKS; i++)
		add_row(r, &tasks, &tasks.sums[i], &tree->nodes[TREE_ROOT], &table);
	fprintf(r->out, "\n%s\n", threads ? "threads, by name" : "processes");
	e = text_table_print(&table, 2, r->out);
	if (tasks.pool.count > TOP_TASKS)
		fprintf(r->out, "  and %u more\n", tasks.pool.count - TOP_TASKS);
	return e;
}

static void count_samples(struct text_report *r, uint32_t session)
{
	const struct store *s = &r->input->store;

	memset(r->samples, 0, sizeof(r->samples));
	for (uint32_t i = 0; i < s->keys.count; i++) {
		int column = find_column(r, i, session);

		if (column >= 0)
			r->samples[column] = store_sum(r->samples[column], s->values[i].count);
	}
}

static int print_stacks(struct text_report *r, uint32_t session)
{
	_cleanup_(tree_done) struct tree tree = { 0 };
	int e = tree_init(&tree, &r->input->store.budget);

	view_choose(&r->view, session);
	count_samples(r, session);
	if (e == 0)
		e = view_fill(&r->view, VIEW_PHASES, &tree);
	if (e < 0)
		return e;
	if (!tree.nodes[TREE_ROOT].child) {
		fputs("\nno stack of it is selected\n", r->out);
		return 0;
	}
	/* Rows of nothing beside what ran when all was well would hide that nothing ran. */
	if (!r->samples[DURING] && !r->input->select.phase) {
		fprintf(r->out, "\nno sample during, %" PRIu64 " %s (--phase %s shows them)\n",
			r->samples[EARLIER], view_phase(&r->view, EARLIER),
			view_phase(&r->view, EARLIER));
		return 0;
	}
	e = text_report_programs(&r->view, session, r->out);
	if (e == 0)
		e = print_functions(r, &tree);
	if (e == 0)
		e = print_tasks(r, &tree, session, false);
	return e < 0 ? e : print_tasks(r, &tree, session, true);
}

static void print_lengths(const struct text_report *r, const struct store_session *session)
{
	double before = (double)session->length_ms[STORE_BEFORE] / MSEC_PER_SEC;
	double onset = (double)session->length_ms[STORE_ONSET] / MSEC_PER_SEC;

	fprintf(r->out, "before: %.1f s, ", before);
	if (onset > 0)
		fprintf(r->out, "onset: %.1f s, ", onset);
	fprintf(r->out, "during: %.1f s\n",
		(double)session->length_ms[STORE_DURING] / MSEC_PER_SEC);
	if (onset > 0 && before <= 0)
		fputs("The pre-roll has no calm time: during is compared with the onset.\n",
		      r->out);
}

static int print_head(const struct text_report *r, const struct store_session *session)
{
	const struct store *s = &r->input->store;
	_cleanup_free_ char *id = text_report_lines_text(s, session->id),
			    *rule = text_report_lines_text(s, session->rule);
	_cleanup_free_ char *cgroup = text_report_lines_text(s, session->cgroup);
	_cleanup_free_ char *headline = text_report_lines_text(s, session->headline);
	char when[CLOCK_TEXT_BYTES];
	int e;

	if (!id || !rule || !cgroup || !headline)
		return -ENOMEM;
	clock_text(session->time_ns, when);
	fprintf(r->out, "%s\n",
		session->end == STORE_NONE
			? "This session has no end here: it still ran, or its lines were cut."
			: headline);
	e = text_report_lines_held(s, session, r->out);
	if (e < 0)
		return e;
	fprintf(r->out, "session %s, rule %s, %.19s UTC, %s\n", id, rule, when, cgroup);
	if (session->end != STORE_NONE)
		print_lengths(r, session);
	return 0;
}

static int print_session(struct text_report *r, uint32_t number)
{
	const struct store_session *session = &r->input->store.sessions[number];
	int e = print_head(r, session);

	if (e == 0)
		e = text_report_findings(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_waits(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_neighbours(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_pools(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_locks(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_disks(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_facts(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_queue(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_calls(&r->input->store, session, r->out);
	if (e == 0)
		e = text_report_lines_pressure(&r->input->store, session, r->out);
	if (e == 0)
		e = print_stacks(r, number);
	return e < 0 ? e : text_report_lines_account(&r->input->store, session, r->out);
}

static int print_all(struct text_report *r)
{
	const struct store *s = &r->input->store;
	unsigned int n = 0;
	int e = text_report_stalls(s, r->out);

	for (uint32_t i = 0; e == 0 && i < s->ids.count; i++) {
		if (!s->sessions[i].files)
			continue;
		if (n++)
			fputs("\n----\n\n", r->out);
		e = print_session(r, i);
	}
	return e;
}

int text_report_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input = { .fds = { -1, -1 } };
	struct text_report report = { .input = &input, .top = options->top, .out = options->out };
	int r;

	r = input_read(options, arguments, &input);
	if (r)
		return r;
	r = view_init(&report.view, options, &input, VIEW_NS);
	report.view.n_by = report.view.signals > 1 && !report.view.wall ? 1 : 0;
	if (r == 0)
		r = print_all(&report);
	view_done(&report.view);
	return r < 0 ? input_fail(options, &input, r) : input_status(&input);
}
