/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accounts_hold.h: the time accounts of a session, which several of its signals take their evidence
 * from. The first that attaches has the program attached and reads the accounts, the others join;
 * likewise at the end. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_ACCOUNTS_HOLD_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_ACCOUNTS_HOLD_H

#include <stdbool.h>

#include "consumer/evidence/time/account_table.h"
#include "consumer/evidence/time/thread_accounts.h"
#include "consumer/signals/signals.h"

struct accounts_held;

/* The time accounts of all sessions; begins as all 0. */
struct account_holds {
	struct accounts_held *first; /* of the sessions that have any */
	struct account_sweep sweep;  /* of the leftovers of others */
	unsigned int calls; /* sessions that have waits counted by system call (control.calls) */
};

/* Stops what is not over. Call when no session runs. */
void accounts_hold_done_all(struct account_holds *all);

/* One signal's part in it; begins as all 0. */
struct accounts_hold {
	struct accounts_held *held; /* NULL: the program is not attached for this signal */
	bool tried;		    /* accounts_hold_attach was called */
	bool shared;		    /* the accounts are of others too */
	uint64_t late_ms;	    /* the program was attached so long after the begin */
};

/* Returns why the signal does not run before it is attached: a literal. */
const char *accounts_hold_reason(const struct signal_host *host);

/*
 * Removes the leftovers of ended sessions from the table. Call before a slot is set to capture: an
 * account of before would go on there.
 */
void accounts_hold_settle(const struct signal_host *host);

/*
 * Enters threads of sessions that have begun, and removes accounts of those that have ended, for as
 * long as a turn has time.
 */
void accounts_hold_step(const struct signal_host *host);

/* Returns whether accounts_hold_step has more to do. */
bool accounts_hold_has_rest(const struct signal_host *host);

/*
 * Attaches the program, or joins the session's other signals, and enters all threads after it is
 * attached: the program meets threads that are born in the meantime, the reading those that sleep.
 * Sets signal->why, NULL where it runs. Returns whether it was attached now.
 */
bool accounts_hold_attach(struct accounts_hold *hold, struct signal *signal,
			  const struct signal_host *host, const struct signal_target *target);

/*
 * Reads the threads' times since the begin, for as long as a turn has time. Returns false while
 * there is more; accounts_hold_end then reads the rest in one turn.
 */
bool accounts_hold_prepare(struct accounts_hold *hold, const struct signal_host *host,
			   const struct signal_target *target);

/*
 * Returns the threads' times since the begin, borrowed until accounts_hold_leave; NULL where
 * nothing was attached, where the accounts are of others too, or where they cannot be read: then
 * signal->why says so.
 */
struct thread_accounts *accounts_hold_end(struct accounts_hold *hold, struct signal *signal,
					  const struct signal_host *host,
					  const struct signal_target *target);

/* Returns the accounts at the begin, borrowed as above. Attached only. */
const struct thread_baseline *accounts_hold_before(const struct accounts_hold *hold);

/* Detaches the program behind the last signal that has it. Does nothing where it is not attached.
 */
void accounts_hold_leave(struct accounts_hold *hold, const struct signal_host *host);

/* Writes `key` as null, and key_reason: why there is nothing. */
void accounts_hold_write_missing(const struct accounts_hold *hold, const struct signal *signal,
				 const char *key, const char *key_reason, struct jsonw *w);

#endif
