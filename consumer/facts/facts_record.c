/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_record.h"

#include <stdlib.h>

void facts_record_done(struct facts_record *h)
{
	facts_place_done(&h->place);
	free(h->points);
	*h = (struct facts_record){};
}

bool facts_record_wants(const struct facts_record *h, uint64_t now_ns)
{
	return !h->read_ns || now_ns - h->read_ns >= FACTS_APART_NS;
}

/* Returns the point that is `age` points older than the newest. */
static const struct facts *find_point(const struct facts_record *h, uint32_t age)
{
	return &h->points[(h->newest + FACTS_POINTS - age) % FACTS_POINTS];
}

static void add_point(struct facts_record *h, const struct facts *facts)
{
	if (!h->points)
		h->points = calloc(FACTS_POINTS, sizeof(*h->points));
	if (!h->points)
		return;
	h->newest = (h->newest + 1) % FACTS_POINTS;
	h->points[h->newest] = *facts;
	h->count = MIN(h->count + 1, (uint32_t)FACTS_POINTS);
}

/* Takes ownership of `place`. Readings of another place cannot be compared: drops them. */
static void move_to(struct facts_record *h, struct facts_place *place, uint64_t now_ns)
{
	if (!facts_place_same(&h->place, place))
		h->count = 0;
	facts_place_done(&h->place);
	h->place = *place;
	h->placed_ns = now_ns;
}

void facts_record_read(struct facts_record *h, struct facts_reader *reader, const char *path,
		       enum facts_depth depth, uint64_t now_ns)
{
	struct facts_place place;
	struct facts facts;

	h->read_ns = now_ns;
	if (!h->placed_ns || now_ns - h->placed_ns >= FACTS_PLACE_NS) {
		if (facts_reader_place(reader, path, &place) < 0)
			return;
		move_to(h, &place, now_ns);
	}
	facts_reader_read(reader, path, &h->place, depth, &facts);
	add_point(h, &facts);
}

void facts_record_add(struct facts_record *h, const struct facts_place *place,
		      const struct facts *facts)
{
	struct facts_place copy;

	if (facts_place_copy(place, &copy) < 0)
		return;
	move_to(h, &copy, facts->time_ns);
	add_point(h, facts);
	h->read_ns = facts->time_ns;
}

const struct facts *facts_record_until(const struct facts_record *h, uint64_t time_ns)
{
	for (uint32_t age = 0; age < h->count; age++)
		if (find_point(h, age)->time_ns <= time_ns)
			return find_point(h, age);
	return NULL;
}

const struct facts *facts_record_from(const struct facts_record *h, uint64_t time_ns)
{
	for (uint32_t age = h->count; age-- > 0;)
		if (find_point(h, age)->time_ns >= time_ns)
			return find_point(h, age);
	return NULL;
}
