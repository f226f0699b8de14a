/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_tables.h: the kernel side's tables of unwinding: which are published for whom, and when
 * one may be filled again. A table is never changed: a process whose mappings have changed gets
 * another one, and the old one is used again when no tick can be reading it (unwind_files.h). Main
 * thread only.
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
	WALK_TABLE_RETIRED, /* not published any more; a tick may still be reading it */
};

/* The account of one of them: what the walks of one process go by. */
struct walk_table {
	enum walk_table_state state;
	struct process *process; /* whose it is; of a live one */
	struct owner *holder;	 /* whose that process is, a reference; of a live one */
	uint64_t grace;		 /* of a retired one: when that has passed it is free */
	uint32_t *held;		 /* numbers of files, owned */
	size_t held_count;
	uint64_t fill;	      /* its last filling that was published: kept until the next */
	struct mappings maps; /* that it was made of */
	size_t cut;	      /* of those, without a place in it */
	bool rows;	      /* some of them have rows */
};

struct unwind_tables {
	const struct pinned_maps *pins; /* borrowed, as all pointers but `items` */
	struct unwind_files *files;	/* NULL until unwind_tables_open */
	const struct process_targets *targets;
	struct shares *shares;
	struct cgroups *cgroups;
	struct walk_table *items; /* owned */
	uint32_t count, live;
	uint32_t next;	      /* where the search for a free one starts */
	uint64_t published;   /* ever */
	uint64_t full;	      /* times that a process found none free */
	uint64_t cut;	      /* mappings that found no place */
	uint64_t unconfirmed; /* mappings that are missing: not confirmed by the kernel */
};

/* Without tables. Everything is borrowed; of `pins` nothing is read before unwind_tables_open. */
void unwind_tables_init(struct unwind_tables *all, const struct pinned_maps *pins,
			const struct process_targets *targets, struct shares *shares,
			struct cgroups *cgroups);

/*
 * Takes the pinned tables over. What an earlier consumer had published is nobody's now; a tick may
 * still be reading it. 0 or -ENOMEM.
 */
int unwind_tables_open(struct unwind_tables *all, struct unwind_files *files);
void unwind_tables_close(struct unwind_tables *all);

/* Frees the retired ones whose grace has passed, and gives their files back. True if there were. */
bool unwind_tables_reclaim(struct unwind_tables *all);

/* Finds a free one. 0 with its number, -EBUSY: there is none. */
int unwind_tables_find_free(struct unwind_tables *all, uint32_t *ret_number);

/*
 * Fills the free table `number` by the plan of `p`, whose files are all settled, publishes it, has
 * the kernel side walk by it, and retires the one that `p` had. p->unwind says what it is. 0;
 * -ESRCH when the process is gone or is another image by now; -ENOMEM; -errno of open(2) and
 * read(2).
 */
int unwind_tables_publish(struct unwind_tables *all, struct process *p, uint32_t number);

/* Takes the process's table from it, and one that it inherits; it is not known how it is walked. */
void unwind_tables_withdraw(struct unwind_tables *all, struct process *p);

/* Retires the table of a process that has gone. */
void unwind_tables_leave(struct unwind_tables *all, struct process *p);

/*
 * What its stacks met outside of the table brought nothing new: the kernel side is to say so half
 * as often, down to once in 10 s.
 */
void unwind_tables_notify_less(struct unwind_tables *all, const struct process *p);

/* The one that was last filled as `fill` (struct sample), by now perhaps retired; or NULL. */
const struct walk_table *unwind_tables_find(const struct unwind_tables *all, uint32_t fill);

#endif
