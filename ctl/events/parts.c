/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int parts_init(struct parts *p, struct pool_budget *budget)
{
	*p = (struct parts){ .open = calloc(PARTS_OPEN_MAX, sizeof(*p->open)) };
	pool_init(&p->lacking, budget);
	return p->open ? 0 : -ENOMEM;
}

void parts_done(struct parts *p)
{
	pool_done(&p->lacking);
	free(p->open);
	p->open = NULL;
}

struct lacking {
	uint32_t session, id;
};

static int note_lacking(struct parts *p, uint32_t session, uint32_t id)
{
	struct lacking lacking = { session, id };
	uint32_t number;

	return pool_put(&p->lacking, &lacking, sizeof(lacking), &number);
}

static int give_up(struct parts *p, struct parts_open *o)
{
	o->next = 0;
	return note_lacking(p, o->key.session, o->id);
}

/* Returns the place of the stack with this id; NULL: no part of it waits. */
static struct parts_open *find_open(const struct parts *p, uint32_t session, uint32_t id)
{
	for (size_t i = 0; i < PARTS_OPEN_MAX; i++) {
		struct parts_open *o = &p->open[i];

		if (o->next && o->key.session == session && o->id == id)
			return o;
	}
	return NULL;
}

/* Returns a free place, or the place of the stack that has waited longest. */
static struct parts_open *find_place(const struct parts *p)
{
	struct parts_open *oldest = &p->open[0];

	for (size_t i = 0; i < PARTS_OPEN_MAX; i++) {
		struct parts_open *o = &p->open[i];

		if (!o->next)
			return o;
		if (o->touched < oldest->touched)
			oldest = o;
	}
	return oldest;
}

static int begin_stack(struct parts *p, struct parts_open *o, struct store *store, uint32_t session,
		       const struct event *event)
{
	int r = o->next ? give_up(p, o) : 0;

	if (r == 0)
		r = store_key(store, session, event, &o->key, &o->value);
	if (r == 0)
		r = store_text(store, &event->stack_id, &o->id);
	if (r < 0)
		return r;
	o->next = 1;
	o->parts = event->parts;
	o->n = 0;
	return 0;
}

static int add_part(struct parts *p, struct parts_open *o, struct store *store,
		    const uint32_t *frames, uint32_t n)
{
	memcpy(o->frames + o->n, frames, n * sizeof(*frames));
	o->n += n;
	o->touched = ++p->taken;
	if (++o->next <= o->parts)
		return 0;
	o->next = 0;
	return store_count(store, &o->key, o->frames, o->n, &o->value);
}

int parts_take(struct parts *p, struct store *store, uint32_t session, const struct event *event,
	       const uint32_t *frames, uint32_t n)
{
	struct parts_open *o;
	uint32_t id;
	int r = store_text(store, &event->stack_id, &id);

	if (r < 0)
		return r;
	o = find_open(p, session, id);
	if (event->part == 1) {
		o = o ? o : find_place(p);
		r = begin_stack(p, o, store, session, event);
		if (r < 0)
			return r;
	}
	if (!o)
		return note_lacking(p, session, id);
	if (event->part != o->next || event->parts != o->parts || n > STORE_FRAMES_MAX - o->n)
		return give_up(p, o);
	return add_part(p, o, store, frames, n);
}

uint64_t parts_lacking(const struct parts *p)
{
	uint64_t n = p->lacking.count;

	for (size_t i = 0; i < PARTS_OPEN_MAX; i++)
		n += p->open[i].next > 0;
	return n;
}
