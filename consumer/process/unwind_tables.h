/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_tables.h: the kernel side's unwind tables: the process for which each is published, and
 * when it may be filled again. The consumer never changes a published table: a process with changed
 * mappings gets another one, and the old one is used again once no tick can be reading it
 * (unwind_files.h). Main thread only.
 *
 *   FREE --publish--> LIVE --retire--> RETIRED --reclaim, after a grace--> FREE
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_TABLES_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/process/process.h"
#include "consumer/process/process_targets.h"
#include "consumer/rules/shares.h"
#include "consumer/unwind/store/unwind_files.h"

enum walk_table_state {
	WALK_TABLE_FREE,
	WALK_TABLE_LIVE,
	WALK_TABLE_RETIRED, /* no longer published, but a tick may still read it */
};

/* The state of one table, with which the kernel side walks one process's stacks. */
struct walk_table {
	enum walk_table_state state;
	struct process *process; /* of a live table: its process */
	struct owner *holder;	 /* of a live table: the owner of that process, a reference */
	uint64_t grace;		 /* of a retired table: it is free after this grace period */
	uint32_t *held;		 /* numbers of the held files, owned */
	size_t held_count;
	uint64_t table_generation; /* number of its last published filling; kept until the next */
	struct mappings maps;	   /* the mappings that it was made from */
	size_t cut;		   /* mappings that do not fit into it */
	bool rows;		   /* whether any mapping has rows */
};

struct unwind_tables {
	const struct pinned_maps *pins; /* borrowed, as all pointers but `items` */
	struct unwind_files *files;	/* NULL until unwind_tables_open */
	const struct process_targets *targets;
	struct shares *shares;
	struct cgroups *cgroups;
	struct walk_table *items; /* owned */
	uint32_t count, live;
	uint32_t next;	      /* start of the search for a free table */
	uint64_t published;   /* number of published tables */
	uint64_t full;	      /* number of times that no table was free */
	uint64_t cut;	      /* mappings that did not fit */
	uint64_t unconfirmed; /* mappings that the kernel did not confirm */
};

/*
 * Initialises it without tables. Everything is borrowed; nothing of `pins` is read before
 * unwind_tables_open.
 */
void unwind_tables_init(struct unwind_tables *all, const struct pinned_maps *pins,
			const struct process_targets *targets, struct shares *shares,
			struct cgroups *cgroups);

/*
 * Takes over the pinned tables. Retires the tables that an earlier consumer had published, because
 * a tick may still read them. 0 or -ENOMEM.
 */
int unwind_tables_open(struct unwind_tables *all, struct unwind_files *files);
void unwind_tables_close(struct unwind_tables *all);

/*
 * Frees the retired tables after their grace period, and releases their files. Returns true if
 * there were any.
 */
bool unwind_tables_reclaim(struct unwind_tables *all);

/* Returns the number of free tables. */
uint32_t unwind_tables_count_free(const struct unwind_tables *all);

/* Finds a free table. Returns 0 and sets *ret_number, or -EBUSY if there is none. */
int unwind_tables_find_free(struct unwind_tables *all, uint32_t *ret_number);

/*
 * Fills the free table `number` from the plan of `p`, publishes it, makes the kernel side walk with
 * it, and retires the table that `p` had. All files of the plan must be settled. Writes p->unwind.
 * Returns 0; -ESRCH if the process has ended or has another image now; -ENOMEM; -errno of open(2)
 * and read(2).
 */
int unwind_tables_publish(struct unwind_tables *all, struct process *p, uint32_t number);

/*
 * Takes the table away from the process, even if it was inherited; its unwind method is then
 * unknown.
 */
void unwind_tables_withdraw(struct unwind_tables *all, struct process *p);

/* Retires the table of a process that has ended. */
void unwind_tables_leave(struct unwind_tables *all, struct process *p);

/*
 * Call when a stack left the mappings of p's table and a new reading found nothing new: halves the
 * rate at which the kernel side reports that, down to once in 10 s.
 */
void unwind_tables_notify_less(struct unwind_tables *all, const struct process *p);

/*
 * Returns the table with the last filling `table_generation` (struct sample), which may be retired
 * by now; or NULL.
 */
const struct walk_table *unwind_tables_find(const struct unwind_tables *all,
					    uint32_t table_generation);

#endif
