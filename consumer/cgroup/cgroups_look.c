/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/cgroups_look.h"

#include "consumer/cgroup/cgroups.h"
#include "consumer/cgroup/cgroups_walk.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define PAUSE_OF_WALK 10 /* a walk takes at most 1/PAUSE_OF_WALK of the time */

/* The known state of an id; the addresses of these variables are the values of the table. */
static char is_sought, is_walked_for, is_not_found;

void cgroups_look_init(struct cgroups_look *l,
		       int (*learn)(void *context, const char *path, uint64_t id))
{
	*l = (struct cgroups_look){ .learn = learn };
	idmap_init(&l->ids, CGROUPS_LOOK_MAX);
}

void cgroups_look_done(struct cgroups_look *l)
{
	cgroups_walk_free(l->walk);
	l->walk = NULL;
	idmap_done(&l->ids);
}

/* Changes the value of each id from `from` to `to`; NULL: removes the id. */
static void turn_ids(struct cgroups_look *l, void *from, void *to)
{
	struct idmap fresh;
	uint64_t id;
	void *is;

	idmap_init(&fresh, CGROUPS_LOOK_MAX);
	idmap_for_each (&l->ids, i, id, is) {
		if (is == from)
			is = to;
		/* -ENOMEM: callers that wait for this id stop waiting. */
		if (is)
			(void)idmap_put(&fresh, id, is);
	}
	idmap_done(&l->ids);
	l->ids = fresh;
}

static bool is_open(const void *is)
{
	return is == &is_sought || is == &is_walked_for;
}

/* Keeps `is` for the id; without space, drops the ids that were not found. */
static void keep_id(struct cgroups_look *l, uint64_t id, void *is)
{
	if (l->ids.count == CGROUPS_LOOK_MAX)
		turn_ids(l, &is_not_found, NULL);
	(void)idmap_put(&l->ids, id, is);
}

void cgroups_look_for(struct cgroups *c, uint64_t id)
{
	struct cgroups_look *l = &c->look;

	if (idmap_get(&l->ids, id))
		return;
	keep_id(l, id, &is_sought);
	l->sought += idmap_get(&l->ids, id) != NULL;
}

bool cgroups_look_awaits(const struct cgroups *c, uint64_t id)
{
	return is_open(idmap_get(&c->look.ids, id));
}

/* Takes the id out of the table. */
static void take_out(struct cgroups_look *l, uint64_t id)
{
	if (idmap_remove(&l->ids, id) == &is_sought)
		l->sought--;
}

void cgroups_look_found(struct cgroups *c, uint64_t id)
{
	if (c->look.ids.count)
		take_out(&c->look, id);
}

void cgroups_look_gone(struct cgroups *c, uint64_t id)
{
	take_out(&c->look, id);
	keep_id(&c->look, id, &is_not_found);
}

void cgroups_look_again(struct cgroups *c)
{
	turn_ids(&c->look, &is_not_found, NULL);
}

static void end_walk(struct cgroups_look *l)
{
	uint64_t now_ns = clock_mono_ns();

	cgroups_walk_free(l->walk);
	l->walk = NULL;
	l->due_ns = now_ns +
		    MAX((uint64_t)CGROUPS_LOOK_EVERY_NS, PAUSE_OF_WALK * (now_ns - l->began_ns));
	turn_ids(l, &is_walked_for, &is_not_found);
}

/* Begins a walk for all ids that are sought. Returns false if it fails at once. */
static bool begin_walk(struct cgroups *c)
{
	struct cgroups_look *l = &c->look;

	l->began_ns = clock_mono_ns();
	turn_ids(l, &is_sought, &is_walked_for);
	l->sought = 0;
	if (cgroups_walk_new(c, l->learn, c, &l->walk) == 0)
		return true;
	end_walk(l);
	return false;
}

uint64_t cgroups_look_step(struct cgroups *c, uint64_t until_ns)
{
	struct cgroups_look *l = &c->look;
	uint64_t now_ns = clock_mono_ns();

	if (!l->walk && (!l->sought || now_ns < l->due_ns || !begin_walk(c)))
		return l->sought ? l->due_ns : 0;
	if (cgroups_walk_step(l->walk, until_ns) > 0)
		return now_ns;
	end_walk(l);
	return l->sought ? l->due_ns : 0;
}
