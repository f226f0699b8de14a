/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/text.h"
#include "ctl/render/flamegraph.h"
#include "ctl/render/folded.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define PER_SECOND_NS	   1e-3 /* ns to us, per second */
#define PER_SECOND_SAMPLES 1e3	/* thousandths of samples, per second */
#define PER_MILLION	   1e6

struct diff {
	struct view *view;
	struct tree tree;
	enum view_columns columns;
	char *names[TREE_COLUMNS]; /* names of the columns, tame */
	double seconds[TREE_COLUMNS];
	double scale[TREE_COLUMNS]; /* factor to the printed unit */
	bool shares; /* prints shares of the column's total: some length is not known */
};

static void diff_done(struct diff *d)
{
	tree_done(&d->tree);
	for (unsigned int c = 0; c < TREE_COLUMNS; c++)
		free(d->names[c]);
}

static int name_columns(struct diff *d, const struct input *input)
{
	for (unsigned int c = 0; c < TREE_COLUMNS; c++) {
		const char *name = input->n == 2 ? input->files[c].name : view_phase(d->view, c);

		d->names[c] = text_tame(name, strlen(name));
		if (!d->names[c])
			return -ENOMEM;
	}
	return 0;
}

/* Scales by the length of each side; if a session has no length, by shares of the total. */
static void find_scale(struct diff *d)
{
	double unit = d->view->unit == VIEW_NS ? PER_SECOND_NS : PER_SECOND_SAMPLES;
	const uint64_t *totals = d->tree.nodes[TREE_ROOT].total;

	for (unsigned int c = 0; c < TREE_COLUMNS; c++)
		d->seconds[c] = view_seconds(d->view, d->columns, c);
	d->shares = d->seconds[0] <= 0 || d->seconds[1] <= 0;
	for (unsigned int c = 0; c < TREE_COLUMNS; c++)
		d->scale[c] = !d->shares  ? unit / d->seconds[c]
			      : totals[c] ? PER_MILLION / (double)totals[c]
					  : 0;
}

static void say_unit(const struct options *options, const struct diff *d)
{
	const char *unit = d->view->unit == VIEW_NS ? "microseconds per second"
						    : "thousandths of samples per second";

	if (d->shares)
		fprintf(options->err,
			"trocar: how long a session lasted is not known: in millionths of each "
			"side: %s, %s\n",
			d->names[0], d->names[1]);
	else
		fprintf(options->err, "trocar: in %s: %s (%.1f s), %s (%.1f s)\n", unit,
			d->names[0], d->seconds[0], d->names[1], d->seconds[1]);
}

static uint64_t scale_self(const struct diff *d, const struct tree_node *node, unsigned int column)
{
	return (uint64_t)((double)node->self[column] * d->scale[column] + 0.5);
}

static void print_folded(const struct options *options, const struct diff *d)
{
	const struct tree *tree = &d->tree;
	uint32_t depth = 0;

	for (uint32_t i = tree_next(tree, TREE_ROOT, true, &depth); i;
	     i = tree_next(tree, i, true, &depth)) {
		const struct tree_node *node = &tree->nodes[i];

		if (!node->self[0] && !node->self[1])
			continue;
		folded_path(tree, &d->view->labels, i, depth, options->annotate, options->out);
		fprintf(options->out, " %" PRIu64 " %" PRIu64 "\n", scale_self(d, node, 0),
			scale_self(d, node, 1));
	}
}

/* Makes panels as wide as their length: equal widths are equal times per second in both. */
static void set_panels(const struct diff *d, char *const heads[TREE_COLUMNS], struct svg *svg)
{
	const uint64_t *totals = d->tree.nodes[TREE_ROOT].total;
	double most = 0;

	for (unsigned int c = 0; c < TREE_COLUMNS; c++)
		most = MAX(most, (double)totals[c] * d->scale[c]);
	for (unsigned int c = 0; c < TREE_COLUMNS; c++) {
		double total = d->scale[c] > 0 ? most / d->scale[c] : 0;

		svg->columns[c] = d->names[c];
		svg->scale[c] = d->scale[c];
		svg->panels[c] = (struct svg_panel){
			.head = heads[c],
			.column = c,
			.total = total < 0x1p63 ? (uint64_t)(total + 0.5) : UINT64_MAX / 2,
		};
	}
}

static int print_svg(const struct options *options, const struct diff *d)
{
	const char *wish = options->title;
	_cleanup_free_ char *title = wish ? text_tame(wish, strlen(wish)) : view_title(d->view);
	_cleanup_free_ char *subtitle = flamegraph_subtitle(d->view, d->columns);
	_cleanup_free_ char *a = flamegraph_head(d->view, &d->tree, d->columns, 0, d->names[0]);
	_cleanup_free_ char *b = flamegraph_head(d->view, &d->tree, d->columns, 1, d->names[1]);
	struct svg svg = {
		.tree = &d->tree,
		.labels = &d->view->labels,
		.unit = d->view->unit,
		.title = title,
		.subtitle = subtitle,
		.n_panels = TREE_COLUMNS,
		.difference = true,
		.inverted = options->inverted,
	};

	if (!title || !subtitle || !a || !b)
		return -ENOMEM;
	set_panels(d, (char *const[]){ a, b }, &svg);
	svg_write(&svg, options->out);
	return 0;
}

static int print_diff(const struct options *options, struct view *view)
{
	_cleanup_(diff_done) struct diff d = {
		.view = view,
		.columns = view->input->n == 2 ? VIEW_FILES : VIEW_PHASES,
	};
	int r = tree_init(&d.tree, &view->input->store.budget);

	view->leaf_states = view->wall;
	view->labels.joined = !options->svg; /* as in folded stacks */
	if (r == 0)
		r = name_columns(&d, view->input);
	if (r == 0)
		r = view_fill(view, d.columns, &d.tree);
	if (r == 0)
		r = tree_sort(&d.tree, &view->labels);
	if (r < 0)
		return r;
	find_scale(&d);
	if (options->svg)
		return print_svg(options, &d);
	say_unit(options, &d);
	print_folded(options, &d);
	return 0;
}

int diff_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input = { 0 };
	int r;

	if (options->svg && isatty(fileno(options->out))) {
		fputs("trocar: diff --svg writes a picture for a browser: send it to a file\n",
		      options->err);
		return COMMAND_USAGE;
	}
	r = input_read_stacks(options, arguments, true, &input);
	return r ? r : view_print(options, &input, VIEW_NS, print_diff);
}
