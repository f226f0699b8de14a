/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_state.h: how the stacks of one process are walked, as known to the consumer. Each struct
 * process has one. process_unwind.c and unwind_tables.c write it.
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_STATE_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/rules/rules.h"

struct process;
struct unwind_plan;

/* How the kernel side walks a process's stacks, as far as the consumer knows. */
enum unwind_how {
	UNWIND_HOW_UNKNOWN,
	UNWIND_HOW_FP,	  /* by frame pointers alone */
	UNWIND_HOW_TABLE, /* every mapping has rows */
	UNWIND_HOW_MIXED, /* some have rows; the others use frame pointers, or do not fit */
};

struct unwind_state {
	struct unwind_plan *plan;	 /* the table in preparation; owned */
	struct process *previous, *next; /* list of processes that wait for files or for a table */
	bool waiting;			 /* it is in that list */
	bool lacks_table;		 /* it waits only for a table: its files are settled */
	uint32_t round;	     /* round in which it was last continued (struct process_unwind) */
	uint64_t sampled_ns; /* its last sample since it lacks a table; 0: none */
	uint64_t asked_ns;   /* last request for another process's table */
	enum rule_unwind by; /* the rule's method when the plan was made */
	enum unwind_how how, said; /* now; in the last line */
	uint32_t table;		   /* number plus 1; 0: none */
	uint32_t image;		   /* image that `how` is about, as in struct sample */
	uint32_t runtime;	   /* of the table: enum runtime_state */
	uint64_t recheck_ns;	   /* with RUNTIME_STATE_NOT_RESIDENT: when to check again */
	uint64_t recheck_every_ns;
	size_t cut;	  /* mappings that do not fit into the table */
	uint64_t shape;	  /* of the published table's plan; 0: make the table again */
	bool unconfirmed; /* the kernel side did not confirm all mappings of the plan */
	bool left;	  /* a stack has left the mappings since they were read */
	uint64_t published_ns, used_ns; /* when the table was published; its last sample */
};

/*
 * Returns whether the unwind method for stacks of `image` is known: its first table is published,
 * or none can be made. Until then the kernel resolves the files of its frames, because libraries
 * that are mapped for a short time are not in a list of mappings yet.
 */
static inline bool unwind_state_settled(const struct unwind_state *s, uint32_t image)
{
	return s->image == image && (s->table || s->how == UNWIND_HOW_FP);
}

#endif
