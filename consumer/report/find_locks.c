/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/find_locks.h"

#include <inttypes.h>
#include <stdio.h>

#include "consumer/report/lock_names.h"
#include "consumer/signals/lock_waits.h"
#include "shared/tools/macro.h"

/* A holder that waits for this part of its time for one kind of thing passes that on. */
#define CHAIN_PCT 40

static const struct lock_waits *locks_of(const struct session_result *s)
{
	return s->signals[SIGNAL_LOCK] ? s->signals[SIGNAL_LOCK]->locks : NULL;
}

uint64_t find_locks_contended_ns(const struct session_result *s)
{
	const struct lock_waits *locks = locks_of(s);
	uint64_t ns = 0;

	for (size_t i = 0; locks && i < locks->count; i++)
		if (locks->items[i].pattern)
			ns += locks->items[i].total_ns;
	return ns;
}

/* Returns the pool of a thread that ended waits for the lock, where it is in the session; NULL. */
static const struct thread_pool *pool_of(const struct findings_search *s,
					 const struct lock_waited *l, const struct lock_woken *by)
{
	const struct thread_pools *accounts = findings_search_accounts(s->session);
	size_t i;

	/* Of a process that shares the lock with that of `l` the start is not known: any will do.
	 */
	if (!accounts || !by->tid ||
	    !thread_pools_find(accounts, by->tgid, by->tgid == l->lock.tgid ? l->start_ns : 0,
			       by->comm, &i))
		return NULL;
	return &accounts->items[i];
}

/* Says what the holder itself waited for, where it did so for much of its time. */
static void say_chain(const struct findings_search *s, const struct lock_waited *l, char *says,
		      size_t space)
{
	static const struct {
		enum account_part part;
		const char *words;
	} links[] = {
		{ ACCOUNT_QUEUE, "for a CPU" },
		{ ACCOUNT_IO, "for disks and files" },
		{ ACCOUNT_MEMORY, "for memory" },
		{ ACCOUNT_SLEEP, "asleep for a time that it gave" },
		{ ACCOUNT_SOCKET, "on a socket" },
		{ ACCOUNT_PIPE, "in a pipe" },
		{ ACCOUNT_CHILD, "for a process" },
	};
	const struct thread_pool *p = l->n_wakers ? pool_of(s, l, &l->woken[0]) : NULL;

	for (size_t i = 0; p && p->wall_ns && i < ARRAY_SIZE(links); i++) {
		uint64_t pct = p->part_ns[links[i].part] * 100 / p->wall_ns;

		if (pct < CHAIN_PCT)
			continue;
		if (p->threads == 1)
			snprintf(says, space, "; meanwhile that thread waited %.1f s (%llu %%) %s",
				 findings_search_seconds(p->part_ns[links[i].part]),
				 (unsigned long long)pct, links[i].words);
		else
			snprintf(says, space,
				 "; meanwhile the %llu threads of its name waited "
				 "%llu %% of their time %s",
				 (unsigned long long)p->threads, (unsigned long long)pct,
				 links[i].words);
		return;
	}
}

/* What a pattern is called: its finding, how the waits were, and what the waker did. */
static const struct {
	enum finding_cause cause;
	const char *waits, *did;
} patterns[] = {
	[LOCK_PATTERN_LONG_HOLD] = { FINDING_LOCK_HELD, "each for long", "had" },
	[LOCK_PATTERN_CONVOY] = { FINDING_LOCK_CONVOY, "many times for a short time", "released" },
	[LOCK_PATTERN_HERD] = { FINDING_LOCK_HERD, "woken together and most in vain", "released" },
};

static void find_lock(struct findings_search *s, const struct lock_waited *l,
		      const struct lock_name *name)
{
	struct finding_evidence e = { .type = "lock", .signal = "lock", .pid = l->lock.tgid };
	const struct lock_woken *by = l->n_wakers && l->woken[0].tid ? &l->woken[0] : NULL;
	const char *fn = by && by->stack && s->releases ? s->releases[by->stack - 1].fn : NULL;
	char says[FINDINGS_SAYS_BYTES], lock[256];
	int n;

	if (l->lock.address) {
		e.key = "address";
		snprintf(e.value, sizeof(e.value), "0x%" PRIx64, (uint64_t)l->lock.address);
	}
	lock_names_say(name, lock, sizeof(lock));
	n = snprintf(says, sizeof(says), "%u threads waited %.1f s in all for %s, %s", l->threads,
		     findings_search_seconds(l->total_ns), lock, patterns[l->pattern].waits);
	if (by)
		n += snprintf(says + n, sizeof(says) - (size_t)n, "; %.*s %s it%s%.200s%s",
			      COMM_BYTES, by->comm, patterns[l->pattern].did, fn ? " in " : "",
			      fn ? fn : "", fn ? "()" : "");
	say_chain(s, l, says + n, sizeof(says) - (size_t)n);
	findings_search_add(s, patterns[l->pattern].cause, l->total_ns, says, &e);
}

/*
 * Returns what threads waited for this lock behind threads that waited for disks for much of their
 * time: by who ended the long waits.
 */
static uint64_t behind_disks_ns(const struct findings_search *s, const struct lock_waited *l)
{
	uint64_t waits = 0;

	for (uint32_t i = 0; i < l->n_wakers; i++) {
		const struct thread_pool *p = pool_of(s, l, &l->woken[i]);

		if (p && p->wall_ns && p->part_ns[ACCOUNT_IO] * 100 / p->wall_ns >= CHAIN_PCT)
			waits += l->woken[i].waits;
	}
	return l->waker_waits
		       ? (uint64_t)((double)l->total_ns * (double)waits / (double)l->waker_waits)
		       : 0;
}

/* Gives waits for locks to what the holders waited for. Returns how much of `left_ns` that was. */
static uint64_t pass_on(struct findings_search *s, const struct lock_waits *locks, uint64_t left_ns)
{
	for (size_t i = 0; locks && i < locks->count; i++)
		if (!locks->items[i].pattern && locks->items[i].lock.tgid)
			s->passed_ns += behind_disks_ns(s, &locks->items[i]);
	s->passed_ns = MIN(s->passed_ns, left_ns);
	s->part_ns[ACCOUNT_IO] += s->passed_ns;
	return s->passed_ns;
}

void find_locks(struct findings_search *s)
{
	const struct lock_waits *locks = locks_of(s->session);
	const struct finding_evidence e = findings_search_evidence(s, ACCOUNT_LOCK);
	uint64_t left_ns = s->part_ns[ACCOUNT_LOCK];
	char says[FINDINGS_SAYS_BYTES];

	for (size_t i = 0; locks && i < locks->count; i++)
		if (locks->items[i].pattern && locks->items[i].lock.tgid)
			find_lock(s, &locks->items[i], s->names ? &s->names[i] : NULL);
	left_ns -= MIN(left_ns, find_locks_contended_ns(s->session));
	left_ns -= pass_on(s, locks, left_ns);
	findings_search_say_place(s, ACCOUNT_LOCK, "for locks", says);
	findings_search_add(s, FINDING_LOCK_WAIT, left_ns, says, &e);
}
