/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/chain_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signals/thresholds.h"
#include "shared/tools/macro.h"

const char *chain_links_end(enum chain_end end)
{
	static const char *const words[CHAIN_ENDS_] = {
#define CHAIN_END(id, json, says) [CHAIN_END_##id] = (json),
#include "shared/findings/chain_ends.def"
#undef CHAIN_END
	};

	return words[end];
}

static uint32_t count_threads(const struct chain_node *node)
{
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(node->threads); i++)
		n += __builtin_popcountll(node->threads[i]);
	return (uint32_t)n;
}

/* The inputs for making links. */
struct source {
	const struct long_waits *waits;
	const struct wait_places *places; /* NULL: none */
	const struct chain_node *nodes;
};

static void make_link(const struct source *s, const struct chain_node *node,
		      struct chain_link *ret_link)
{
	const struct long_waits_thread *t = long_waits_thread(s->waits, node->tid);

	*ret_link = (struct chain_link){ .state = node->state,
					 .idle = node->idle,
					 .condition = node->condition,
					 .ns = node->ns,
					 .waits = node->waits,
					 .threads = count_threads(node),
					 .tid = node->tid,
					 .lock = node->lock,
					 .running_ns = node->running_ns,
					 .queue_ns = node->queue_ns,
					 .short_ns = node->short_ns };
	if (!t)
		return;
	ret_link->tgid = t->tgid;
	memcpy(ret_link->comm, t->comm, sizeof(ret_link->comm));
	for (uint8_t part = ACCOUNT_IO; s->places && part < ACCOUNT_PARTS_; part++) {
		const struct wait_place *place =
			wait_places_find(s->places, t->tgid, t->comm, part);

		if (place && node->state && place->state == node->state)
			ret_link->place = place;
	}
}

/*
 * Returns the child with the most time if it has THRESHOLD_CHAIN_PCT of its parent's time; else
 * CHAINS_NO_NODE.
 */
static uint32_t heaviest_child(const struct chain_node *nodes, uint32_t node)
{
	uint32_t heaviest = CHAINS_NO_NODE;

	for (uint32_t n = nodes[node].child; n; n = nodes[n].next)
		if (!heaviest || nodes[n].ns > nodes[heaviest].ns)
			heaviest = n;
	if (heaviest && nodes[heaviest].ns * 100 < nodes[node].ns * THRESHOLD_CHAIN_PCT)
		return CHAINS_NO_NODE;
	return heaviest;
}

/* Sets the links, starting at a first node and following the child with the most time. */
static void make_chain(const struct source *s, uint32_t node, struct chain *c)
{
	const struct chain_node *nodes = s->nodes;
	uint32_t child;

	c->root = node;
	make_link(s, &nodes[node], &c->links[c->count++]);
	for (;;) {
		child = heaviest_child(nodes, node);
		if (!child) {
			c->end = CHAIN_END_SEVERAL;
			return;
		}
		if (nodes[child].end != CHAIN_ENDS_ && nodes[child].end != CHAIN_END_RAN)
			break;
		make_link(s, &nodes[child], &c->links[c->count++]);
		if (nodes[child].end == CHAIN_END_RAN)
			break;
		if (c->count == CHAINS_LINKS) {
			child = heaviest_child(nodes, child);
			break;
		}
		node = child;
	}
	c->end = child ? (enum chain_end)nodes[child].end : CHAIN_END_SEVERAL;
	if (child)
		memcpy(c->end_comm, nodes[child].comm, sizeof(c->end_comm));
}

/*
 * A thread that waits for a thread with nothing to do waits for work; so does a thread that waits
 * on a condition variable for a sleeping thread.
 */
static bool is_for_work(const struct chain *c)
{
	const struct chain_link *last = &c->links[c->count - 1];

	return last->idle || (c->links[0].condition && last->state == WAIT_BLOCKED + WAIT_SLEEP);
}

static int most_first(const void *a, const void *b)
{
	const struct chain *x = a, *y = b;

	if (x->links[0].ns != y->links[0].ns)
		return x->links[0].ns < y->links[0].ns ? 1 : -1;
	return x->root < y->root ? -1 : x->root > y->root;
}

int chain_links_make(const struct long_waits *waits, const struct wait_places *places,
		     struct chains *all)
{
	const struct source s = { waits, places, all->nodes };
	size_t n = 0;

	for (uint32_t i = s.nodes[CHAINS_NO_NODE].child; i; i = s.nodes[i].next)
		n++;
	all->items = calloc(n + 1, sizeof(*all->items));
	if (!all->items)
		return -ENOMEM;
	for (uint32_t i = s.nodes[CHAINS_NO_NODE].child; i; i = s.nodes[i].next) {
		struct chain *c = &all->items[all->count++];

		make_chain(&s, i, c);
		c->idle = is_for_work(c);
	}
	if (all->count)
		qsort(all->items, all->count, sizeof(*all->items), most_first);
	return 0;
}

/*
 * Whether the first link waits in `state`. Excludes waits for work (condition variables) and locks
 * that are not wanted.
 */
static bool is_wanted(uint8_t state, const struct chains_wanted *wanted, uint8_t own,
		      bool condition, uint32_t lock)
{
	return own == state && !condition && (!wanted || wanted->takes(wanted->context, lock));
}

const struct chain *chain_links_find(const struct chains *c, uint8_t state,
				     const struct chains_wanted *wanted)
{
	const struct chain *found = NULL;
	uint64_t most_ns = 0;

	for (size_t i = 0; i < c->count; i++) {
		const struct chain *item = &c->items[i];
		const struct chain_link *first = &item->links[0];

		if (item->idle ||
		    !is_wanted(state, wanted, first->state, first->condition, first->lock))
			continue;
		most_ns = MAX(most_ns, first->ns);
		if (!found || (first->ns * 2 >= most_ns && item->count > found->count))
			found = item;
	}
	return found;
}

/* Sums the time of the node and all nodes after it in which the last thread was in `last`. */
static uint64_t sum_last(const struct chains *c, uint32_t node, uint8_t last)
{
	const struct chain_node *n = &c->nodes[node];
	uint64_t own_ns = n->ns, sum_ns = 0;

	for (uint32_t i = n->child; i; i = c->nodes[i].next) {
		if (c->nodes[i].end == CHAIN_END_RAN && last == WAIT_FOR_CPU)
			sum_ns += c->nodes[i].queue_ns;
		if (c->nodes[i].end != CHAIN_ENDS_)
			continue;
		own_ns -= MIN(c->nodes[i].ns, own_ns);
		sum_ns += sum_last(c, i, last);
	}
	return sum_ns + (n->state == last ? own_ns : 0);
}

double chain_links_behind(const struct chains *c, uint8_t state, const struct chains_wanted *wanted,
			  uint8_t last)
{
	uint64_t all_ns = 0, behind_ns = 0;

	for (uint32_t i = c->n_nodes ? c->nodes[CHAINS_NO_NODE].child : 0; i;
	     i = c->nodes[i].next) {
		const struct chain_node *n = &c->nodes[i];

		if (!is_wanted(state, wanted, n->state, n->condition, n->lock) || n->idle)
			continue;
		all_ns += n->ns;
		behind_ns += sum_last(c, i, last);
	}
	return all_ns ? (double)behind_ns / (double)all_ns : 0;
}
