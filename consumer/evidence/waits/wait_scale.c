/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/wait_scale.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "consumer/sampling/wait_kind.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

_Static_assert((int)ACCOUNT_QUEUE == WAIT_FOR_CPU && (int)ACCOUNT_IO == WAIT_BLOCKED,
	       "a state is not a part of a time account");

/* The stacks of one pool and one state. */
struct group {
	uint64_t looked_ns, exact_ns, looks;
	bool scaled;
};

static uint64_t scale_ns(uint64_t ns, uint64_t of, uint64_t to)
{
	return (uint64_t)((double)ns * (double)to / (double)of);
}

/* Returns the group of a stack; NULL if its pool has no account, or it is of another phase. */
static struct group *group_of(struct group *groups, const struct thread_pools *pools,
			      const struct stack *stack)
{
	size_t pool;

	if (stack->phase != PHASE_DURING || stack->wait == WAIT_RUNS ||
	    !thread_pools_find(pools, stack->tgid, stack->start_ns, stack->comm, &pool))
		return NULL;
	return &groups[pool * ACCOUNT_PARTS_ + stack->wait];
}

/*
 * Returns whether there are enough samples for a factor, and they agree with the account. Samples
 * and accounts cannot disagree about which waits are for a CPU: both read the run queue. So for
 * these waits any factor is valid, and a factor below 1 is valid even with few samples.
 */
static bool is_sane(const struct group *g, size_t part)
{
	uint64_t apart_ns = MAX(g->exact_ns, g->looked_ns) - MIN(g->exact_ns, g->looked_ns);

	if (!g->looked_ns || !g->exact_ns)
		return false;
	if (apart_ns <= WAIT_SCALE_APART_NS)
		return true;
	if (part == WAIT_FOR_CPU)
		return g->exact_ns < g->looked_ns || g->looks >= WAIT_SCALE_LOOKS;
	return g->looks >= WAIT_SCALE_LOOKS && g->exact_ns <= g->looked_ns * WAIT_SCALE_MAX &&
	       g->looked_ns <= g->exact_ns * WAIT_SCALE_MAX;
}

static void judge_group(struct group *g, size_t part, struct wait_scale *s)
{
	uint64_t ppm;

	if (!g->looks) {
		s->unseen_ns += g->exact_ns;
		return;
	}
	if (MAX(g->looked_ns, g->exact_ns) <= WAIT_SCALE_APART_NS)
		return;
	g->scaled = is_sane(g, part);
	if (!g->scaled) {
		s->left++;
		s->left_ns += g->looked_ns;
		s->left_exact_ns += g->exact_ns;
		return;
	}
	ppm = scale_ns(1000000, g->looked_ns, g->exact_ns);
	s->least_ppm = s->groups ? MIN(s->least_ppm, ppm) : ppm;
	s->most_ppm = MAX(s->most_ppm, ppm);
	s->groups++;
	s->looked_ns += g->looked_ns;
	s->exact_ns += g->exact_ns;
}

int wait_scale_apply(struct stack_table *stacks, const struct thread_pools *pools,
		     uint64_t during_ns, struct wait_scale *ret_scale)
{
	uint64_t covered_ns = during_ns - MIN(during_ns, pools->late_ns);
	_cleanup_free_ struct group *groups = NULL;
	struct wait_scale scale = { 0 };

	if (covered_ns <= during_ns / 2)
		return -ENODATA;
	groups = calloc(MAX(pools->count, (size_t)1) * ACCOUNT_PARTS_, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < stacks->count; i++) {
		struct group *g = group_of(groups, pools, stacks->items[i]);

		if (!g)
			continue;
		g->looked_ns += stacks->items[i]->weight_ns;
		g->looks += stacks->items[i]->count;
	}
	for (size_t i = 0; i < pools->count * ACCOUNT_PARTS_; i++) {
		if (i % ACCOUNT_PARTS_ < WAIT_FOR_CPU)
			continue;
		groups[i].exact_ns =
			scale_ns(pools->items[i / ACCOUNT_PARTS_].part_ns[i % ACCOUNT_PARTS_],
				 covered_ns, during_ns);
		judge_group(&groups[i], i % ACCOUNT_PARTS_, &scale);
	}
	for (size_t i = 0; i < stacks->count; i++) {
		struct group *g = group_of(groups, pools, stacks->items[i]);

		if (!g || !g->scaled)
			continue;
		/* No line has a stack of weight 0. */
		stacks->items[i]->weight_ns =
			MAX(scale_ns(stacks->items[i]->weight_ns, g->looked_ns, g->exact_ns), 1ull);
	}
	*ret_scale = scale;
	return 0;
}

void wait_scale_write(const struct wait_scale *s, struct jsonw *w)
{
	jsonw_object(w, "scale");
	jsonw_u64(w, "groups", s->groups);
	jsonw_u64(w, "looked_ms", s->looked_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "exact_ms", s->exact_ns / NSEC_PER_MSEC);
	jsonw_milli(w, "least", (int64_t)(s->least_ppm / 1000));
	jsonw_milli(w, "most", (int64_t)(s->most_ppm / 1000));
	jsonw_object(w, "left");
	jsonw_u64(w, "groups", s->left);
	jsonw_u64(w, "looked_ms", s->left_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "exact_ms", s->left_exact_ns / NSEC_PER_MSEC);
	jsonw_object_end(w);
	jsonw_u64(w, "unseen_ms", s->unseen_ns / NSEC_PER_MSEC);
	jsonw_object_end(w);
}
