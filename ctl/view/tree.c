/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/view/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define NEAR 4 /* children searched one by one */

struct edge {
	uint32_t parent;
	struct tree_step step;
};

int tree_init(struct tree *t, struct pool_budget *budget)
{
	*t = (struct tree){ 0 };
	pool_init(&t->paths, budget);
	t->count = 1;
	return pool_grow(budget, (void **)&t->nodes, &t->space, 1, sizeof(*t->nodes));
}

void tree_done(struct tree *t)
{
	pool_done(&t->paths);
	free(t->nodes);
	t->nodes = NULL;
}

/* Searches the first children, where the child mostly is: the table costs more. 0: not found. */
static uint32_t find_near_child(const struct tree *t, uint32_t parent, struct tree_step step)
{
	uint32_t node = t->nodes[parent].child;

	for (int i = 0; node && i < NEAR; i++, node = t->nodes[node].sibling)
		if (t->nodes[node].step.label == step.label &&
		    t->nodes[node].step.kind == step.kind)
			return node;
	return 0;
}

/* Finds or makes the child of `parent` by that step. Edge i leads to node i + 1. */
static int find_or_make_child(struct tree *t, uint32_t parent, struct tree_step step,
			      uint32_t *ret_node)
{
	struct edge edge = { parent, step };
	uint32_t number;
	int r;

	*ret_node = find_near_child(t, parent, step);
	if (*ret_node)
		return 0;
	r = pool_put(&t->paths, &edge, sizeof(edge), &number);
	if (r < 0)
		return r;
	*ret_node = number + 1;
	if (number + 1 < t->count)
		return 0;
	r = pool_grow(t->paths.budget, (void **)&t->nodes, &t->space, number + 2,
		      sizeof(*t->nodes));
	if (r < 0)
		return r;
	t->count = number + 2;
	t->nodes[number + 1] = (struct tree_node){
		.step = step,
		.parent = parent,
		.sibling = t->nodes[parent].child,
	};
	t->nodes[parent].child = number + 1;
	return 0;
}

/* Records that the node has threads in the state. */
static void mix_state(struct tree_node *node, uint32_t state)
{
	if (!node->state)
		node->state = state + 1;
	else if (node->state != state + 1)
		node->state = TREE_MIXED;
}

int tree_add(struct tree *t, const struct tree_step *path, uint32_t n,
	     const struct tree_value *value)
{
	uint64_t *self;
	uint32_t node = TREE_ROOT;

	for (uint32_t i = 0;; i++) {
		uint64_t *total = &t->nodes[node].total[value->column];
		int r;

		*total = store_sum(*total, value->value);
		mix_state(&t->nodes[node], value->state);
		if (i == n)
			break;
		r = find_or_make_child(t, node, path[i], &node);
		if (r < 0)
			return r;
	}
	self = &t->nodes[node].self[value->column];
	*self = store_sum(*self, value->value);
	return 0;
}

struct sorting {
	const struct tree *tree;
	const struct labels *labels;
};

static int compare_labels(const void *a, const void *b, void *context)
{
	const struct sorting *s = context;
	struct tree_step x = s->tree->nodes[*(const uint32_t *)a].step;
	struct tree_step y = s->tree->nodes[*(const uint32_t *)b].step;
	int r = x.label == y.label
			? 0
			: strcmp(labels_get(s->labels, x.label), labels_get(s->labels, y.label));

	return r ? r : (x.kind > y.kind) - (x.kind < y.kind);
}

int tree_sort(struct tree *t, const struct labels *labels)
{
	_cleanup_free_ uint32_t *children = calloc(t->count, sizeof(*children));
	struct sorting sorting = { t, labels };

	if (!children)
		return -ENOMEM;
	for (uint32_t node = 0; node < t->count; node++) {
		uint32_t n = 0, *link = &t->nodes[node].child;

		for (uint32_t c = *link; c; c = t->nodes[c].sibling)
			children[n++] = c;
		qsort_r(children, n, sizeof(*children), compare_labels, &sorting);
		for (uint32_t i = 0; i < n; i++) {
			*link = children[i];
			link = &t->nodes[children[i]].sibling;
		}
		*link = 0;
	}
	return 0;
}

uint32_t tree_next(const struct tree *t, uint32_t node, bool down, uint32_t *depth)
{
	if (down && t->nodes[node].child) {
		(*depth)++;
		return t->nodes[node].child;
	}
	while (node != TREE_ROOT && !t->nodes[node].sibling) {
		node = t->nodes[node].parent;
		(*depth)--;
	}
	return node == TREE_ROOT ? 0 : t->nodes[node].sibling;
}
