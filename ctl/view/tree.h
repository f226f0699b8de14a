/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree.h: stacks laid over each other from the root: a node per path of labels, with the counts in
 * it and below, in two columns that are compared (before and during, or A and B).
 */
#ifndef TROCAR_CTL_VIEW_TREE_H
#define TROCAR_CTL_VIEW_TREE_H

#include "ctl/view/labels.h"

#define TREE_COLUMNS 2
#define TREE_ROOT    0
/* Labels below and in a stack: what --by puts there, and the frames. */
#define TREE_PATH_MAX (STORE_FRAMES_MAX + 16)

struct tree_step {
	uint32_t label; /* of labels */
	uint32_t kind;	/* enum store_kind, or TREE_BY */
};

#define TREE_BY	   STORE_KIND_COUNT_ /* no frame: what --by puts below a stack */
#define TREE_STATE (TREE_BY + 1)     /* no frame: what its threads did, above a stack */

#define TREE_MIXED UINT32_MAX /* threads of several states */

struct tree_node {
	struct tree_step step;
	uint32_t parent, child, sibling; /* nodes; 0: none */
	uint32_t state;			 /* enum store_state plus 1, or TREE_MIXED; 0: none yet */
	uint64_t self[TREE_COLUMNS], total[TREE_COLUMNS];
};

struct tree {
	struct pool paths;	 /* of struct edge: parent and step */
	struct tree_node *nodes; /* [0] is the root: everything */
	uint32_t count, space;
};

/* A tree of the root alone. 0, -ENOMEM, -ENOSPC. Release with tree_done. */
int tree_init(struct tree *t, struct pool_budget *budget);
void tree_done(struct tree *t);

/* What is counted: of threads in a state (enum store_state), in a column. */
struct tree_value {
	uint64_t value;
	unsigned int column;
	uint32_t state;
};

/* Counts the value for the path of `n` steps, root first. 0, -ENOMEM, -ENOSPC. */
int tree_add(struct tree *t, const struct tree_step *path, uint32_t n,
	     const struct tree_value *value);

/* Puts the children of every node in the order of their texts. 0 or -ENOMEM. */
int tree_sort(struct tree *t, const struct labels *labels);

/* The node behind this one when the tree is walked from the root down; 0 at the end. */
uint32_t tree_next(const struct tree *t, uint32_t node, bool down, uint32_t *depth);

#endif
