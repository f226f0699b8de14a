/* SPDX-License-Identifier: BSD-2-Clause */
/* session_locks.h: writes the lock waits of the session's threads. Report thread only. */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_SESSION_LOCKS_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_SESSION_LOCKS_H

#include "consumer/evidence/locks/lock_names.h"
#include "consumer/naming/frame_name.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/* The place where a thread released a lock. The names live as long as the report. */
struct lock_release {
	const char *fn, *module;
};

/*
 * Sets the place where the thread of a stack released a lock: the innermost named function of the
 * program itself, skipping those of the C library.
 */
void session_locks_release(const struct stack *stack, const struct named_frame *frames, size_t n,
			   struct lock_release *ret_release);

/* Writes the lock of a waker's stack; writes nothing for other stacks. */
void session_locks_write_stack(const struct stack *stack, struct jsonw *w);

/*
 * Writes a `lock` line for each named lock, and one for the rest. Writes nothing without locks.
 * `releases` is indexed by stack number, for all stacks of the signal; `names` is indexed by lock
 * (lock_names_read); NULL: unknown.
 */
void session_locks_put(const struct session_result *s, const struct event_lines *lines,
		       const struct event_subject *subject, const struct lock_release *releases,
		       const struct lock_name *names);

#endif
