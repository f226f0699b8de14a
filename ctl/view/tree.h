/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree.h: merges stacks into a tree from the root: a node per path of labels, with the counts in it
 * and below it, in two columns that are compared (before and during, or A and B).
 */
#ifndef TROCAR_CTL_VIEW_TREE_H
#define TROCAR_CTL_VIEW_TREE_H

#include "ctl/view/labels.h"

#define TREE_COLUMNS 2
#define TREE_ROOT    0
/* The most labels of a path: those that --by puts below the stack, and the frames. */
#define TREE_PATH_MAX (STORE_FRAMES_MAX + 16)

struct tree_step {
	uint32_t label; /* of labels */
	uint32_t kind;	/* enum store_kind, or TREE_BY */
};

#define TREE_BY	   STORE_KIND_COUNT_ /* not a frame: a label that --by puts below a stack */
#define TREE_STATE (TREE_BY + 1)     /* not a frame: the state of the threads, above a stack */

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

/* Makes a tree of only the root. 0, -ENOMEM, -ENOSPC. Release with tree_done. */
int tree_init(struct tree *t, struct pool_budget *budget);
void tree_done(struct tree *t);

/* A value to count: of threads in a state (enum store_state), in a column. */
struct tree_value {
	uint64_t value;
	unsigned int column;
	uint32_t state;
};

/* Counts the value for the path of `n` steps, root first. 0, -ENOMEM, -ENOSPC. */
int tree_add(struct tree *t, const struct tree_step *path, uint32_t n,
	     const struct tree_value *value);

/* Sorts the children of every node by their texts. 0 or -ENOMEM. */
int tree_sort(struct tree *t, const struct labels *labels);

/*
 * Returns the next node of a walk from the root; with `down` it enters the node's children. Updates
 * *depth. 0 at the end.
 */
uint32_t tree_next(const struct tree *t, uint32_t node, bool down, uint32_t *depth);

#endif
