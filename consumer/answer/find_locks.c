/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_locks.h"

#include <inttypes.h>
#include <stdio.h>

#include "consumer/answer/chain_links.h"
#include "consumer/answer/find_deadlock.h"
#include "consumer/answer/follow_peers.h"
#include "consumer/evidence/locks/lock_names.h"
#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "shared/tools/macro.h"

static const struct lock_waits *locks_of(const struct session_result *s)
{
	return lock_waits_of(s->signals);
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

/* Whether the lock of a chain's link is this one. */
static bool is_lock(const void *context, uint32_t lock)
{
	const uint32_t *wanted = context;

	return lock == *wanted;
}

/* Whether the lock has no pattern, so that no other finding covers it. */
static bool has_no_pattern(const void *context, uint32_t lock)
{
	const struct lock_waits *locks = context;

	return !lock || !locks || !locks->items[lock - 1].pattern;
}

/* The words for a pattern: its finding, the kind of the waits, and the waker's activity. */
static const struct {
	enum finding_cause cause;
	const char *waits, *did;
} patterns[] = {
	[LOCK_PATTERN_LONG_HOLD] = { FINDING_LOCK_HELD, "each for long", "had" },
	[LOCK_PATTERN_CONVOY] = { FINDING_LOCK_CONVOY, "many times for a short time", "released" },
	[LOCK_PATTERN_HERD] = { FINDING_LOCK_HERD, "woken together without getting it",
				"released" },
};

static void find_lock(struct findings_search *s, const struct lock_waited *l, uint32_t number,
		      const struct lock_name *name)
{
	struct finding_evidence e = { .type = "lock", .signal = "lock", .pid = l->lock.tgid };
	const struct lock_woken *by = l->n_wakers && l->woken[0].tid ? &l->woken[0] : NULL;
	const char *fn = by && by->stack && s->releases ? s->releases[by->stack - 1].fn : NULL;
	const struct chains_wanted wanted = { is_lock, &number };
	char says[FINDINGS_SAYS_BYTES], lock[256];
	int n;

	if (l->lock.address) {
		e.key = "address";
		snprintf(e.value, sizeof(e.value), "0x%" PRIx64, (uint64_t)l->lock.address);
	}
	lock_names_say(name, lock, sizeof(lock));
	n = snprintf(says, sizeof(says), "%u threads waited %.1f s in all for %s, %s", l->threads,
		     findings_search_seconds(l->total_ns), lock, patterns[l->pattern].waits);
	if (l->pattern == LOCK_PATTERN_HERD)
		n += snprintf(says + n, sizeof(says) - (size_t)n, " %" PRIu64 " times",
			      l->woken_in_vain);
	if (by)
		snprintf(says + n, sizeof(says) - (size_t)n, "; %.*s %s it%s%.200s%s", COMM_BYTES,
			 by->comm, patterns[l->pattern].did, fn ? " in " : "", fn ? fn : "",
			 fn ? "()" : "");
	follow_peers_add(s, patterns[l->pattern].cause, l->total_ns, says, &e,
			 chain_links_find(&s->summary->chains, WAIT_BLOCKED + WAIT_LOCK, &wanted),
			 1, "; meanwhile ", NULL);
}

void find_locks_pass(struct findings_search *s)
{
	const struct lock_waits *locks = locks_of(s->session);
	const struct chains_wanted wanted = { has_no_pattern, locks };
	uint64_t contended_ns = find_locks_contended_ns(s->session);

	findings_search_pass(s, ACCOUNT_LOCK,
			     s->part_ns[ACCOUNT_LOCK] - MIN(contended_ns, s->part_ns[ACCOUNT_LOCK]),
			     &wanted);
}

/* Returns the row of a wait for a lock outside of the deadlock with the most time, or NULL. */
static const struct session_wait *find_other_row(const struct findings_search *s)
{
	const struct session_waits *waits = &s->summary->waits;
	const struct session_wait *most = NULL;

	for (size_t i = 0; i < waits->count; i++) {
		const struct session_wait *row = &waits->rows[i];

		if (row->state == ACCOUNT_LOCK && !row->condition &&
		    !(row->on && find_deadlock_has(s->session, 0, row->on->address)) &&
		    (!most || row->weight_ns > most->weight_ns))
			most = row;
	}
	return most;
}

/* Where the sentence names a holder, that was read from the lock. */
static void set_level(struct findings_search *s, const struct session_wait *row)
{
	if (row && session_waits_has_holder(row))
		findings_search_level(s, FINDING_LOCK_WAIT, FINDINGS_CERTAIN,
				      "the lock names its holder");
}

/* Adds the waits for locks that are not of the deadlock. */
static void find_other_locks(struct findings_search *s, uint64_t ns,
			     const struct finding_evidence *e)
{
	const struct session_wait *row = find_other_row(s);
	char says[FINDINGS_SAYS_BYTES];
	int n;

	if (!row)
		return;
	n = snprintf(says, sizeof(says), "its threads waited %.1f s for other locks%s%.200s",
		     findings_search_seconds(ns), row->fn ? ", longest in " : "",
		     row->fn ? row->fn : "");
	if (row->on)
		session_waits_say_on(row, says + n, sizeof(says) - (size_t)n);
	findings_search_add(s, FINDING_LOCK_WAIT, ns, says, e);
	set_level(s, row);
}

void find_locks(struct findings_search *s)
{
	const struct lock_waits *locks = locks_of(s->session);
	const struct finding_evidence e = findings_search_evidence(s, ACCOUNT_LOCK);
	const struct chains_wanted wanted = { has_no_pattern, locks };
	const struct session_wait *top = session_waits_top(&s->summary->waits, ACCOUNT_LOCK);
	uint64_t left_ns = s->part_ns[ACCOUNT_LOCK];
	const struct chain *chain;
	char says[FINDINGS_SAYS_BYTES];

	for (size_t i = 0; locks && i < locks->count; i++)
		if (locks->items[i].pattern && locks->items[i].lock.tgid &&
		    !find_deadlock_has(s->session, locks->items[i].lock.tgid,
				       locks->items[i].lock.address))
			find_lock(s, &locks->items[i], (uint32_t)i + 1,
				  s->names ? &s->names[i] : NULL);
	left_ns -= MIN(left_ns,
		       MAX(find_locks_contended_ns(s->session), find_deadlock_ns(s->session)));
	if (find_deadlock_ns(s->session)) {
		find_other_locks(s, left_ns, &e);
		return;
	}
	chain = chain_links_find(&s->summary->chains, WAIT_BLOCKED + WAIT_LOCK, &wanted);
	/* Its first link alone would repeat the sentence. */
	if (chain && chain->count < 2)
		chain = NULL;
	findings_search_say_place(s, ACCOUNT_LOCK, "for locks", says);
	follow_peers_add(s, FINDING_LOCK_WAIT, left_ns, says, &e, chain, 0, "; ",
			 top ? top->on : NULL);
	set_level(s, top);
}
