/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/unwind_room.h"

#include <stdlib.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A table goes to another process of the same owner only when it was unused for this long. */
#define IDLE_NS (10 * NSEC_PER_SEC)

bool unwind_room_retiring(const struct unwind_room *room)
{
	for (uint32_t i = 0; i < room->tables->count; i++)
		if (room->tables->items[i].state == WALK_TABLE_RETIRED)
			return true;
	return false;
}

/* Whether a session captures the process, which then keeps its table. */
static bool is_captured(const struct unwind_room *room, const struct process *p)
{
	const char *path = NULL;

	if (room->captured->count)
		path = cgroups_path(room->cgroups, p->cgroup_id, 0);
	return captured_holds(room->captured, p->cgroup_id, path);
}

/* Returns the longest unused table of the yielding owner with most of `share`. */
static const struct walk_table *find_yielding(const struct unwind_room *room,
					      const struct owner *owner, enum share share,
					      uint64_t n)
{
	const struct walk_table *best = NULL;

	for (uint32_t i = 0; i < room->tables->count; i++) {
		const struct walk_table *t = &room->tables->items[i];
		uint64_t most = best ? best->holder->held[share] : 0;

		if (!t->process || !shares_yield(t->holder, owner, share, n) ||
		    t->holder->held[share] < most || is_captured(room, t->process))
			continue;
		if (!best || t->holder->held[share] > most ||
		    t->process->unwind.used_ns < best->process->unwind.used_ns)
			best = t;
	}
	return best;
}

/*
 * Returns the longest unused table of this owner or of an unknown one, if unused for at least
 * IDLE_NS.
 */
static const struct walk_table *find_idle(const struct unwind_room *room, const struct owner *owner)
{
	const struct walk_table *best = NULL;

	for (uint32_t i = 0; i < room->tables->count; i++) {
		const struct walk_table *t = &room->tables->items[i];

		if (t->process && (!t->holder || t->holder == owner) &&
		    (!best || t->process->unwind.used_ns < best->process->unwind.used_ns))
			best = t;
	}
	if (!best || clock_mono_ns() - best->process->unwind.used_ns < IDLE_NS)
		return NULL;
	return best;
}

const struct walk_table *unwind_room_for_table(const struct unwind_room *room,
					       const struct process *p)
{
	const struct walk_table *t;
	struct owner *owner;

	if (unwind_room_retiring(room))
		return NULL; /* a table will soon be free */
	owner = shares_of_cgroup(room->shares, room->cgroups, p->cgroup_id, p->tgid);
	t = find_yielding(room, owner, SHARE_TABLES, 1);
	if (!t)
		t = find_idle(room, owner);
	shares_put(room->shares, owner);
	return t;
}

const struct walk_table *unwind_room_for_rows(const struct unwind_room *room,
					      const struct owner *owner, uint64_t bytes)
{
	return find_yielding(room, owner, SHARE_ROWS, bytes);
}

/* The owners with tables that hold a file's rows. */
struct holders {
	struct owner *one;
	bool several;
};

static void note_holder(struct holders *h, struct owner *owner)
{
	h->several = h->several || !owner || (h->one && h->one != owner);
	h->one = owner;
}

/* Returns the highest number of a file that a live table holds, plus one. */
static uint32_t count_files(const struct unwind_tables *tables)
{
	uint32_t files = 0;

	for (uint32_t i = 0; i < tables->count; i++) {
		const struct walk_table *t = &tables->items[i];

		for (size_t k = 0; t->state == WALK_TABLE_LIVE && k < t->held_count; k++)
			files = MAX(files, t->held[k] + 1);
	}
	return files;
}

void unwind_room_count(const struct unwind_room *room)
{
	const struct unwind_tables *tables = room->tables;
	uint32_t files = count_files(tables);
	_cleanup_free_ struct holders *all = files ? calloc(files, sizeof(*all)) : NULL;

	shares_clear(room->shares, SHARE_ROWS);
	for (uint32_t i = 0; all && i < tables->count; i++) {
		const struct walk_table *t = &tables->items[i];

		for (size_t k = 0; t->state == WALK_TABLE_LIVE && k < t->held_count; k++)
			note_holder(&all[t->held[k]], t->holder);
	}
	for (uint32_t i = 0; all && i < files; i++)
		if (all[i].one && !all[i].several)
			shares_add(all[i].one, SHARE_ROWS,
				   8 * (uint64_t)unwind_files_elements(tables->files, i));
}
