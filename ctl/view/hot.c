/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/view/hot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"

struct walk {
	struct hot_function *of_label; /* by label */
	uint32_t *above;	       /* by label: how often it stands in the path now */
};

static void enter_node(struct walk *w, const struct tree_node *node)
{
	struct hot_function *f = &w->of_label[node->step.label];
	bool first = !w->above[node->step.label]++;

	if (node->step.kind >= TREE_BY)
		return;
	f->label = node->step.label;
	f->kind = node->step.kind;
	for (unsigned int c = 0; c < TREE_COLUMNS; c++) {
		f->self[c] = store_sum(f->self[c], node->self[c]);
		if (first)
			f->total[c] = store_sum(f->total[c], node->total[c]);
	}
}

static void leave_node(struct walk *w, const struct tree_node *node)
{
	w->above[node->step.label]--;
}

/* Down to the first child, else up to where a sibling is; what is passed is left. */
static void walk_all(struct walk *w, const struct tree *tree)
{
	uint32_t node = tree->nodes[TREE_ROOT].child;

	while (node) {
		enter_node(w, &tree->nodes[node]);
		if (tree->nodes[node].child) {
			node = tree->nodes[node].child;
			continue;
		}
		leave_node(w, &tree->nodes[node]);
		while (!tree->nodes[node].sibling) {
			node = tree->nodes[node].parent;
			if (node == TREE_ROOT)
				return;
			leave_node(w, &tree->nodes[node]);
		}
		node = tree->nodes[node].sibling;
	}
}

static int compare_weights(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

static int compare_functions(const void *a, const void *b, void *context)
{
	const struct hot_function *x = a, *y = b;
	unsigned int by = *(const unsigned int *)context;
	int r = compare_weights(x->self[by], y->self[by]);

	if (!r)
		r = compare_weights(x->self[!by], y->self[!by]);
	if (!r)
		r = compare_weights(x->total[by], y->total[by]);
	if (!r)
		r = compare_weights(x->total[!by], y->total[!by]);
	return r ? r : (x->label > y->label) - (x->label < y->label);
}

int hot_init(struct hot *hot, const struct tree *tree, const struct labels *labels, unsigned int by)
{
	_cleanup_free_ uint32_t *above = NULL;
	struct walk w;
	uint32_t n = 0;

	*hot = (struct hot){ 0 };
	above = calloc(labels->texts.count + 1, sizeof(*above));
	hot->functions = calloc(labels->texts.count + 1, sizeof(*hot->functions));
	if (!above || !hot->functions)
		return -ENOMEM;
	w = (struct walk){ hot->functions, above };
	walk_all(&w, tree);
	for (uint32_t i = 0; i < labels->texts.count; i++)
		if (hot->functions[i].total[0] || hot->functions[i].total[1])
			hot->functions[n++] = hot->functions[i];
	hot->count = n;
	qsort_r(hot->functions, n, sizeof(*hot->functions), compare_functions, &by);
	return 0;
}

void hot_done(struct hot *hot)
{
	free(hot->functions);
	hot->functions = NULL;
}
