/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/folded.h"

#include <errno.h>
#include <inttypes.h>

#include "ctl/cli/command_exit.h"
#include "shared/tools/cleanup.h"

/* Prints ':' instead of ';', which would begin the next frame, as other folding tools do. */
static void put_name(const char *name, FILE *out)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : *name, out);
}

static void put_step(const struct tree *tree, const struct labels *labels, uint32_t node,
		     bool annotate, FILE *out)
{
	struct tree_step step = tree->nodes[node].step;

	put_name(labels_get(labels, step.label), out);
	if (annotate && step.kind == STORE_KERNEL)
		fputs("_[k]", out);
	if (annotate && step.kind == STORE_JIT)
		fputs("_[j]", out);
}

void folded_path(const struct tree *tree, const struct labels *labels, uint32_t node,
		 uint32_t depth, bool annotate, FILE *out)
{
	uint32_t path[TREE_PATH_MAX];

	for (uint32_t i = depth; i-- > 0; node = tree->nodes[node].parent)
		path[i] = node;
	for (uint32_t i = 0; i < depth; i++) {
		if (i)
			fputc(';', out);
		put_step(tree, labels, path[i], annotate, out);
	}
}

void folded_print(const struct tree *tree, const struct labels *labels, bool annotate, FILE *out)
{
	uint32_t depth = 0;

	for (uint32_t node = tree_next(tree, TREE_ROOT, true, &depth); node;
	     node = tree_next(tree, node, true, &depth)) {
		if (!tree->nodes[node].self[0])
			continue;
		folded_path(tree, labels, node, depth, annotate, out);
		fprintf(out, " %" PRIu64 "\n", tree->nodes[node].self[0]);
	}
}

int folded_view(const struct options *options, struct view *view)
{
	_cleanup_(tree_done) struct tree tree = { 0 };
	int r = tree_init(&tree, &view->input->store.budget);

	view->labels.joined = true; /* the format has no field for a file */
	if (r == 0)
		r = view_fill(view, VIEW_ALL, &tree);
	if (r == 0)
		r = tree_sort(&tree, &view->labels);
	if (r == 0)
		folded_print(&tree, &view->labels, options->annotate, options->out);
	return r;
}

/*
 * Chooses the unit: numbers of samples that stand for different times cannot be added up, but their
 * times can.
 */
static void choose_unit(const struct options *options, struct view *view)
{
	if (options->count || view->unit == VIEW_NS || !view_rates_differ(view))
		return;
	view->unit = VIEW_NS;
	fputs("trocar: in nanoseconds, because not every sample stands for the same time "
	      "(--phase, --signal and --session select some; --count samples counts them)\n",
	      options->err);
}

static int print_folded(const struct options *options, struct view *view)
{
	view->leaf_states = view->wall;
	choose_unit(options, view);
	return folded_view(options, view);
}

int folded_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input = { 0 };
	int r = input_read_stacks(options, arguments, false, &input);

	return r ? r : view_print(options, &input, VIEW_COUNT, print_folded);
}
