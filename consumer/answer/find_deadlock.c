/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_deadlock.h"

#include <inttypes.h>
#include <stdio.h>

#include "consumer/evidence/locks/lock_names.h"
#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/evidence/waits/held_waits.h"
#include "consumer/evidence/waits/look_coverage.h"
#include "consumer/evidence/waits/session_waits.h"
#include "shared/tools/macro.h"

#define LOCK_BYTES 256 /* of a lock's name in the sentence */

/* Writes the name of the lock of a wait: "lock audit_lock in bank", or "one lock". */
static void say_lock(const struct findings_search *s, const struct held_wait *w,
		     char text[LOCK_BYTES])
{
	const struct lock_waits *locks = lock_waits_of(s->session->signals);
	const struct lock_name *name = NULL;

	for (size_t i = 0; s->names && locks && w->address && i < locks->count; i++)
		if (locks->items[i].lock.address == w->address &&
		    locks->items[i].lock.tgid == w->stack->tgid)
			name = &s->names[i];
	lock_names_say(name, text, LOCK_BYTES);
}

/*
 * Writes "bank (thread 12) waits in transfer() for lock audit_lock in bank"; `which` stands before
 * the verb. Returns the length.
 */
static int say_wait(const struct findings_search *s, const struct held_wait *w, const char *which,
		    char *text, size_t space)
{
	const struct session_wait *row = session_waits_row(&s->summary->waits, w->stack);
	const char *fn = row ? row->fn : NULL;
	char lock[LOCK_BYTES];

	say_lock(s, w, lock);
	return snprintf(text, space, "%.*s (thread %u)%s waits%s%.100s%s for %.120s", COMM_BYTES,
			w->stack->comm, w->tid, which, fn ? " in " : "", fn ? fn : "",
			fn ? "()" : "", lock);
}

/* Writes the circle. Returns the length. */
static int say_cycle(const struct findings_search *s, const struct held_wait *const *cycle,
		     size_t n, char *text, size_t space)
{
	int at = snprintf(
		text, space,
		n == 1 ? "deadlock of a thread with itself: " : "deadlock of %zu threads: ", n);

	size_t i = 0;

	for (; i < MIN(n, (size_t)HELD_WAITS_CYCLE) && (size_t)at < space / 2; i++) {
		at += snprintf(text + at, space - (size_t)at, "%s", i ? ", held by " : "");
		at += say_wait(s, cycle[i], i ? ", which" : "", text + at, space - (size_t)at);
	}
	if (n == 1)
		at += snprintf(text + at, space - (size_t)at, ", which it holds");
	else if (i == n)
		at += snprintf(text + at, space - (size_t)at, ", held by the first");
	else
		at += snprintf(text + at, space - (size_t)at, ", and so on to the first");
	return MIN(at, (int)space - 1);
}

uint64_t find_deadlock_ns(const struct session_result *s)
{
	struct look_coverage *looks = look_coverage_of(s->signals);
	const struct held_wait *cycle[HELD_WAITS_CYCLE];

	return looks && held_waits_find_cycle(&looks->held, cycle)
		       ? held_waits_deadlocked_ns(&looks->held)
		       : 0;
}

bool find_deadlock_has(const struct session_result *s, uint32_t tgid, uint64_t address)
{
	const struct look_coverage *looks = look_coverage_of(s->signals);

	return looks && held_waits_is_deadlocked(&looks->held, tgid, address);
}

void find_deadlock(struct findings_search *s)
{
	static const struct finding_evidence e = { .type = "stack", .signal = "offcpu" };
	struct look_coverage *looks = look_coverage_of(s->session->signals);
	const struct held_wait *cycle[HELD_WAITS_CYCLE];
	size_t n = looks ? held_waits_find_cycle(&looks->held, cycle) : 0, all = 0;
	char says[FINDINGS_SAYS_BYTES];
	int at;

	if (!n)
		return;
	for (size_t i = 0; i < looks->held.count; i++)
		all += looks->held.items[i].deadlocked;
	at = say_cycle(s, cycle, n, says, sizeof(says));
	if (all > n)
		snprintf(says + at, sizeof(says) - (size_t)at, "; %zu further thread%s for them",
			 all - n, all - n == 1 ? " waits" : "s wait");
	findings_search_add(s, FINDING_DEADLOCK, held_waits_deadlocked_ns(&looks->held), says, &e);
}
