/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/view/hot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"

struct walk {
	const struct hot *hot;
	const uint32_t *of_node; /* function of each node */
	uint32_t *above;	 /* by function: how often it is in the current path */
};

uint64_t hot_own(const struct tree *tree, uint32_t number, unsigned int column)
{
	const struct tree_node *node = &tree->nodes[number];
	uint64_t own = node->self[column];

	for (uint32_t c = node->child; c && node->step.kind != STORE_KERNEL;
	     c = tree->nodes[c].sibling)
		if (tree->nodes[c].step.kind == STORE_KERNEL)
			own = store_sum(own, tree->nodes[c].total[column]);
	return own;
}

static void enter_node(struct walk *w, const struct tree *tree, uint32_t number)
{
	const struct tree_node *node = &tree->nodes[number];
	struct hot_function *f = &w->hot->functions[w->of_node[number]];
	bool first = !w->above[w->of_node[number]]++;

	for (unsigned int c = 0; c < TREE_COLUMNS; c++) {
		f->self[c] = store_sum(f->self[c], node->self[c]);
		f->own[c] = store_sum(f->own[c], hot_own(tree, number, c));
		if (first)
			f->total[c] = store_sum(f->total[c], node->total[c]);
	}
}

static void leave_node(struct walk *w, uint32_t number)
{
	w->above[w->of_node[number]]--;
}

/*
 * Walks down to the first child, else up to the next sibling; leaves the nodes that it passes on
 * the way up.
 */
static void walk_all(struct walk *w, const struct tree *tree)
{
	uint32_t node = tree->nodes[TREE_ROOT].child;

	while (node) {
		enter_node(w, tree, node);
		if (tree->nodes[node].child) {
			node = tree->nodes[node].child;
			continue;
		}
		leave_node(w, node);
		while (!tree->nodes[node].sibling) {
			node = tree->nodes[node].parent;
			if (node == TREE_ROOT)
				return;
			leave_node(w, node);
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
	int r = compare_weights(x->own[by], y->own[by]);

	if (!r)
		r = compare_weights(x->own[!by], y->own[!by]);
	if (!r)
		r = compare_weights(x->total[by], y->total[by]);
	if (!r)
		r = compare_weights(x->total[!by], y->total[!by]);
	return r ? r : (x->label > y->label) - (x->label < y->label);
}

/*
 * The identity of a function: its label, and whether it is in the kernel. Labels that are not
 * frames are a last kind.
 */
struct identity {
	uint32_t label, kind;
};

/*
 * Assigns a function to each node. The functions are those of this tree, not all that were ever
 * seen.
 */
static int find_functions(struct hot *hot, const struct tree *tree, struct pool *identities,
			  uint32_t *of_node)
{
	for (uint32_t i = 1; i < tree->count; i++) {
		const struct tree_step *step = &tree->nodes[i].step;
		struct identity identity = { step->label, step->kind };
		int r;

		if (step->kind >= TREE_BY)
			identity.label = 0;
		r = pool_put(identities, &identity, sizeof(identity), &of_node[i]);
		if (r < 0)
			return r;
		hot->functions[of_node[i]] =
			(struct hot_function){ .label = step->label, .kind = step->kind };
	}
	return 0;
}

/* Drops labels that are not a function of a program or of the kernel. */
static uint32_t keep_functions(struct hot_function *functions, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		if (functions[i].kind < TREE_BY)
			functions[n++] = functions[i];
	return n;
}

int hot_init(struct hot *hot, const struct tree *tree, unsigned int by)
{
	_cleanup_free_ uint32_t *above = calloc(tree->count, sizeof(*above));
	_cleanup_free_ uint32_t *of_node = calloc(tree->count, sizeof(*of_node));
	_cleanup_(pool_done) struct pool identities;
	struct walk walk = { hot, of_node, above };
	int r;

	*hot = (struct hot){ .functions = calloc(tree->count, sizeof(*hot->functions)) };
	pool_init(&identities, tree->paths.budget);
	if (!above || !of_node || !hot->functions)
		return -ENOMEM;
	r = find_functions(hot, tree, &identities, of_node);
	if (r < 0)
		return r;
	walk_all(&walk, tree);
	hot->count = keep_functions(hot->functions, identities.count);
	qsort_r(hot->functions, hot->count, sizeof(*hot->functions), compare_functions, &by);
	return 0;
}

void hot_done(struct hot *hot)
{
	free(hot->functions);
	hot->functions = NULL;
}
