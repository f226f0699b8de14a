/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_room.h: chooses the process that loses its table when there is no free table, or no room
 * for a file's rows: a table that was unused for a while, for another process of the same owner; or
 * one of an owner with more than the newcomer's would have, unless a session captures its process.
 * process_unwind.c then takes the table away. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_ROOM_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/cgroup/captured.h"
#include "consumer/cgroup/cgroups.h"
#include "consumer/process/unwind_tables.h"
#include "consumer/rules/shares.h"

/* All members are borrowed. */
struct unwind_room {
	const struct unwind_tables *tables;
	struct shares *shares;
	struct cgroups *cgroups;
	const struct captured *captured;
};

/*
 * Chooses the table to take away for `p` when none is free. NULL: no owner yields, or a table is
 * being retired.
 */
const struct walk_table *unwind_room_for_table(const struct unwind_room *room,
					       const struct process *p);

/*
 * Chooses the next table to take away when `bytes` of rows of a process of `owner` find no room in
 * the pool. Call after unwind_room_count. NULL: no owner yields.
 */
const struct walk_table *unwind_room_for_rows(const struct unwind_room *room,
					      const struct owner *owner, uint64_t bytes);

/* Whether some table is retired, so that it will soon be free. */
bool unwind_room_retiring(const struct unwind_room *room);

/* Counts for each owner the bytes of rows that only its tables hold (SHARE_ROWS). */
void unwind_room_count(const struct unwind_room *room);

#endif
