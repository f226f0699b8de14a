/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_table.h: a session's samples, counted by phase, process, thread name, cgroup and frames.
 * The main thread fills the table; after the session has ended the report thread owns it. Limited
 * by STACK_TABLE_MAX and by a budget that all tables share.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_STACK_TABLE_H
#define TROCAR_CONSUMER_SAMPLING_STACK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_sample.h"
#include "shared/tools/idmap.h"

#define STACK_TABLE_MAX	      131072 /* two CPUs at 999 Hz for a minute, without repeated stacks */
#define STACK_TABLE_BYTES_MAX (64u << 20)
#define STACK_TABLE_CGROUPS   4096 /* cgroups with paths in one table */

/* For all tables: half of the unit's MemoryMax. */
#define STACK_BUDGET_BYTES (128ull << 20)

/*
 * The memory of all tables, of running sessions and of ended ones that wait to be written. A table
 * may take at most as much as it leaves to the others, so that one session does not starve the
 * next.
 */
struct stack_budget {
	uint64_t max_bytes;
	uint64_t used_bytes; /* atomic: the report thread returns memory */
};

/*
 * Takes `bytes` from the budget (NULL: no budget) for evidence other than stacks, if at least as
 * much is left to the others. Returns whether it did; stack_table_give_budget returns the bytes.
 * Any thread.
 */
bool stack_table_take_budget(struct stack_budget *b, size_t bytes);
void stack_table_give_budget(struct stack_budget *b, size_t bytes);

/* Phases of a session, in the order of time. */
enum phase {
	PHASE_BEFORE, /* baseline: older than the time that the trigger measured */
	PHASE_ONSET,  /* the measured time, up to the trigger; none without pressure */
	PHASE_DURING,
	PHASE_COUNT_,
};

/* Returns "before", "onset" or "during". */
const char *stack_table_phase(enum phase phase);

struct stack {
	struct stack *next; /* same hash */
	uint64_t hash;
	uint64_t weight_ns;
	uint64_t count;
	uint64_t start_ns;
	uint32_t tgid;
	uint32_t threads;				     /* distinct thread ids */
	uint32_t number;				     /* index in the table */
	uint16_t kernel_frames, user_frames, runtime_frames; /* as in struct stack_sample */
	/*
	 * SAMPLE_IN_USER, SAMPLE_KTHREAD, SAMPLE_UNWOUND, SAMPLE_MEMORY_STALL, SAMPLE_RUNTIME,
	 * STACK_SAMPLE_CUT
	 */
	uint32_t flags;
	uint32_t call;	     /* of CPU time: as in struct sample */
	uint8_t phase;	     /* enum phase */
	uint8_t stop_reason; /* enum unwind_end with SAMPLE_UNWOUND */
	uint8_t runtime_end; /* enum runtime_end with SAMPLE_RUNTIME */
	uint32_t on;	     /* number of the awaited object (wait_objects.h); 0: unknown */
	uint8_t wait;	     /* the wait of its threads (wait_kind.h) */
	int32_t user_error;
	char comm[COMM_BYTES];
	struct module *exe; /* NULL: unknown */
	uint64_t cgroup_id; /* of its threads; 0: unknown */
	/* Of a thread that woke a thread waiting for a lock; else 0. */
	uint64_t lock_address;
	uint32_t lock_tgid;
	struct frame frames[];
};

struct stack_table {
	struct stack **items; /* owned, in order of arrival */
	size_t count, space;
	struct idmap by_hash;	     /* hash -> first stack, by `next` */
	struct idmap threads;	     /* pairs of stack and tid that are already counted */
	struct idmap cgroups;	     /* id -> path of a cgroup of these stacks, owned */
	size_t bytes;		     /* of the stacks */
	struct stack_budget *budget; /* borrowed; NULL: only the table's own limits apply */
	size_t charged;		     /* bytes taken from the budget */
};

void stack_table_init(struct stack_table *s, struct stack_budget *budget);

/* Frees it, and returns its memory to the budget. Any thread. */
void stack_table_done(struct stack_table *s);

/*
 * Counts one sample of weight_ns. Returns 0, -ENOSPC if the table or the budget is full, or
 * -ENOMEM.
 */
int stack_table_add(struct stack_table *s, const struct stack_sample *sample, enum phase phase,
		    uint64_t weight_ns, struct module *exe);

/*
 * Does the same as stack_table_add, and sets *ret_stack to the stack of the sample, which does not
 * move.
 */
int stack_table_put(struct stack_table *s, const struct stack_sample *sample, enum phase phase,
		    uint64_t weight_ns, struct module *exe, struct stack **ret_stack);

/* Keeps a copy of the path of a cgroup, for stack_table_cgroup; keeps none without memory. */
void stack_table_name(struct stack_table *s, uint64_t cgroup_id, const char *path);

/* Returns the path of a cgroup, or NULL if it is unknown. */
const char *stack_table_cgroup(const struct stack_table *s, uint64_t cgroup_id);

#endif
