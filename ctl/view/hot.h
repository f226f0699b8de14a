/* SPDX-License-Identifier: BSD-2-Clause */
/* hot.h: the functions of a tree by what was counted in themselves and below them. */
#ifndef TROCAR_CTL_VIEW_HOT_H
#define TROCAR_CTL_VIEW_HOT_H

#include "ctl/view/tree.h"

struct hot_function {
	uint32_t label, kind;
	uint64_t self[TREE_COLUMNS], total[TREE_COLUMNS];
};

struct hot {
	struct hot_function *functions; /* the hottest first */
	uint32_t count;
};

/*
 * All functions of the tree; what --by puts below a stack is none. A stack in which a function
 * stands more than once counts once for its total. In the order of self in column `by`, then in the
 * other. 0 or -ENOMEM. Release with hot_done.
 */
int hot_init(struct hot *hot, const struct tree *tree, const struct labels *labels,
	     unsigned int by);
void hot_done(struct hot *hot);

#endif
