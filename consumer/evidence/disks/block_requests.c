/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/disks/block_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signals/counter_keys.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const char *const ops[] = {
#define BLOCK_OP(id, json, help) [BLOCK_##id] = (json),
#include "shared/abi/block_ops.def"
#undef BLOCK_OP
};
_Static_assert(ARRAY_SIZE(ops) == BLOCK_OPS_, "a row for each");

const char *block_requests_op_name(enum block_op op)
{
	return ops[op];
}

uint64_t block_requests_size_bytes(unsigned int size)
{
	return size < BLOCK_SIZES - 1 ? 1ull << (BLOCK_SIZE_SHIFT + 2 * size) : 0;
}

/* ---- counts of the session: the difference of two readings */

struct gain {
	struct block_key key;
	struct block_times times;
};

struct gains {
	struct gain *items; /* owned */
	size_t count;
};

static void forget_gains(struct gains *gains)
{
	free(gains->items);
}

static void subtract_sums(const struct block_sums *before, const struct block_sums *now,
			  struct block_times *ret_times)
{
	*ret_times = (struct block_times){
		.requests = counter_keys_growth(before->requests, now->requests),
		.bytes = counter_keys_growth(before->bytes, now->bytes),
		.queue_ns = counter_keys_growth(before->queue_ns, now->queue_ns),
		.service_ns = counter_keys_growth(before->service_ns, now->service_ns),
		.longest_ns = now->longest_ns > before->longest_ns ? now->longest_ns : 0,
		.errors = counter_keys_growth(before->errors, now->errors),
		.error_ns = counter_keys_growth(before->error_ns, now->error_ns),
		.merges = counter_keys_growth(before->merges, now->merges),
		.unseen = counter_keys_growth(before->unissued, now->unissued),
	};
	for (int i = 0; i < QUEUE_BUCKETS; i++) {
		ret_times->queue[i] = counter_keys_growth(before->queue[i], now->queue[i]);
		ret_times->service[i] = counter_keys_growth(before->service[i], now->service[i]);
	}
}

/*
 * The kernel side's tables may hold anything that a compromised consumer wrote: check every value.
 */
static bool is_sane(const struct block_key *key)
{
	return key->op < BLOCK_OPS_ && key->size < BLOCK_SIZES;
}

static int find_gains(const struct block_reading *before, const struct block_reading *now,
		      struct gains *ret_gains)
{
	static const struct block_sums none;
	_cleanup_(counter_keys_done) struct counter_keys known = {};
	int r = counter_keys_sort(before->keys, before->n_sums, sizeof(*before->keys), &known);

	*ret_gains = (struct gains){ .items = calloc(MAX(now->n_sums, 1u), sizeof(struct gain)) };
	if (r < 0 || !ret_gains->items)
		return -ENOMEM;
	for (uint32_t i = 0; i < now->n_sums; i++) {
		struct gain *gain = &ret_gains->items[ret_gains->count];

		if (!is_sane(&now->keys[i]))
			continue;
		gain->key = now->keys[i];
		subtract_sums(counter_keys_value(&known, &gain->key, before->sums,
						 sizeof(*before->sums), &none),
			      &now->sums[i], &gain->times);
		ret_gains->count += gain->times.requests || gain->times.merges;
	}
	return 0;
}

/* ---- the disks of the session */

static void add_times(struct block_times *to, const struct block_times *more)
{
	to->requests += more->requests;
	to->bytes += more->bytes;
	to->queue_ns += more->queue_ns;
	to->service_ns += more->service_ns;
	to->longest_ns = MAX(to->longest_ns, more->longest_ns);
	to->errors += more->errors;
	to->error_ns += more->error_ns;
	to->merges += more->merges;
	to->unseen += more->unseen;
	for (int i = 0; i < QUEUE_BUCKETS; i++) {
		to->queue[i] += more->queue[i];
		to->service[i] += more->service[i];
	}
}

static struct block_disk *find_disk(const struct block_requests *all, uint32_t device, uint8_t op)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].device == device && all->items[i].op == op)
			return &all->items[i];
	return NULL;
}

/* Returns the element of the disk and operation; `items` has space for it. */
static struct block_disk *get_disk(struct block_requests *all, uint32_t device, uint8_t op)
{
	struct block_disk *disk = find_disk(all, device, op);

	if (disk)
		return disk;
	disk = &all->items[all->count++];
	disk->device = device;
	disk->op = (enum block_op)op;
	return disk;
}

static void add_own(struct block_requests *all, const struct gain *gain)
{
	struct block_disk *disk = get_disk(all, gain->key.device, gain->key.op);

	add_times(&disk->all, &gain->times);
	add_times(&disk->sizes[gain->key.size], &gain->times);
	if (gain->key.flags & BLOCK_WRITEBACK) {
		disk->written_back += gain->times.requests;
		disk->written_back_bytes += gain->times.bytes;
	}
	all->ledger.emitted += gain->times.requests;
}

static void add_open(struct block_requests *all, const struct block_request *r, uint64_t now_ns)
{
	struct block_disk *disk = get_disk(all, r->device, r->op);

	disk->open++;
	disk->open_issued += r->issued_ns > 0;
	disk->open_ns = MAX(disk->open_ns, now_ns - MIN(now_ns, r->since_ns));
	all->ledger.emitted++;
}

static void add_everybody(const struct block_requests *all, const struct gain *gain)
{
	struct block_disk *disk = find_disk(all, gain->key.device, gain->key.op);

	if (!disk)
		return;
	disk->everybody_requests += gain->times.requests;
	disk->everybody_bytes += gain->times.bytes;
	disk->everybody_service_ns += gain->times.service_ns;
}

static uint64_t time_of(const struct block_disk *d)
{
	return d->all.queue_ns + d->all.service_ns + d->open_ns;
}

static int compare_disks(const void *a, const void *b)
{
	const struct block_disk *x = a, *y = b;

	if (time_of(x) != time_of(y))
		return time_of(x) < time_of(y) ? 1 : -1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

/* Sums up the disks that have no line of their own. */
static void cut_disks(struct block_requests *all)
{
	for (size_t i = BLOCK_DISKS; i < all->count; i++)
		add_times(&all->rest_times, &all->items[i].all);
	all->rest = all->count - MIN(all->count, (size_t)BLOCK_DISKS);
	all->count -= all->rest;
}

static int make_disks(const struct gains *gains, const struct block_reading *now,
		      const struct slot_owner *owner, struct block_requests *all)
{
	all->items = calloc(gains->count + now->n_open + 1, sizeof(*all->items));
	if (!all->items)
		return -ENOMEM;
	for (size_t i = 0; i < gains->count; i++)
		if (owner->is_own(owner->context, gains->items[i].key.slot))
			add_own(all, &gains->items[i]);
	for (uint32_t i = 0; i < now->n_open; i++)
		if (now->open[i].op < BLOCK_OPS_ &&
		    owner->is_own(owner->context, now->open[i].slot))
			add_open(all, &now->open[i], now->at_ns);
	for (size_t i = 0; i < gains->count; i++)
		add_everybody(all, &gains->items[i]);
	array_sort(all->items, all->count, sizeof(*all->items), compare_disks);
	return 0;
}

/* ---- other users of the disks */

static int compare_neighbours(const void *a, const void *b)
{
	const struct block_neighbour *x = a, *y = b;

	if (x->service_ns != y->service_ns)
		return x->service_ns < y->service_ns ? 1 : -1;
	if (x->row.cgroup_id != y->row.cgroup_id)
		return x->row.cgroup_id < y->row.cgroup_id ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

static int compare_devices(const void *a, const void *b)
{
	const struct block_neighbour *x = a, *y = b;

	return x->device < y->device ? -1 : x->device > y->device;
}

static int compare_gains(const void *a, const void *b)
{
	const struct block_key *x = &((const struct gain *)a)->key;
	const struct block_key *y = &((const struct gain *)b)->key;

	if (x->cgroup_id != y->cgroup_id)
		return x->cgroup_id < y->cgroup_id ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

/*
 * Adds to the last neighbour of the list if it is the same cgroup and disk: the gains are sorted.
 */
static void add_neighbour(struct block_neighbour *list, size_t *count, const struct gain *gain)
{
	struct block_neighbour *last;

	if (!*count || list[*count - 1].device != gain->key.device ||
	    list[*count - 1].row.cgroup_id != gain->key.cgroup_id)
		list[(*count)++] = (struct block_neighbour){ .device = gain->key.device,
							     .row.cgroup_id = gain->key.cgroup_id };
	last = &list[*count - 1];
	last->requests += gain->times.requests;
	last->bytes += gain->times.bytes;
	last->service_ns += gain->times.service_ns;
}

static bool uses_device(const struct block_requests *all, uint32_t device)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].device == device)
			return true;
	return false;
}

/* Returns how long the disk worked for all cgroups. */
static uint64_t sum_service_ns(const struct gains *gains, uint32_t device)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < gains->count; i++)
		if (gains->items[i].key.device == device)
			ns += gains->items[i].times.service_ns;
	return ns;
}

static void add_to(void *sum, const void *more)
{
	struct block_neighbour *to = sum;
	const struct block_neighbour *n = more;

	to->requests += n->requests;
	to->bytes += n->bytes;
	to->service_ns += n->service_ns;
}

/* Lists the neighbours by cgroup. Sorts the gains. */
static int list_neighbours(struct gains *gains, const struct slot_owner *owner,
			   struct block_requests *all)
{
	all->neighbours = calloc(MAX(gains->count, (size_t)1), sizeof(*all->neighbours));
	if (!all->neighbours)
		return -ENOMEM;
	array_sort(gains->items, gains->count, sizeof(*gains->items), compare_gains);
	for (size_t i = 0; i < gains->count; i++) {
		const struct gain *gain = &gains->items[i];

		if (gain->key.cgroup_id && uses_device(all, gain->key.device) &&
		    !owner->is_own(owner->context, gain->key.slot))
			add_neighbour(all->neighbours, &all->n_neighbours, gain);
	}
	for (size_t i = 0; i < all->count; i++)
		all->items[i].device_service_ns = sum_service_ns(gains, all->items[i].device);
	return 0;
}

static uint64_t find_service_ns(const struct block_requests *all, uint32_t device)
{
	for (size_t i = 0; i < all->count + all->rest; i++)
		if (all->items[i].device == device)
			return all->items[i].device_service_ns;
	return 0;
}

void block_requests_close(struct block_requests *all, const struct neighbour_names *names)
{
	static const struct neighbour_rows_kind kind = {
		.bytes = sizeof(struct block_neighbour),
		.named = BLOCK_NEIGHBOURS,
		.compare = compare_neighbours,
		.compare_kind = compare_devices,
		.add = add_to,
	};

	all->n_neighbours =
		neighbour_rows_make(all->neighbours, all->n_neighbours, &kind, names, &all->more);
	all->more_neighbours = all->more.row.cgroups;
	for (size_t i = 0; i < all->n_neighbours; i++)
		all->neighbours[i].disk_service_ns =
			find_service_ns(all, all->neighbours[i].device);
}

/*
 * A request is an attempt. A lost request with a reused bio has neither of the two table reasons.
 */
static void close_ledger(const struct slot_block *before, const struct slot_block *now,
			 struct ledger *l)
{
	uint64_t reused = counter_keys_growth(before->reused, now->reused);
	uint64_t lost = counter_keys_growth(before->untracked, now->untracked) +
			counter_keys_growth(before->unlisted, now->unlisted);

	l->lost[DROP_END_UNSEEN] = MIN(reused, lost);
	ledger_lose(l, DROP_REQUESTS_FULL, lost - MIN(reused, lost),
		    counter_keys_growth(before->no_memory, now->no_memory));
	l->attempted = l->emitted + ledger_lost(l);
}

int block_requests_make(const struct block_reading *before, const struct block_reading *now,
			const struct slot_owner *owner, struct block_requests *ret_requests)
{
	_cleanup_(forget_gains) struct gains gains = {};
	struct block_requests all = {};
	int r = find_gains(before, now, &gains);

	if (r == 0)
		r = make_disks(&gains, now, owner, &all);
	if (r == 0)
		r = list_neighbours(&gains, owner, &all);
	if (r < 0) {
		block_requests_done(&all);
		return r;
	}
	cut_disks(&all);
	close_ledger(&before->losses, &now->losses, &all.ledger);
	*ret_requests = all;
	return 0;
}

void block_requests_done(struct block_requests *all)
{
	free(TAKE_PTR(all->items));
	for (size_t i = 0; i < all->n_neighbours; i++)
		free(all->neighbours[i].row.path);
	free(TAKE_PTR(all->neighbours));
	all->count = all->n_neighbours = 0;
}

struct block_times block_requests_sum(const struct block_requests *all)
{
	struct block_times sum = all->rest_times;

	for (size_t i = 0; i < all->count; i++)
		add_times(&sum, &all->items[i].all);
	return sum;
}
