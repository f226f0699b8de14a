/* SPDX-License-Identifier: BSD-2-Clause */
/* hot.h: lists the functions of a tree by their own weight and the weight below them. */
#ifndef TROCAR_CTL_VIEW_HOT_H
#define TROCAR_CTL_VIEW_HOT_H

#include "ctl/view/tree.h"

struct hot_function {
	uint32_t label, kind;
	uint64_t self[TREE_COLUMNS], total[TREE_COLUMNS];
	/* In the function itself; for a program's function also the kernel's work for it. */
	uint64_t own[TREE_COLUMNS];
};

struct hot {
	struct hot_function *functions; /* the hottest first */
	uint32_t count;
};

/*
 * Lists all functions of the tree; the labels that --by puts below a stack are not functions. A
 * stack with several frames of a function counts once for its total. Sorts by `own` in column `by`,
 * then in the other column: the kernel's work for a program is also the program's time, and sorted
 * by `self` fifty kernel functions would precede a function that spends its time in one system
 * call. 0, -ENOMEM, -ENOSPC. Release with hot_done.
 */
int hot_init(struct hot *hot, const struct tree *tree, unsigned int by);
void hot_done(struct hot *hot);

/* Returns a node's own weight in the column, as `own` of its function. */
uint64_t hot_own(const struct tree *tree, uint32_t node, unsigned int column);

#endif
