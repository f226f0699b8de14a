/* SPDX-License-Identifier: BSD-2-Clause */
/* hot.h: the functions of a tree by their own weight and that below them. */
#ifndef TROCAR_CTL_VIEW_HOT_H
#define TROCAR_CTL_VIEW_HOT_H

#include "ctl/view/tree.h"

struct hot_function {
	uint32_t label, kind;
	uint64_t self[TREE_COLUMNS], total[TREE_COLUMNS];
	/* In itself, and for a program's function also the kernel's work for it. */
	uint64_t own[TREE_COLUMNS];
};

struct hot {
	struct hot_function *functions; /* the hottest first */
	uint32_t count;
};

/*
 * All functions of the tree; what --by puts below a stack is none. A stack in which a function
 * stands more than once counts once for its total. In the order of own in column `by`, then in the
 * other: what a program has the kernel do is its time as well, and by self alone fifty functions of
 * the kernel would stand before the one that sits in one system call. 0, -ENOMEM, -ENOSPC. Release
 * with hot_done.
 */
int hot_init(struct hot *hot, const struct tree *tree, unsigned int by);
void hot_done(struct hot *hot);

/* Returns a node's own weight in the column, as for its function above. */
uint64_t hot_own(const struct tree *tree, uint32_t node, unsigned int column);

#endif
