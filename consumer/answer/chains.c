/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/chains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/answer/chain_links.h"
#include "consumer/signals/pool_name.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/idmap.h"
#include "shared/tools/macro.h"

#define GROUPS_MAX 16384

/* A thread with an account, and its cached answers. */
struct walker {
	uint32_t group;
	size_t from, to; /* its waits */
	uint64_t running_ns, queue_ns, short_ns;
};

/* A lock in the proper sense: several threads want it, or it has a name. */
struct wanted_lock {
	uint64_t address;
	uint32_t tgid, number; /* index in the lock_waits, plus 1 */
};

/* Chains under construction. */
struct builder {
	const struct long_waits *w;
	const struct wait_places *places;
	struct walker *walkers;	   /* owned; by thread number */
	struct wanted_lock *locks; /* owned */
	size_t n_locks;
	struct idmap groups; /* hash of a name -> its number plus 1 */
	uint32_t n_groups;
	uint64_t steps;
	uint32_t path[CHAINS_LINKS + CHAINS_PASS + 1]; /* tids of the threads on the current path */
	uint32_t n_path;
	struct chains all;
};

/* Part of a wait: the wait and the interval. */
struct part {
	const struct long_wait *wait;
	uint64_t from_ns, to_ns;
};

/* ---- knowledge of threads and locks */

static uint32_t group_of(struct builder *b, const char *comm)
{
	char name[COMM_BYTES + 1] = "";
	uintptr_t number;
	uint64_t key;

	pool_name_of(comm, name);
	key = idmap_text_key(name);
	number = (uintptr_t)idmap_get(&b->groups, key);
	if (number)
		return (uint32_t)number;
	number = b->n_groups + 1;
	if (idmap_put(&b->groups, key, (void *)number) < 0)
		return 0;
	b->n_groups++;
	return (uint32_t)number;
}

static size_t first_wait(const struct long_waits *w, uint32_t tid)
{
	size_t low = 0, high = w->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->items[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void meet_thread(struct builder *b, size_t number)
{
	const struct long_waits_thread *t = &b->w->threads[number];
	struct walker *k = &b->walkers[number];
	uint64_t long_ns = 0, all_ns;

	k->group = group_of(b, t->comm);
	k->from = k->to = first_wait(b->w, t->tid);
	for (; k->to < b->w->count && b->w->items[k->to].tid == t->tid; k->to++)
		long_ns += b->w->items[k->to].end_ns - b->w->items[k->to].begin_ns;
	k->running_ns = t->part_ns[ACCOUNT_RUNNING];
	k->queue_ns = t->part_ns[ACCOUNT_QUEUE];
	all_ns = k->running_ns + k->queue_ns + long_ns;
	k->short_ns = t->wall_ns - MIN(all_ns, t->wall_ns);
}

static int compare_locks(const void *a, const void *b)
{
	const struct wanted_lock *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

/* Skips a nameless lock with one waiting thread: it may be just that thread's place to sleep. */
static int list_locks(struct builder *b, const struct lock_waits *locks,
		      const struct lock_name *names)
{
	size_t n = locks ? locks->count : 0;

	b->locks = calloc(n + 1, sizeof(*b->locks));
	if (!b->locks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct lock_waited *l = &locks->items[i];

		if (l->lock.tgid && l->lock.address &&
		    (l->threads > 1 || (names && names[i].symbol)))
			b->locks[b->n_locks++] =
				(struct wanted_lock){ l->lock.address, l->lock.tgid,
						      (uint32_t)i + 1 };
	}
	if (b->n_locks)
		qsort(b->locks, b->n_locks, sizeof(*b->locks), compare_locks);
	return 0;
}

static uint32_t lock_of(const struct builder *b, const struct long_wait *w)
{
	const struct wanted_lock wanted = { .address = w->address, .tgid = w->tgid }, *found = NULL;

	if (w->address && b->n_locks)
		found = bsearch(&wanted, b->locks, b->n_locks, sizeof(wanted), compare_locks);
	return found ? found->number : 0;
}

static const struct wait_place *place_of(const struct builder *b, const struct long_waits_thread *t,
					 uint8_t part)
{
	return b->places && t ? wait_places_find(b->places, t->tgid, t->comm, part) : NULL;
}

/* ---- nodes */

/* Compares the members that distinguish a node from its siblings. */
static bool is_same(const struct chain_node *a, const struct chain_node *b)
{
	return a->group == b->group && a->state == b->state && a->end == b->end &&
	       a->lock == b->lock && a->condition == b->condition && a->idle == b->idle;
}

/*
 * Returns the node of this kind below `parent`, creating it if needed; CHAINS_NO_NODE without
 * space.
 */
static uint32_t find_node(struct builder *b, uint32_t parent, const struct chain_node *kind)
{
	struct chain_node *nodes = b->all.nodes;
	uint32_t n;

	for (n = nodes[parent].child; n; n = nodes[n].next) {
		b->steps++;
		if (is_same(&nodes[n], kind))
			return n;
	}
	if (b->all.n_nodes == CHAINS_NODES) {
		b->all.partial = true;
		return CHAINS_NO_NODE;
	}
	n = b->all.n_nodes++;
	nodes[n] = *kind;
	nodes[n].parent = parent;
	nodes[n].next = nodes[parent].child;
	nodes[parent].child = n;
	return n;
}

static void add_time(struct chain_node *node, uint32_t tid, uint64_t ns)
{
	node->ns += ns;
	node->waits++;
	node->threads[tid / 64 % LOCK_THREAD_WORDS] |= 1ull << tid % 64;
	if (ns < node->longest_ns)
		return;
	node->longest_ns = ns;
	node->tid = tid;
}

static void add_end(struct builder *b, uint32_t parent, enum chain_end end, const char *comm,
		    uint64_t ns)
{
	struct chain_node kind = { .end = (uint8_t)end, .group = comm ? group_of(b, comm) : 0 };
	uint32_t n = find_node(b, parent, &kind);

	if (!n)
		return;
	add_time(&b->all.nodes[n], 0, ns);
	if (comm)
		memcpy(b->all.nodes[n].comm, comm, COMM_BYTES - 1);
}

/* Adds a thread's time outside long waits: it ran, waited for a CPU, or waited shortly. */
static void add_ran(struct builder *b, uint32_t parent, size_t thread, uint64_t ns)
{
	const struct walker *k = &b->walkers[thread];
	struct chain_node kind = { .end = CHAIN_END_RAN, .group = k->group };
	double all_ns = (double)(k->running_ns + k->queue_ns + k->short_ns);
	uint32_t n = find_node(b, parent, &kind);
	struct chain_node *node = &b->all.nodes[n];

	if (!n)
		return;
	add_time(node, b->w->threads[thread].tid, ns);
	if (all_ns > 0) {
		node->queue_ns += (uint64_t)((double)ns * (double)k->queue_ns / all_ns);
		node->short_ns += (uint64_t)((double)ns * (double)k->short_ns / all_ns);
	}
	node->running_ns = node->ns - MIN(node->queue_ns + node->short_ns, node->ns);
}

/* Returns the node for a wait of the thread below `parent`. */
static uint32_t find_wait(struct builder *b, uint32_t parent, size_t thread,
			  const struct long_wait *w)
{
	const struct wait_place *place = place_of(b, &b->w->threads[thread], w->part);
	struct chain_node kind = { .group = b->walkers[thread].group,
				   .state = place ? place->state : w->part,
				   .end = CHAIN_ENDS_ };

	kind.lock = w->part == ACCOUNT_LOCK ? lock_of(b, w) : 0;
	/* A thread that sleeps with a lock keeps other threads waiting. */
	if (w->part != ACCOUNT_SLEEP)
		kind.idle = place ? wait_place_is_idle(place) : w->part == ACCOUNT_IDLE;
	kind.condition = place && wait_place_is_condition(place);
	return find_node(b, parent, &kind);
}

/* ---- from a wait to the awaited thread */

static void follow_part(struct builder *b, uint32_t node, const struct part *part, uint32_t depth);

/*
 * Whether the awaited thread itself waited for this lock during the wait: then the lock's holder at
 * that time takes its place. A lock shared by processes has a different address in each.
 */
static bool is_same_lock(const struct builder *b, const struct long_wait *w,
			 const struct long_wait *v, size_t thread)
{
	const struct long_waits_thread *own = long_waits_thread(b->w, w->tid);

	if (w->part != ACCOUNT_LOCK || v->part != ACCOUNT_LOCK)
		return false;
	if (w->tgid == v->tgid)
		return w->address && w->address == v->address;
	return own && b->walkers[own - b->w->threads].group == b->walkers[thread].group;
}

/* Returns the index of the thread's last wait that begins before `ns`, or of its first wait. */
static size_t first_since(const struct builder *b, const struct walker *k, uint64_t ns)
{
	size_t low = k->from, high = k->to;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->w->items[middle].begin_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low > k->from ? low - 1 : low;
}

/* Adds the activity of a thread during `part`, while a thread of `node` waited for it. */
static void walk_thread(struct builder *b, uint32_t node, const struct part *part, size_t thread,
			uint32_t depth)
{
	const struct walker *k = &b->walkers[thread];
	uint64_t rest_ns = part->to_ns - part->from_ns;

	for (size_t i = first_since(b, k, part->from_ns); i < k->to; i++) {
		const struct long_wait *v = &b->w->items[i];
		struct part of = { v, MAX(v->begin_ns, part->from_ns),
				   MIN(v->end_ns, part->to_ns) };
		uint32_t child = CHAINS_NO_NODE;

		b->steps++;
		if (v->begin_ns >= part->to_ns)
			break;
		if (of.from_ns >= of.to_ns)
			continue;
		rest_ns -= MIN(of.to_ns - of.from_ns, rest_ns);
		if (is_same_lock(b, part->wait, v, thread)) {
			follow_part(b, node, &of, depth);
			continue;
		}
		child = find_wait(b, node, thread, v);
		if (!child)
			continue;
		add_time(&b->all.nodes[child], v->tid, of.to_ns - of.from_ns);
		follow_part(b, child, &of, depth + 1);
	}
	if (rest_ns)
		add_ran(b, node, thread, rest_ns);
}

/*
 * Whether a thread ended the wait, either directly or as a child that exited and so sent the
 * signal.
 */
static bool is_by_thread(const struct long_wait *w)
{
	return w->end == LONG_WAIT_THREAD ||
	       (w->end == LONG_WAIT_SIGNAL && w->part == ACCOUNT_CHILD && w->by_tid);
}

static bool is_on_path(const struct builder *b, uint32_t tid)
{
	for (uint32_t i = 0; i < b->n_path; i++)
		if (b->path[i] == tid)
			return true;
	return false;
}

/* Returns the end of a wait that no thread of the session ended. */
static enum chain_end plain_end(const struct long_wait *w)
{
	switch (w->end) {
	case LONG_WAIT_INTERRUPT:
		return CHAIN_END_INTERRUPT;
	case LONG_WAIT_SIGNAL:
		return CHAIN_END_SIGNAL;
	case LONG_WAIT_KERNEL:
		return w->by_tid ? CHAIN_END_KERNEL : CHAIN_END_UNKNOWN;
	case LONG_WAIT_OPEN:
		return CHAIN_END_OPEN;
	default:
		return w->by_tid ? CHAIN_END_OUTSIDE : CHAIN_END_UNKNOWN;
	}
}

/* Continues from a part of a wait, which counts for `node`, at link number `depth`. */
static void follow_part(struct builder *b, uint32_t node, const struct part *part, uint32_t depth)
{
	const struct long_wait *w = part->wait;
	const struct long_waits_thread *t =
		is_by_thread(w) ? long_waits_thread(b->w, w->by_tid) : NULL;
	uint64_t ns = part->to_ns - part->from_ns;

	if (!t)
		add_end(b, node, is_by_thread(w) && !w->by_tid ? CHAIN_END_UNKNOWN : plain_end(w),
			w->by_comm, ns);
	else if (is_on_path(b, w->by_tid))
		add_end(b, node, CHAIN_END_CYCLE, t->comm, ns);
	else if (depth + 1 > CHAINS_LINKS || b->n_path == ARRAY_SIZE(b->path))
		add_end(b, node, CHAIN_END_CUT, NULL, ns);
	else {
		b->path[b->n_path++] = w->by_tid;
		walk_thread(b, node, part, (size_t)(t - b->w->threads), depth);
		b->n_path--;
	}
}

/* ---- roots */

static bool is_root(const struct builder *b, const struct long_wait *w)
{
	const struct long_waits_thread *t = long_waits_thread(b->w, w->tid);
	const struct wait_place *place = place_of(b, t, w->part);

	if (!t || w->part == ACCOUNT_SLEEP)
		return false;
	return place ? !wait_place_is_idle(place) : w->part != ACCOUNT_IDLE;
}

static int longest_first(const void *a, const void *b)
{
	const struct long_wait *x = *(const struct long_wait *const *)a,
			       *y = *(const struct long_wait *const *)b;
	uint64_t x_ns = x->end_ns - x->begin_ns, y_ns = y->end_ns - y->begin_ns;

	if (x_ns != y_ns)
		return x_ns < y_ns ? 1 : -1;
	return x < y ? -1 : x > y;
}

static void walk_root(struct builder *b, const struct long_wait *w)
{
	const struct long_waits_thread *t = long_waits_thread(b->w, w->tid);
	const struct part whole = { w, w->begin_ns, w->end_ns };
	uint32_t node = find_wait(b, CHAINS_NO_NODE, (size_t)(t - b->w->threads), w);
	uint64_t ns = w->end_ns - w->begin_ns;

	b->all.ns += ns;
	if (!node || b->steps > CHAINS_STEPS) {
		b->all.unwalked_ns += ns;
		b->all.partial = true;
		return;
	}
	add_time(&b->all.nodes[node], w->tid, ns);
	b->path[0] = w->tid;
	b->n_path = 1;
	follow_part(b, node, &whole, 1);
}

/* Walks all waits, longest first: if the steps do not suffice, the longest waits are reported. */
static int walk_all(struct builder *b)
{
	const struct long_wait **order = calloc(b->w->count + 1, sizeof(struct long_wait *));
	size_t n = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < b->w->count; i++)
		if (is_root(b, &b->w->items[i]))
			order[n++] = &b->w->items[i];
	if (n)
		qsort(order, n, sizeof(struct long_wait *), longest_first);
	for (size_t i = 0; i < n; i++)
		walk_root(b, order[i]);
	free(order);
	return 0;
}

static int build_all(struct builder *b, const struct lock_waits *locks,
		     const struct lock_name *names)
{
	int r = list_locks(b, locks, names);

	b->all.nodes = calloc(CHAINS_NODES, sizeof(*b->all.nodes));
	b->walkers = calloc(b->w->n_threads + 1, sizeof(*b->walkers));
	if (r < 0 || !b->all.nodes || !b->walkers)
		return -ENOMEM;
	b->all.n_nodes = 1;
	b->all.partial = ledger_lost(&b->w->ledger) > 0;
	for (size_t i = 0; i < b->w->n_threads; i++)
		meet_thread(b, i);
	r = walk_all(b);
	return r < 0 ? r : chain_links_make(b->w, b->places, &b->all);
}

int chains_make(const struct long_waits *waits, const struct lock_waits *locks,
		const struct lock_name *names, const struct wait_places *places,
		struct chains *ret_chains)
{
	struct builder b = { .w = waits, .places = places };
	int r;

	idmap_init(&b.groups, GROUPS_MAX);
	r = build_all(&b, locks, names);
	idmap_done(&b.groups);
	free(b.walkers);
	free(b.locks);
	if (r < 0)
		chains_done(&b.all);
	else
		*ret_chains = b.all;
	return r;
}

void chains_done(struct chains *c)
{
	free(TAKE_PTR(c->items));
	free(TAKE_PTR(c->nodes));
	c->count = c->n_nodes = 0;
}
