/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs had the kernel do is their time as well. The functions by what was sampled in them
 * alone hide a program that sits in one system call behind fifty functions of the kernel.
 */
#include "ctl/render/text_report_programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"

#define PROGRAMS_TOP 5

struct sum {
	uint64_t ns[TREE_COLUMNS];
	uint32_t label, module;
};

struct sums {
	struct pool_budget *budget;
	struct sum *sums; /* by label */
	uint32_t space;
	uint64_t total[TREE_COLUMNS];
	bool kernel; /* some function of the kernel stood on one of a program */
};

static void sums_done(struct sums *s)
{
	free(s->sums);
}

/* The innermost frame of a program; of the kernel where there is no other. n is not 0. */
static uint32_t find_innermost(const struct store *store, const uint32_t *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (store_frame_get(store, frames[i])->kind != STORE_KERNEL)
			return i;
	return 0;
}

static int add_stack(struct view *view, struct sums *sums, const struct store_key *key, uint64_t ns)
{
	const struct store *store = &view->input->store;
	uint32_t n, at, label;
	const uint32_t *frames = store_frames(store, key->stack, &n);
	int column = view_column(view, key, VIEW_PHASES), r;

	if (!n || column < 0)
		return 0;
	at = find_innermost(store, frames, n);
	sums->kernel |= at > 0;
	r = labels_frame(&view->labels, frames[at], &label);
	if (r == 0)
		r = pool_grow(sums->budget, (void **)&sums->sums, &sums->space, label + 1,
			      sizeof(*sums->sums));
	if (r < 0 || !sums->sums)
		return r;
	sums->sums[label].label = label;
	sums->sums[label].module = store_frame_get(store, frames[at])->module;
	sums->sums[label].ns[column] = store_sum(sums->sums[label].ns[column], ns);
	sums->total[column] = store_sum(sums->total[column], ns);
	return 0;
}

static int compare_sums(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	for (int p = TREE_COLUMNS - 1; p >= 0; p--)
		if (x->ns[p] != y->ns[p])
			return x->ns[p] < y->ns[p] ? 1 : -1;
	return (x->label > y->label) - (x->label < y->label);
}

static void add_share(struct text_table *table, uint64_t part, uint64_t whole)
{
	char text[32] = "-";

	if (whole)
		snprintf(text, sizeof(text), "%5.1f %%", 100 * (double)part / (double)whole);
	text_table_add(table, strdup(text));
}

static void add_row(struct text_table *table, struct view *view, const struct sums *sums,
		    const struct sum *sum)
{
	_cleanup_free_ char *path = NULL;
	size_t bytes;

	for (int p = TREE_COLUMNS - 1; p >= 0; p--)
		add_share(table, sum->ns[p], sums->total[p]);
	text_table_add(table, strdup(labels_get(&view->labels, sum->label)));
	if (sum->module != STORE_NONE) {
		const char *text = pool_get(&view->input->store.texts, sum->module, &bytes);

		path = text_tame(text, bytes);
	}
	text_table_add(table, path ? strdup(labels_base(path)) : NULL);
}

static int print_sums(struct view *view, struct sums *sums, FILE *out)
{
	const char *const heads[] = { "DURING", view->earlier == STORE_ONSET ? "ONSET" : "BEFORE",
				      "FUNCTION", "MODULE" };
	_cleanup_(text_table_done) struct text_table table;

	text_table_init(&table, 4);
	for (size_t i = 0; i < 4; i++)
		text_table_add(&table, strdup(heads[i]));
	qsort(sums->sums, sums->space, sizeof(*sums->sums), compare_sums);
	for (uint32_t i = 0; i < sums->space && i < PROGRAMS_TOP; i++)
		if (sums->sums[i].ns[0] || sums->sums[i].ns[1])
			add_row(&table, view, sums, &sums->sums[i]);
	fputs("\nfunctions of programs, with what the kernel did for them\n", out);
	return text_table_print(&table, 2, out);
}

int text_report_programs(struct view *view, uint32_t session, FILE *out)
{
	const struct store *store = &view->input->store;
	_cleanup_(sums_done) struct sums sums = { .budget = &view->input->store.budget };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->keys.count; i++)
		if (store_key_get(store, i)->session == session)
			r = add_stack(view, &sums, store_key_get(store, i),
				      store->values[i].weight_ns);
	return r < 0 || !sums.kernel ? r : print_sums(view, &sums, out);
}
