/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwinding_room.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/agent.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/macro.h"

/* A table goes to another process of the same owner only when it was not used for this long. */
#define IDLE_NS (10 * NSEC_PER_SEC)

/* Tables that one file's rows are worth at a time; who still finds no room asks again. */
#define TAKEN_AT_ONCE 16

static bool is_retiring(const struct unwinding *u)
{
	for (uint32_t i = 0; i < u->table_count; i++)
		if (u->tables[i].state == TABLE_RETIRED)
			return true;
	return false;
}

/* A process in a session keeps its table. */
static bool is_captured(struct agent *a, const struct process *p)
{
	const char *path =
		a->sessions.captured.count ? cgroups_path(&a->cgroups, p->cgroup_id, 0) : NULL;

	return captured_holds(&a->sessions.captured, p->cgroup_id, path);
}

/* The table unused for longest of the owner who has most of `share` among those that yield. */
static const struct unwinding_table *find_yielding(struct agent *a, const struct owner *owner,
						   enum share share, uint64_t n)
{
	const struct unwinding *u = &a->unwinding;
	const struct unwinding_table *best = NULL;

	for (uint32_t i = 0; i < u->table_count; i++) {
		const struct unwinding_table *t = &u->tables[i];
		uint64_t most = best ? best->holder->held[share] : 0;

		if (!t->owner || !owner_yields(t->holder, owner, share, n) ||
		    t->holder->held[share] < most || is_captured(a, t->owner))
			continue;
		if (!best || t->holder->held[share] > most ||
		    t->owner->unwind.used_ns < best->owner->unwind.used_ns)
			best = t;
	}
	return best;
}

/* The table unused for longest, and for long, of the same owner or of nobody known. */
static const struct unwinding_table *find_idle(struct agent *a, const struct owner *owner)
{
	const struct unwinding *u = &a->unwinding;
	const struct unwinding_table *best = NULL;

	for (uint32_t i = 0; i < u->table_count; i++) {
		const struct unwinding_table *t = &u->tables[i];

		if (t->owner && (!t->holder || t->holder == owner) &&
		    (!best || t->owner->unwind.used_ns < best->owner->unwind.used_ns))
			best = t;
	}
	if (!best || clock_mono_ns() - best->owner->unwind.used_ns < IDLE_NS)
		return NULL;
	return best;
}

void unwinding_room_table(struct agent *a, const struct process *p)
{
	const struct unwinding_table *t;
	struct owner *owner;

	if (is_retiring(&a->unwinding))
		return; /* one is about to be free */
	owner = shares_of_cgroup(&a->shares, &a->cgroups, p->cgroup_id, p->tgid);
	t = find_yielding(a, owner, SHARE_TABLES, 1);
	if (!t)
		t = find_idle(a, owner);
	if (t)
		unwinding_withdraw(a, t->owner);
	shares_put(&a->shares, owner);
}

/* Who holds a file's rows. */
struct holders {
	struct owner *one;
	bool several;
};

static void note_holder(struct holders *h, struct owner *owner)
{
	h->several = h->several || !owner || (h->one && h->one != owner);
	h->one = owner;
}

/* One more than the highest number of a file that a live table holds. */
static uint32_t count_files(const struct unwinding *u)
{
	uint32_t files = 0;

	for (uint32_t i = 0; i < u->table_count; i++)
		for (size_t k = 0; u->tables[i].state == TABLE_LIVE && k < u->tables[i].held_count;
		     k++)
			files = MAX(files, u->tables[i].held[k] + 1);
	return files;
}

void unwinding_room_count(struct agent *a)
{
	const struct unwinding *u = &a->unwinding;
	uint32_t files = count_files(u);
	_cleanup_free_ struct holders *all = files ? calloc(files, sizeof(*all)) : NULL;

	shares_clear(&a->shares, SHARE_ROWS);
	for (uint32_t i = 0; all && i < u->table_count; i++)
		for (size_t k = 0; u->tables[i].state == TABLE_LIVE && k < u->tables[i].held_count;
		     k++)
			note_holder(&all[u->tables[i].held[k]], u->tables[i].holder);
	for (uint32_t i = 0; all && i < files; i++)
		if (all[i].one && !all[i].several)
			owner_add(all[i].one, SHARE_ROWS,
				  8 * (uint64_t)unwind_files_elements(u->files, i));
}

static void remember(struct unwinding *u, const struct process *p)
{
	for (size_t i = 0; i < u->starved_count; i++)
		if (u->starved[i].tgid == p->tgid && u->starved[i].start_ns == p->start_ns)
			return;
	if (u->starved_count < UNWINDING_AGAIN)
		u->starved[u->starved_count++] =
			(struct process_key){ .tgid = p->tgid, .start_ns = p->start_ns };
}

/* Takes the table away. So many bytes of its holder's rows nobody holds then. */
static uint64_t take_rows(struct agent *a, const struct unwinding_table *t)
{
	struct owner *holder = shares_ref(t->holder);
	uint64_t before = holder->held[SHARE_ROWS];

	unwinding_withdraw(a, t->owner);
	unwinding_room_count(a);
	before -= MIN(before, holder->held[SHARE_ROWS]);
	shares_put(&a->shares, holder);
	return before;
}

void unwinding_room_rows(struct agent *a, struct process *p, uint32_t elements)
{
	struct owner *owner = shares_of_cgroup(&a->shares, &a->cgroups, p->cgroup_id, p->tgid);
	uint64_t bytes = 8 * (uint64_t)elements, freed = 0;
	const struct unwinding_table *t;
	bool retiring = is_retiring(&a->unwinding);

	unwinding_room_count(a);
	for (int i = 0; i < TAKEN_AT_ONCE && freed < bytes; i++) {
		t = find_yielding(a, owner, SHARE_ROWS, bytes);
		if (!t)
			break;
		remember(&a->unwinding, p);
		if (retiring)
			break;
		freed += take_rows(a, t);
	}
	shares_put(&a->shares, owner);
}

void unwinding_room_freed(struct agent *a)
{
	struct unwinding *u = &a->unwinding;
	struct process_key starved[UNWINDING_AGAIN];
	size_t count = u->starved_count;

	memcpy(starved, u->starved, count * sizeof(*starved));
	u->starved_count = 0;
	if (count)
		unwind_files_retry(u->files);
	for (size_t i = 0; i < count; i++) {
		struct process *p = process_find(a, starved[i].tgid, starved[i].start_ns);

		if (p)
			unwinding_follow(a, p);
	}
}
