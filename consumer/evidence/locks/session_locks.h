/* SPDX-License-Identifier: BSD-2-Clause */
/* session_locks.h: writes for which locks the session's threads waited. Report thread only. */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_SESSION_LOCKS_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_SESSION_LOCKS_H

#include "consumer/evidence/locks/lock_names.h"
#include "consumer/naming/frame_name.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/* Where a thread released a lock: the names live as long as the report. */
struct lock_release {
	const char *fn, *module;
};

/*
 * Sets where the thread of a stack released a lock: the innermost function of the program itself
 * that has a name, behind those of the C library.
 */
void session_locks_release(const struct stack *stack, const struct named_frame *frames, size_t n,
			   struct lock_release *ret_release);

/* Writes for which lock a stack of a thread that wakes stands; nothing of others. */
void session_locks_write_stack(const struct stack *stack, struct jsonw *w);

/*
 * Writes a line `lock` for each lock with a name, and one for the rest. Nothing without them.
 * `releases`: by the number of the stack, of all stacks of the signal; `names`: of each lock
 * (lock_names_read); NULL: not known.
 */
void session_locks_put(const struct session_result *s, const struct event_lines *lines,
		       const struct event_subject *subject, const struct lock_release *releases,
		       const struct lock_name *names);

/*
 * Appends to the headline the lock with the most waits of those with LOCK_PATTERN_LONG_HOLD, with
 * its releaser and the place, or LOCK_PATTERN_HERD, with the number of useless wake-ups; only where
 * the waits are half as long as the session and more, in sum. Returns the length; 0: nothing.
 */
int session_locks_headline(const struct session_result *s, const struct lock_release *releases,
			   const struct lock_name *names, char *text, size_t space);

#endif
