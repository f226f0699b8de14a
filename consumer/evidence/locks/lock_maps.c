/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/locks/lock_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/iterator.h"
#include "consumer/kernel/map_batch.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A growing array of elements. */
struct rows {
	void *items; /* owned */
	size_t bytes, count, space;
};

static int add_row(struct rows *r, const void *row)
{
	if (array_reserve(&r->items, &r->space, r->count + 1, r->bytes) < 0)
		return -ENOMEM;
	memcpy((char *)r->items + r->count++ * r->bytes, row, r->bytes);
	return 0;
}

/* A map with keys that begin with a struct lock_key. */
struct lock_map {
	int fd;
	enum table table;
	size_t key_bytes, value_bytes;
};

static struct lock_map map_of(const struct pinned_maps *pins, enum pinned_map map)
{
	bool wakers = map == PINNED_MAP_lock_wakers;

	return (struct lock_map){
		.fd = pins->signal_fd[map],
		.table = wakers ? TABLE_LOCK_WAKERS : TABLE_LOCKS,
		.key_bytes = wakers ? sizeof(struct lock_waker_key) : sizeof(struct lock_key),
		.value_bytes = wakers ? sizeof(struct lock_waker) : sizeof(struct lock_sums),
	};
}

/* A part of a map with its elements. */
struct elements {
	char keys[MAP_BATCH_PART * sizeof(struct lock_waker_key)];
	char values[MAP_BATCH_PART * sizeof(struct lock_sums)];
	struct map_part part;
};

static const struct lock_key *key_at(const struct lock_map *map, const struct elements *e,
				     uint32_t i)
{
	return (const struct lock_key *)(e->keys + i * map->key_bytes);
}

static int keep_part(const struct lock_map *map, const struct pinned_maps *pins, uint32_t slot,
		     const struct elements *e, struct rows *rows)
{
	char row[sizeof(struct lock_element)];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < e->part.count; i++) {
		if (!slot_nest_has(pins, key_at(map, e, i)->slot, slot))
			continue;
		memcpy(row, key_at(map, e, i), map->key_bytes);
		memcpy(row + map->key_bytes, e->values + i * map->value_bytes, map->value_bytes);
		r = add_row(rows, row);
	}
	return r;
}

static int read_map(const struct pinned_maps *pins, enum pinned_map which, uint32_t slot,
		    struct rows *rows)
{
	_cleanup_free_ struct elements *e = calloc(1, sizeof(*e));
	const struct lock_map map = map_of(pins, which);
	int r;

	if (!e)
		return -ENOMEM;
	do {
		r = map_batch_part(map.fd, e->keys, e->values, MAP_BATCH_PART, &e->part);
		if (r == 0)
			r = keep_part(&map, pins, slot, e, rows);
	} while (r == 0 && e->part.more);
	return r;
}

/* Context of take_open. */
struct opens {
	const struct pinned_maps *pins;
	uint32_t slot;
	struct rows *rows;
};

static ssize_t take_open(void *context, const uint8_t *data, size_t bytes)
{
	const struct opens *o = context;
	struct lock_record record;
	size_t at;
	int r;

	for (at = 0; bytes - at >= sizeof(record); at += sizeof(record)) {
		memcpy(&record, data + at, sizeof(record));
		if (!slot_nest_has(o->pins, record.lock.slot, o->slot))
			continue;
		r = add_row(o->rows, &record);
		if (r < 0)
			return r;
	}
	return (ssize_t)at;
}

int lock_maps_read(const struct pinned_maps *pins, uint32_t slot, struct lock_baseline *ret_read)
{
	struct rows locks = { .bytes = sizeof(struct lock_element) };
	struct rows wakers = { .bytes = sizeof(struct lock_waker_element) };
	struct rows open = { .bytes = sizeof(struct lock_record) };
	struct lock_baseline read = { .begin_ns = clock_mono_ns() };
	int r = read_map(pins, PINNED_MAP_locks, slot, &locks);

	if (r == 0)
		r = read_map(pins, PINNED_MAP_lock_wakers, slot, &wakers);
	if (r == 0)
		r = iterator_read(pins->lock_waits_path, take_open,
				  &(struct opens){ pins, slot, &open });
	if (r == 0)
		r = pinned_maps_signal(pins, PINNED_MAP_lock_losses, slot,
				       sizeof(read.losses) / sizeof(uint64_t),
				       (uint64_t *)&read.losses);
	read.locks = locks.items;
	read.n_locks = locks.count;
	read.wakers = wakers.items;
	read.n_wakers = wakers.count;
	read.open = open.items;
	read.n_open = open.count;
	if (r < 0)
		lock_maps_forget(&read);
	else
		*ret_read = read;
	return r;
}

/* Moves the keys of a part that no session takes to its front. */
static void choose_idle(const struct lock_map *map, const struct pinned_maps *pins,
			struct elements *e)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->part.count; i++)
		if (!slot_nest_is_captured(pins, key_at(map, e, i)->slot))
			memmove(e->keys + n++ * map->key_bytes, key_at(map, e, i), map->key_bytes);
	e->part.count = n;
}

static void remove_keys(const struct lock_map *map, const struct pinned_maps *pins,
			struct elements *e)
{
	if (e->part.count)
		bpf_map_delete_batch(map->fd, e->keys, &e->part.count, NULL);
	for (uint32_t i = 0; i < e->part.count; i++)
		table_share_remove(pins, map->table, key_at(map, e, i)->slot);
}

static void sweep_map(const struct pinned_maps *pins, enum pinned_map which, bool all)
{
	_cleanup_free_ struct elements *e = calloc(1, sizeof(*e));
	const struct lock_map map = map_of(pins, which);

	if (!e)
		return;
	do {
		if (map_batch_part(map.fd, e->keys, e->values, MAP_BATCH_PART, &e->part) < 0)
			return;
		if (!all)
			choose_idle(&map, pins, e);
		remove_keys(&map, pins, e);
	} while (e->part.more);
	if (all)
		table_share_reset(pins, map.table);
}

void lock_maps_sweep(const struct pinned_maps *pins, bool all)
{
	sweep_map(pins, PINNED_MAP_locks, all);
	sweep_map(pins, PINNED_MAP_lock_wakers, all);
}

void lock_maps_forget(struct lock_baseline *read)
{
	free(read->locks);
	free(read->wakers);
	free(read->open);
	*read = (struct lock_baseline){};
}
