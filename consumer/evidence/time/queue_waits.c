/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/queue_waits.h"

#include <string.h>

#include "shared/tools/macro.h"

/* Inserts a wait in order; the last one drops out. */
static void insert_longest(struct queue_waits *q, const struct queue_longest *one)
{
	size_t at = q->n_longest;

	while (at && q->longest[at - 1].wait_ns < one->wait_ns)
		at--;
	if (at >= QUEUE_LONGEST)
		return;
	q->n_longest = MIN(q->n_longest + 1, (size_t)QUEUE_LONGEST);
	memmove(&q->longest[at + 1], &q->longest[at],
		(q->n_longest - at - 1) * sizeof(q->longest[0]));
	q->longest[at] = *one;
}

void queue_waits_find_longest(const struct thread_accounts *accounts, struct queue_waits *q)
{
	for (size_t i = 0; i < accounts->count; i++) {
		const struct thread_account *t = &accounts->items[i];
		struct queue_longest one = { t->queue.longest_ns, t->queue.longest_end_ns, t->tid,
					     t->tgid, "" };

		memcpy(one.comm, t->comm, sizeof(one.comm) - 1);
		if (one.wait_ns)
			insert_longest(q, &one);
	}
}

uint64_t queue_waits_own_ns(const struct queue_waits *q)
{
	return q->pools.all.queue.behind_ns[QUEUE_SIBLINGS] + q->blame.own_ns;
}

uint64_t queue_waits_others_ns(const struct queue_waits *q)
{
	const uint64_t *behind_ns = q->pools.all.queue.behind_ns;
	uint64_t all_ns = behind_ns[QUEUE_OTHERS] + behind_ns[QUEUE_UNLISTED];

	return all_ns - MIN(all_ns, q->blame.own_ns);
}
