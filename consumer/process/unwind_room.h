/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_room.h: chooses the process that loses its table if there is no free table, or no space
 * for a file's rows. A process loses its table to another one of the same owner if the table was
 * unused for a while. An owner with more than the newcomer's owner would have also loses a table,
 * unless a session captures its process. process_unwind.c then takes the table away. Main thread
 * only.
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
 * Chooses the table to take away for `p` if none is free. Returns NULL if no owner yields, or a
 * table is being retired.
 */
const struct walk_table *unwind_room_for_table(const struct unwind_room *room,
					       const struct process *p);

/*
 * Chooses the next table to take away if `bytes` of rows of a process of `owner` do not fit into
 * the pool. Call after unwind_room_count. Returns NULL if no owner yields.
 */
const struct walk_table *unwind_room_for_rows(const struct unwind_room *room,
					      const struct owner *owner, uint64_t bytes);

/* Returns whether some table is retired, and so will soon be free. */
bool unwind_room_retiring(const struct unwind_room *room);

/* Counts for each owner the bytes of rows that only its tables hold (SHARE_ROWS). */
void unwind_room_count(const struct unwind_room *room);

#endif
