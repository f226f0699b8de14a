/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/locks/lock_stacks.h"

#include <stdlib.h>

#include "shared/tools/macro.h"

/*
 * A candidate stack of a thread at a lock. As in Boyer and Moore's majority vote, the time of
 * another stack is subtracted from its weight.
 */
struct stack_vote {
	uint32_t number;
	uint64_t weight_ns;
};

void lock_stacks_init(struct lock_stacks *s)
{
	idmap_init(&s->heaviest, LOCK_STACKS_MAX);
}

void lock_stacks_done(struct lock_stacks *s)
{
	idmap_free(&s->heaviest, free);
}

/* Two threads in 2^63 share a hash. */
static uint64_t hash_thread(const struct lock_key *lock, uint32_t tid)
{
	uint64_t hash = (lock->address ^ (uint64_t)lock->tgid << 40) * 0x9e3779b97f4a7c15ULL;

	hash ^= hash >> 29;
	return ((hash ^ (uint64_t)tid << 8 ^ lock->kind) * 0x9e3779b97f4a7c15ULL) | 1;
}

/* Returns the vote of a thread at a lock, creating it if needed; NULL without space. */
static struct stack_vote *vote_of(struct lock_stacks *s, uint64_t hash)
{
	struct stack_vote *vote = idmap_get(&s->heaviest, hash);

	if (vote)
		return vote;
	vote = calloc(1, sizeof(*vote));
	if (vote && idmap_put(&s->heaviest, hash, vote) < 0) {
		free(vote);
		return NULL;
	}
	return vote;
}

void lock_stacks_add(struct lock_stacks *s, const struct stack_sample *sample, uint32_t number)
{
	struct stack_vote *vote = vote_of(s, hash_thread(&sample->lock, sample->tid));

	if (!vote)
		return;
	if (vote->number == number || !vote->weight_ns) {
		vote->number = number;
		vote->weight_ns += sample->weight_ns;
	} else if (vote->weight_ns >= sample->weight_ns) {
		vote->weight_ns -= sample->weight_ns;
	} else {
		vote->number = number;
		vote->weight_ns = sample->weight_ns - vote->weight_ns;
	}
}

void lock_stacks_find(const struct lock_stacks *s, struct lock_waited *lock)
{
	for (uint32_t i = 0; i < lock->n_wakers; i++) {
		const struct stack_vote *vote =
			idmap_get(&s->heaviest, hash_thread(&lock->lock, lock->woken[i].tid));

		lock->woken[i].stack = vote && lock->woken[i].tid ? vote->number + 1 : 0;
	}
}
