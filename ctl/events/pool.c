/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "shared/tools/macro.h"

#define FIRST_ITEMS 256u
#define ITEMS_MAX   (1u << 30)
#define FIRST_BYTES 65536u

static uint64_t seed = 0x9e3779b97f4a7c15ULL;

void pool_seed(void)
{
	static bool seeded;
	uint64_t fresh;

	if (seeded)
		return;
	seeded = true;
	/* Without a seed hashes are only predictable: lookups may be slow, never wrong. */
	if (getrandom(&fresh, sizeof(fresh), GRND_NONBLOCK) == sizeof(fresh))
		seed = fresh | 1;
}

/* Folds the two halves of a 128-bit product, as wyhash does (github.com/wangyi-fudan/wyhash). */
static uint64_t mix_bits(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t pool_hash(const void *data, size_t bytes)
{
	const char *at = data;
	uint64_t hash = seed ^ bytes, a, b;
	size_t left;

	for (left = bytes; left >= 16; left -= 16, at += 16) {
		memcpy(&a, at, 8);
		memcpy(&b, at + 8, 8);
		hash = mix_bits(a ^ 0xa0761d6478bd642fULL ^ seed, b ^ hash);
	}
	a = b = 0;
	memcpy(&a, at, MIN(left, (size_t)8));
	if (left > 8)
		memcpy(&b, at + 8, left - 8);
	hash = mix_bits(a ^ 0xe7037ed1a0b428dbULL ^ seed, b ^ hash);
	return mix_bits(hash ^ 0x8ebc6af09c88c6e3ULL, seed ^ bytes);
}

void pool_init(struct pool *p, struct pool_budget *budget)
{
	*p = (struct pool){ .budget = budget };
}

void pool_done(struct pool *p)
{
	if (!p->budget)
		return;
	p->budget->used_bytes -= p->data_space + (uint64_t)p->space * sizeof(*p->items) +
				 (uint64_t)p->n_places * sizeof(*p->places);
	free(p->data);
	free(p->items);
	free(p->places);
	pool_init(p, p->budget);
}

static int charge_budget(struct pool_budget *budget, uint64_t bytes)
{
	if (bytes > budget->max_bytes - budget->used_bytes)
		return -ENOSPC;
	budget->used_bytes += bytes;
	return 0;
}

int pool_grow(struct pool_budget *budget, void **array, uint32_t *space, uint32_t count,
	      size_t each)
{
	uint64_t more = *space ? *space : FIRST_ITEMS;
	uint64_t extra;
	void *larger;
	int r;

	if (count <= *space)
		return 0;
	if (count > ITEMS_MAX)
		return -ENOSPC;
	while (more < count)
		more *= 2;
	extra = (more - *space) * each;
	r = charge_budget(budget, extra);
	if (r < 0)
		return r;
	larger = realloc(*array, more * each);
	if (!larger) {
		budget->used_bytes -= extra;
		return -ENOMEM;
	}
	memset((char *)larger + *space * each, 0, extra);
	*array = larger;
	*space = (uint32_t)more;
	return 0;
}

static int grow_data(struct pool *p, uint64_t bytes)
{
	uint64_t space = p->data_space ? p->data_space : FIRST_BYTES;
	char *larger;
	int r;

	if (bytes <= p->data_space)
		return 0;
	while (space < bytes)
		space *= 2;
	r = charge_budget(p->budget, space - p->data_space);
	if (r < 0)
		return r;
	larger = realloc(p->data, space);
	if (!larger) {
		p->budget->used_bytes -= space - p->data_space;
		return -ENOMEM;
	}
	p->data = larger;
	p->data_space = space;
	return 0;
}

/* At least doubles the number of places, and inserts all items again. */
static int grow_places(struct pool *p)
{
	uint32_t n = p->n_places ? p->n_places * 2 : FIRST_ITEMS * 2;
	struct pool_place *places;
	int r;

	if (p->count < p->n_places / 2)
		return 0;
	r = charge_budget(p->budget, (uint64_t)(n - p->n_places) * sizeof(*places));
	if (r < 0)
		return r;
	places = calloc(n, sizeof(*places));
	if (!places) {
		p->budget->used_bytes -= (uint64_t)(n - p->n_places) * sizeof(*places);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->count; i++) {
		uint32_t place = p->items[i].hash & (n - 1);

		while (places[place].item)
			place = (place + 1) & (n - 1);
		places[place] = (struct pool_place){ i + 1, p->items[i].hash };
	}
	free(p->places);
	p->places = places;
	p->n_places = n;
	return 0;
}

static int add_item(struct pool *p, const void *data, size_t bytes, uint32_t hash)
{
	struct pool_item item = { .offset = p->data_bytes, .bytes = (uint32_t)bytes, .hash = hash };
	int r;

	r = pool_grow(p->budget, (void **)&p->items, &p->space, p->count + 1, sizeof(*p->items));
	if (r < 0)
		return r;
	r = grow_data(p, p->data_bytes + bytes + 8);
	if (r < 0)
		return r;
	if (bytes)
		memcpy(p->data + p->data_bytes, data, bytes);
	memset(p->data + p->data_bytes + bytes, 0, 8);
	p->data_bytes = ALIGN_UP(p->data_bytes + bytes + 1, (uint64_t)8);
	p->items[p->count++] = item;
	return 0;
}

/* Returns the place of these bytes, or the free place for them. Needs one free place. */
static uint32_t find_place(const struct pool *p, const void *data, size_t bytes, uint32_t hash)
{
	uint32_t mask = p->n_places - 1, place;

	for (place = hash & mask; p->places[place].item; place = (place + 1) & mask) {
		const struct pool_item *item;

		if (p->places[place].hash != hash)
			continue;
		item = &p->items[p->places[place].item - 1];
		if (item->bytes == bytes &&
		    (!bytes || !memcmp(p->data + item->offset, data, bytes)))
			break;
	}
	return place;
}

static uint32_t hash_bytes(const void *data, size_t bytes)
{
	return (uint32_t)(pool_hash(data, bytes) >> 32);
}

int pool_find(const struct pool *p, const void *data, size_t bytes, uint32_t *ret_number)
{
	uint32_t place;

	if (!p->count)
		return -ENOENT;
	place = find_place(p, data, bytes, hash_bytes(data, bytes));
	if (!p->places[place].item)
		return -ENOENT;
	*ret_number = p->places[place].item - 1;
	return 0;
}

int pool_put(struct pool *p, const void *data, size_t bytes, uint32_t *ret_number)
{
	uint32_t hash = hash_bytes(data, bytes), place;
	int r;

	if (bytes > UINT32_MAX / 2)
		return -ENOSPC;
	r = grow_places(p);
	if (r < 0)
		return r;
	place = find_place(p, data, bytes, hash);
	if (!p->places[place].item) {
		r = add_item(p, data, bytes, hash);
		if (r < 0)
			return r;
		p->places[place] = (struct pool_place){ p->count, hash };
	}
	*ret_number = p->places[place].item - 1;
	return 0;
}

const void *pool_get(const struct pool *p, uint32_t number, size_t *ret_bytes)
{
	*ret_bytes = p->items[number].bytes;
	return p->data + p->items[number].offset;
}

const char *pool_text(const struct pool *p, uint32_t number)
{
	return p->data + p->items[number].offset;
}
