/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_waits.h: reads the waits for locks from the kernel side, at the begin of a session and at
 * its end, and takes the difference: for each lock how often and how long threads waited, and the
 * wakers.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_WAITS_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/locks/lock_maps.h"
#include "consumer/signals/ledger.h"
#include "consumer/signals/signals.h"
#include "shared/abi/abi.h"

struct long_waits;
struct module;

#define LOCK_WAITS_NAMED  64 /* locks; the rest is one without a name */
#define LOCK_WAITS_WAKERS 4  /* that are reported for each lock */

/* What the waits for a lock look like. */
enum lock_pattern {
	LOCK_PATTERN_NONE,
	LOCK_PATTERN_LONG_HOLD, /* long waits, of several threads, behind one thread */
	LOCK_PATTERN_CONVOY,	/* many short waits of several threads */
	LOCK_PATTERN_HERD,	/* many threads are woken for it together, and most in vain */
};

/* The wakers of the long waits for a lock. */
struct lock_woken {
	uint32_t kind;		 /* enum lock_waker_kind */
	uint32_t tid, tgid;	 /* of a thread; 0: outside of the loader's --scope */
	uint64_t waits, held_ns; /* as in struct lock_waker */
	uint32_t stack;		 /* number of its heaviest stack there, plus 1; 0: it has none */
	char comm[COMM_BYTES];
};

/*
 * A module that the process of a lock has mapped as code, the next one below the address of the
 * lock: if the lock is a variable of a module, it is of this one, since a file's data lie behind
 * its code.
 */
struct lock_place {
	const struct module *module; /* NULL: none. It lives as the modules of a stack do */
	uint64_t code_address;	     /* where the code is mapped */
	uint64_t code_offset;	     /* in the file */
};

/* The waits for one lock. Those that were not over at the end are counted until then. */
struct lock_waited {
	struct lock_key lock;  /* tgid 0: of the locks that are not named */
	uint64_t locks;	       /* how many these are */
	uint64_t start_ns;     /* of the process */
	char comm[COMM_BYTES]; /* of its first thread */
	struct lock_place place;
	struct lock_memory memory; /* as the kernel side saw it; its name ends within */
	uint64_t waits, total_ns;
	uint64_t open, open_ns; /* of these, not over at the end */
	uint64_t longest_ns;
	uint32_t longest_tid;
	char longest_comm[COMM_BYTES];
	uint64_t p50_ns, p90_ns, p99_ns; /* bounds (time_histogram.h), at most longest_ns */
	uint64_t buckets[LOCK_BUCKETS];	 /* of `waits` */
	uint32_t threads; /* that waited; two with ids that differ by 512 count as one */
	uint64_t again;	  /* waits of threads that had been woken together, and did not get it */
	enum lock_pattern pattern;
	bool condition;		      /* a condition variable (report/condition_locks.h) */
	uint32_t n_wakers;	      /* in `wakers`, those with the most time first */
	uint64_t wakers, waker_waits; /* all that are known, and the long waits that they ended */
	struct lock_woken woken[LOCK_WAITS_WAKERS];
	/* Private. */
	uint64_t bits[LOCK_THREAD_WORDS];
};

/* The waits of a session. */
struct lock_waits {
	struct lock_waited *items; /* owned; those with the most time first, the unnamed last */
	size_t count;
	struct lock_waited all;	  /* their sum */
	struct ledger ledger;	  /* a wait is an attempt */
	struct ledger stacks;	  /* of those that woke */
	uint64_t wakers_lost;	  /* long waits without room for their waker */
	struct lock_record *open; /* owned; the waits that were not over at the end, by thread */
	size_t n_open;
	struct slot_locks lost;		     /* waits without room in the kernel side */
	const struct long_waits *long_waits; /* of any kind; borrowed. NULL: they were not read */
};

/*
 * Notes the waits so far. The slot is set to capture, the program is attached, and the threads have
 * their accounts (thread_accounts_begin). 0 or -errno; on failure nothing is kept.
 */
int lock_waits_begin(const struct pinned_maps *pins, uint32_t slot,
		     struct lock_baseline *ret_before);

/*
 * Takes the waits since then; `only_tgid` 0: of all processes. Call while the slot still names the
 * session and the threads have their accounts. 0 or -errno.
 */
int lock_waits_end(const struct pinned_maps *pins, uint32_t slot, uint32_t only_tgid,
		   const struct lock_baseline *before, struct lock_waits *ret_waits);

/*
 * Returns the word of a kind, "futex"; of the memory of a lock, "heap"; of a waker, "thread"; and
 * of a pattern, or NULL.
 */
const char *lock_waits_kind(uint32_t kind);
const char *lock_waits_memory(uint32_t kind);
const char *lock_waits_waker(uint32_t kind);
const char *lock_waits_pattern(enum lock_pattern pattern);

void lock_waits_done(struct lock_waits *waits);

/* Returns those of a session's signals; the session owns them. NULL: it has none. */
static inline struct lock_waits *lock_waits_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_LOCK);
}

#endif
