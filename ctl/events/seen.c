/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/seen.h"

/* Without padding, as all keys of pools. */
struct line {
	uint64_t hash; /* of the object with the time, or of the whole line */
	uint64_t mono_ns;
	uint32_t group, part; /* part: lines of `trocar symbolize` share a time */
};

void seen_init(struct seen *s, struct pool_budget *budget)
{
	pool_init(&s->lines, budget);
}

void seen_done(struct seen *s)
{
	pool_done(&s->lines);
}

static uint64_t hash_text(uint64_t before, const struct json_text *text)
{
	uint64_t both[] = { before, text->data ? pool_hash(text->data, text->bytes) : 0 };

	return pool_hash(both, sizeof(both));
}

/* Returns a hash of the origin of a time: two hosts, or two boots of one, may have equal times. */
static uint64_t hash_owner(const struct event *event)
{
	uint64_t hash = hash_text(0, &event->type_text);

	hash = hash_text(hash, &event->boot_id);
	hash = hash_text(hash, &event->session);
	return hash_text(hash, &event->rule);
}

int seen_note(struct seen *s, const struct event *event, const char *line, size_t bytes,
	      uint32_t group, bool *ret_again)
{
	struct line key = {
		.hash = event->mono_ns ? hash_owner(event) : pool_hash(line, bytes),
		.mono_ns = event->mono_ns,
		.group = group,
		.part = (uint32_t)event->part,
	};
	uint32_t before = s->lines.count, number;
	int r = pool_put(&s->lines, &key, sizeof(key), &number);

	if (r < 0)
		return r;
	*ret_again = s->lines.count == before;
	return 0;
}
