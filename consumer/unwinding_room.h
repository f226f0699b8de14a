/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwinding_room.h: who gives way when there is no table left, or no room for a file's rows. A
 * table that was not used for a while goes to another process of the same owner; and one of an
 * owner who has more than the newcomer's would have, unless it is of a process in a session. Main
 * thread only.
 */
#ifndef TROCAR_CONSUMER_UNWINDING_ROOM_H
#define TROCAR_CONSUMER_UNWINDING_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/shares.h"
#include "consumer/symbols/mappings.h"

struct agent;
struct process;

enum table_state {
	TABLE_FREE,
	TABLE_LIVE,
	TABLE_RETIRED, /* not published any more; a tick may still be reading it */
};

/* The account of one of the kernel side's tables. */
struct unwinding_table {
	enum table_state state;
	struct process *owner; /* of a live one */
	struct owner *holder;  /* whose that process is, a reference; of a live one */
	uint64_t grace;	       /* of a retired one: when that has passed it is free */
	uint32_t *held;	       /* numbers of files, owned */
	size_t held_count;
	uint64_t fill;	      /* its last filling that was published: kept until the next */
	struct mappings maps; /* that it was made of */
	size_t cut;	      /* of those, without a place in it */
	bool rows;	      /* some of them have rows */
};

/* None is free: takes one away for `p` if somebody has to give way; it is free after a grace. */
void unwinding_room_table(struct agent *a, const struct process *p);

/*
 * Files of `p` that take so many elements found no room in the pool: takes a table away if somebody
 * has to give way, and remembers `p`, whose plan is made again when the rows are free.
 */
void unwinding_room_rows(struct agent *a, struct process *p, uint32_t elements);

/* Tables have become free: makes the plans of those anew who were remembered. */
void unwinding_room_freed(struct agent *a);

/* Counts the rows that each owner's tables hold and nobody else's do (SHARE_ROWS). */
void unwinding_room_count(struct agent *a);

/* Takes the process's table from it, and one that it inherits; in unwinding.c. */
void unwinding_withdraw(struct agent *a, struct process *p);

#endif
