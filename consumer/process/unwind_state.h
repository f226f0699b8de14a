/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_state.h: what is known of how the stacks of one process are walked. Each struct process
 * has one. process_unwind.c and unwind_tables.c write it.
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_STATE_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/rules/rules.h"

struct process;
struct unwind_plan;

/* How a process's stacks are walked, as far as it is known. */
enum unwind_how {
	UNWIND_HOW_UNKNOWN,
	UNWIND_HOW_FP,	  /* by frame pointers alone */
	UNWIND_HOW_TABLE, /* every mapping has rows */
	UNWIND_HOW_MIXED, /* some have rows, the others are walked by frame pointers or are too many
			   */
};

struct unwind_state {
	struct unwind_plan *plan;	 /* of a table in the making; owned */
	struct process *previous, *next; /* those that wait for files or for a table */
	bool waiting;			 /* stands in that list */
	enum rule_unwind by;		 /* as the rule wanted it when its plan was last made */
	enum unwind_how how, said;	 /* now, and as the last line said */
	uint32_t table;			 /* number plus 1; 0: none */
	uint32_t image;			 /* for which `how` holds, as in struct sample */
	size_t cut;			 /* mappings that have no place in the table */
	uint64_t shape;	  /* of the plan that the table was made of; 0: it is to be made anew */
	bool unconfirmed; /* the kernel side did not confirm all mappings that the plan had */
	bool left;	  /* a stack has left the mappings since they were read */
	uint64_t published_ns, used_ns; /* the table; its last sample */
};

/*
 * Whether it is known how stacks of `image` are walked: its first table is there, or none can be
 * made. Until then the kernel tells the files of its frames: libraries that come and go are in no
 * list of mappings yet.
 */
static inline bool unwind_state_settled(const struct unwind_state *s, uint32_t image)
{
	return s->image == image && (s->table || s->how == UNWIND_HOW_FP);
}

#endif
