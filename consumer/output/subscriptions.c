/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/subscriptions.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define FIRST_BYTES 65536u

struct subscription {
	uint64_t id; /* 0: free */
	uint64_t connection;
	uint64_t asked_ns;
	char *data; /* owned; grows: [taken, bytes) is held */
	size_t taken, bytes, space;
	uint64_t omitted; /* lines that did not fit */
};

struct subscriptions {
	pthread_mutex_t mutex;
	unsigned int count; /* changed under the mutex, read without it */
	uint64_t last_id;
	struct subscription items[SUBSCRIPTIONS_MAX];
};

int subscriptions_new(struct subscriptions **ret_subscriptions)
{
	struct subscriptions *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->mutex, NULL);
	*ret_subscriptions = s;
	return 0;
}

static void give_up(struct subscriptions *s, struct subscription *one)
{
	free(one->data);
	*one = (struct subscription){ 0 };
	__atomic_sub_fetch(&s->count, 1, __ATOMIC_RELAXED);
}

void subscriptions_free(struct subscriptions *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
		free(s->items[i].data);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

/* Reserves space for `more` bytes at the end; moves the held lines to the front. */
static bool reserve_bytes(struct subscription *one, size_t more)
{
	size_t held = one->bytes - one->taken, space = one->space ? one->space : FIRST_BYTES;
	char *larger;

	if (held + more > SUBSCRIPTIONS_BYTES)
		return false;
	if (one->taken) {
		memmove(one->data, one->data + one->taken, held);
		one->bytes = held;
		one->taken = 0;
	}
	while (space < held + more)
		space *= 2;
	if (space == one->space)
		return true;
	larger = realloc(one->data, space);
	if (!larger)
		return false;
	one->data = larger;
	one->space = space;
	return true;
}

/*
 * Frees the subscriptions of clients that stopped asking, so that they do not hold memory for ever.
 */
static void expire_subscriptions(struct subscriptions *s, uint64_t now_ns)
{
	for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
		if (s->items[i].id && now_ns > s->items[i].asked_ns &&
		    now_ns - s->items[i].asked_ns > SUBSCRIPTIONS_NS)
			give_up(s, &s->items[i]);
}

void subscriptions_put(void *subscriptions, const char *data, size_t bytes, uint64_t lines)
{
	struct subscriptions *s = subscriptions;

	if (!__atomic_load_n(&s->count, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&s->mutex);
	expire_subscriptions(s, clock_mono_ns());
	for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
		struct subscription *one = &s->items[i];

		if (!one->id)
			continue;
		if (!reserve_bytes(one, bytes)) {
			one->omitted += lines;
			continue;
		}
		memcpy(one->data + one->bytes, data, bytes);
		one->bytes += bytes;
	}
	pthread_mutex_unlock(&s->mutex);
}

int subscriptions_open(struct subscriptions *s, uint64_t connection, uint64_t now_ns,
		       uint64_t *ret_id)
{
	struct subscription *place = NULL;

	pthread_mutex_lock(&s->mutex);
	expire_subscriptions(s, now_ns);
	for (size_t i = 0; i < SUBSCRIPTIONS_MAX && !place; i++)
		if (!s->items[i].id)
			place = &s->items[i];
	if (place) {
		place->id = ++s->last_id;
		place->connection = connection;
		place->asked_ns = now_ns;
		__atomic_add_fetch(&s->count, 1, __ATOMIC_RELAXED);
		*ret_id = place->id;
	}
	pthread_mutex_unlock(&s->mutex);
	return place ? 0 : -EBUSY;
}

void subscriptions_close(void *subscriptions, uint64_t connection)
{
	struct subscriptions *s = subscriptions;

	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
		if (s->items[i].id && s->items[i].connection == connection)
			give_up(s, &s->items[i]);
	pthread_mutex_unlock(&s->mutex);
}

/* Writes the held lines, which are complete: each ends with its '\n'. */
static void take_lines(struct subscription *one, struct jsonw *w)
{
	size_t stop = MIN(one->bytes, one->taken + SUBSCRIPTIONS_TAKE);

	jsonw_array(w, "lines");
	while (one->taken < stop) {
		const char *line = one->data + one->taken;
		const char *end = memchr(line, '\n', one->bytes - one->taken);

		jsonw_raw(w, NULL, line, (size_t)(end - line));
		one->taken += (size_t)(end - line) + 1;
	}
	jsonw_array_end(w);
	jsonw_u64(w, "omitted", one->omitted);
	jsonw_bool(w, "more", one->taken < one->bytes);
	one->omitted = 0;
}

int subscriptions_take(struct subscriptions *s, uint64_t connection, uint64_t id, uint64_t now_ns,
		       struct jsonw *w)
{
	int r = -ENOENT;

	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; id && i < SUBSCRIPTIONS_MAX; i++) {
		if (s->items[i].id != id || s->items[i].connection != connection)
			continue;
		s->items[i].asked_ns = now_ns;
		take_lines(&s->items[i], w);
		r = 0;
	}
	pthread_mutex_unlock(&s->mutex);
	return r;
}
