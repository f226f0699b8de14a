/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/wait_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/sampling/wait_objects.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

void wait_places_init(struct wait_places *p)
{
	*p = (struct wait_places){};
	idmap_init(&p->by_hash, WAIT_PLACES_MAX);
}

void wait_places_done(struct wait_places *p)
{
	idmap_done(&p->by_hash);
	free(TAKE_PTR(p->rows));
	p->count = p->space = 0;
}

static uint64_t key_of(uint32_t tgid, const char *comm, uint8_t part)
{
	char name[COMM_BYTES + 1] = "";
	uint64_t key;

	memcpy(name, comm, COMM_BYTES);
	key = (idmap_text_key(name) ^ (uint64_t)tgid << 8 ^ part) * 0x9e3779b97f4a7c15ULL;
	return key ? key : 1;
}

static bool is_row(const struct wait_place *row, uint32_t tgid, const char *comm, uint8_t part)
{
	return row->tgid == tgid && row->part == part &&
	       !strncmp(row->comm, comm, sizeof(row->comm));
}

/* Two keys with the same hash share a place: the place of the first. */
static struct wait_place *find_row(const struct wait_places *p, uint32_t tgid, const char *comm,
				   uint8_t part)
{
	size_t number = (size_t)(uintptr_t)idmap_get(&p->by_hash, key_of(tgid, comm, part));

	if (!number || !is_row(&p->rows[number - 1], tgid, comm, part))
		return NULL;
	return &p->rows[number - 1];
}

static struct wait_place *make_row(struct wait_places *p, const struct stack *stack)
{
	uint64_t key = key_of(stack->tgid, stack->comm, stack->wait);

	if (idmap_get(&p->by_hash, key))
		return NULL;
	if (array_reserve(&p->rows, &p->space, p->count + 1, sizeof(*p->rows)) < 0)
		return NULL;
	if (idmap_put(&p->by_hash, key, (void *)(uintptr_t)(p->count + 1)) < 0)
		return NULL;
	p->rows[p->count] = (struct wait_place){ .tgid = stack->tgid, .part = stack->wait };
	memcpy(p->rows[p->count].comm, stack->comm, COMM_BYTES);
	return &p->rows[p->count++];
}

/* Takes the stack as the representative if it weighs more than the previous one. */
static void take_stack(struct wait_place *row, const struct stack *stack,
		       const struct known_wait *wait)
{
	bool busy = !wait->idle;

	if (busy < row->busy || (busy == row->busy && stack->weight_ns < row->heaviest_ns))
		return;
	row->busy = busy;
	row->heaviest_ns = stack->weight_ns;
	row->state = wait->state;
	row->fn = wait->frame ? wait->frame->fn : NULL;
	row->module = wait->frame ? wait->frame->module : NULL;
	row->line = wait->frame ? wait->frame->line : 0;
	memcpy(row->callers, wait->callers, sizeof(row->callers));
	row->on = wait->on;
}

void wait_places_add(struct wait_places *p, const struct stack *stack,
		     const struct known_wait *wait)
{
	struct wait_place *row;

	if (stack->phase != PHASE_DURING || stack->wait < WAIT_BLOCKED)
		return;
	row = find_row(p, stack->tgid, stack->comm, stack->wait);
	if (!row)
		row = make_row(p, stack);
	if (!row) {
		p->left_out++;
		return;
	}
	row->weight_ns += stack->weight_ns;
	row->idle_ns += wait->idle ? stack->weight_ns : 0;
	row->condition_ns += wait->condition ? stack->weight_ns : 0;
	take_stack(row, stack, wait);
}

const struct wait_place *wait_places_find(const struct wait_places *p, uint32_t tgid,
					  const char *comm, uint8_t part)
{
	return find_row(p, tgid, comm, part);
}

bool wait_place_is_idle(const struct wait_place *place)
{
	return place->idle_ns * 2 > place->weight_ns;
}

bool wait_place_is_condition(const struct wait_place *place)
{
	return place->condition_ns * 2 > place->weight_ns;
}

int wait_place_say(const struct wait_place *place, char *text, size_t space)
{
	size_t n = 0;

	if (place->on && wait_objects_is_asked(place->on)) {
		n += (size_t)snprintf(text, space, " for answers of ");
		if (n < space)
			n += (size_t)wait_objects_say_peer(place->on, text + n, space - n);
	}
	if (n < space)
		n += (size_t)snprintf(text + n, space - n, " in %.100s",
				      place->fn ? place->fn : "unnamed code");
	if (n < space)
		n += (size_t)frame_name_say_line(place->module, place->line, text + n, space - n);
	for (int i = 0; i < KNOWN_WAIT_CALLERS && place->callers[i] && n < space; i++)
		n += (size_t)snprintf(text + n, space - n, "%s%.60s", i ? ", " : " (called by ",
				      place->callers[i]);
	if (place->callers[0] && n < space)
		n += (size_t)snprintf(text + n, space - n, ")");
	if (place->on && n < space)
		n += (size_t)wait_objects_say_object(place->on, text + n, space - n);
	return (int)MIN(n, space ? space - 1 : 0);
}
