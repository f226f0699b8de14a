/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accounts_hold.h: the time accounts of a session, which several of its signals share. The first
 * signal that attaches has the program attached and reads the accounts; the others join. At the
 * end, the first one reads the accounts and the last one detaches the program. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_ACCOUNTS_HOLD_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_ACCOUNTS_HOLD_H

#include <stdbool.h>

#include "consumer/evidence/time/account_table.h"
#include "consumer/evidence/time/thread_accounts.h"
#include "consumer/signals/signals.h"

struct accounts_held;

/* The time accounts of all sessions; initially all 0. */
struct account_holds {
	struct accounts_held *first; /* of the sessions that have accounts */
	struct account_sweep sweep;  /* removes accounts of ended sessions */
	unsigned int calls; /* sessions that want waits counted by system call (control.calls) */
};

/* Stops all unfinished work. Call when no session runs. */
void accounts_hold_done_all(struct account_holds *all);

/* One signal's share of the accounts; initially all 0. */
struct accounts_hold {
	struct accounts_held *held; /* NULL: the program is not attached for this signal */
	bool shared;		    /* the accounts also have threads outside of the session */
};

/* Returns why no session has accounts: a literal; NULL: sessions can have accounts. */
const char *accounts_hold_reason(const struct signal_host *host);

/*
 * Removes leftovers of ended sessions from the table. Call before a slot is set to capture, because
 * an old account would continue there.
 */
void accounts_hold_settle(const struct signal_host *host);

/*
 * Enters threads of sessions that have begun, and removes accounts of ended sessions, within the
 * main loop's time slice.
 */
void accounts_hold_step(const struct signal_host *host);

/* Returns whether accounts_hold_step has more to do. */
bool accounts_hold_has_rest(const struct signal_host *host);

/*
 * Attaches the program, or joins the session's other signals. All threads are entered after the
 * attach: the program sees threads that are born in the meantime, and the reading sees threads that
 * sleep. Sets signal->why; NULL if the signal runs. Returns whether it was attached by this call.
 */
bool accounts_hold_attach(struct accounts_hold *hold, struct signal *signal,
			  const struct signal_host *host, const struct signal_target *target);

/*
 * Reads the threads' times since the begin, within the main loop's time slice. Returns false while
 * there is more; accounts_hold_end then reads the rest in one iteration.
 */
bool accounts_hold_prepare(struct accounts_hold *hold, const struct signal_host *host,
			   const struct signal_target *target);

/*
 * Returns the threads' times since the begin, borrowed until accounts_hold_leave. Returns NULL if
 * nothing was attached, if the accounts also have threads outside of the session, or if they cannot
 * be read; signal->why then has the reason.
 */
struct thread_accounts *accounts_hold_end(struct accounts_hold *hold, struct signal *signal,
					  const struct signal_host *host,
					  const struct signal_target *target);

/* Returns the accounts at the begin, borrowed until accounts_hold_leave. Only while attached. */
const struct thread_baseline *accounts_hold_before(const struct accounts_hold *hold);

/* Detaches the program after the last signal that uses it. Does nothing if it is not attached. */
void accounts_hold_leave(struct accounts_hold *hold, const struct signal_host *host);

/* Begins the signal's object `key` of session.end, as counter_signal_write_begin does. */
bool accounts_hold_write_begin(const struct accounts_hold *hold, const struct signal *signal,
			       const char *key, struct jsonw *w);

#endif
