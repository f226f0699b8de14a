/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_room.h: who gives way when there is no table left, or no room for a file's rows. A table
 * that was not used for a while goes to another process of the same owner; and one of an owner who
 * has more than the newcomer's would have, unless it is of a process in a session. It chooses;
 * process_unwind.c takes the table away. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_ROOM_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/cgroup/captured.h"
#include "consumer/cgroup/cgroups.h"
#include "consumer/process/unwind_tables.h"
#include "consumer/rules/shares.h"

/* All borrowed. */
struct unwind_room {
	const struct unwind_tables *tables;
	struct shares *shares;
	struct cgroups *cgroups;
	const struct captured *captured;
};

/* None is free: the table that is to go to `p`. NULL: nobody gives way, or one is being retired. */
const struct walk_table *unwind_room_for_table(const struct unwind_room *room,
					       const struct process *p);

/*
 * So many bytes of rows find no room in the pool: the next table whose rows are to go for a process
 * of `owner`, after unwind_room_count. NULL: nobody gives way.
 */
const struct walk_table *unwind_room_for_rows(const struct unwind_room *room,
					      const struct owner *owner, uint64_t bytes);

/* Whether some table is not free yet, but about to be. */
bool unwind_room_retiring(const struct unwind_room *room);

/* Counts the rows that each owner's tables hold and nobody else's do (SHARE_ROWS). */
void unwind_room_count(const struct unwind_room *room);

#endif
