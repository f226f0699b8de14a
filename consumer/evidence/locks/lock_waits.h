/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_waits.h: reads the lock waits from the kernel side, at the begin and at the end of a
 * session, and takes the difference: for each lock, the number and time of waits, and the wakers.
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

#define LOCK_WAITS_NAMED  64 /* locks; the others are one without a name */
#define LOCK_WAITS_WAKERS 4  /* reported for each lock */

/* The pattern of the waits for a lock. */
enum lock_pattern {
	LOCK_PATTERN_NONE,
	LOCK_PATTERN_LONG_HOLD, /* long waits, of several threads, for one holder */
	LOCK_PATTERN_CONVOY,	/* many short waits of several threads */
	LOCK_PATTERN_HERD, /* many threads are woken for it together, most of them without effect */
};

/* The wakers of the long waits for a lock. */
struct lock_woken {
	uint32_t kind;		 /* enum lock_waker_kind */
	uint32_t tid, tgid;	 /* of a thread; 0: outside of the loader's --scope */
	uint64_t waits, held_ns; /* as in struct lock_waker */
	uint32_t stack;		 /* number of its heaviest stack there, plus 1; 0: none */
	char comm[COMM_BYTES];
};

/*
 * The module that the lock's process has mapped as code next below the address of the lock. If the
 * lock is a variable of a module, it is of this one, because a file's data follows its code.
 */
struct lock_place {
	const struct module *module; /* NULL: none. Lives as long as the modules of a stack */
	uint64_t code_address;	     /* where the code is mapped */
	uint64_t code_offset;	     /* offset of this code in the file */
};

/* The waits for one lock. Unfinished waits count until the end of the session. */
struct lock_waited {
	struct lock_key lock;  /* tgid 0: of the locks without a name */
	uint64_t locks;	       /* number of these locks */
	uint64_t start_ns;     /* of the process */
	char comm[COMM_BYTES]; /* of its first thread */
	struct lock_place place;
	struct lock_memory memory; /* as seen by the kernel side; its name is NUL-terminated */
	uint64_t waits, total_ns;
	uint64_t open, open_ns; /* part of these that was unfinished at the end */
	uint64_t longest_ns;
	uint32_t longest_tid;
	char longest_comm[COMM_BYTES];
	uint64_t p50_ns, p90_ns, p99_ns; /* bounds (time_histogram.h), at most longest_ns */
	uint64_t buckets[LOCK_BUCKETS];	 /* of `waits` */
	uint32_t threads; /* threads that waited; two with ids that differ by 512 count as one */
	uint64_t woken_in_vain; /* waits of threads that were woken together without getting it */
	enum lock_pattern pattern;
	bool condition;		      /* a condition variable (report/condition_locks.h) */
	uint32_t n_wakers;	      /* in `woken`, the most time first */
	uint64_t wakers, waker_waits; /* all known wakers, and the long waits that they ended */
	struct lock_woken woken[LOCK_WAITS_WAKERS];
	/* Private. */
	uint64_t bits[LOCK_THREAD_WORDS];
};

/* The waits of a session. */
struct lock_waits {
	struct lock_waited *items; /* owned; the most time first, the unnamed one last */
	size_t count;
	struct lock_waited all;	  /* their sum */
	struct ledger ledger;	  /* each wait is an attempt */
	struct ledger stacks;	  /* of the wakers' stacks */
	uint64_t wakers_lost;	  /* long waits without space for their waker */
	struct lock_record *open; /* owned; waits unfinished at the end, by thread */
	size_t n_open;
	struct slot_locks lost;		     /* waits that did not fit on the kernel side */
	const struct long_waits *long_waits; /* of any kind; borrowed; NULL: not read */
};

/*
 * Records the waits so far. The slot is set to capture, the program is attached, and the threads
 * have their accounts (thread_accounts_begin). Returns 0 or -errno; on failure nothing is kept.
 */
int lock_waits_begin(const struct pinned_maps *pins, uint32_t slot,
		     struct lock_baseline *ret_before);

/*
 * Sets *ret_waits to the waits since `before`; `only_tgid` 0: of all processes. Call while the slot
 * still names the session and the threads have their accounts. Returns 0 or -errno. Release with
 * lock_waits_done.
 */
int lock_waits_end(const struct pinned_maps *pins, uint32_t slot, uint32_t only_tgid,
		   const struct lock_baseline *before, struct lock_waits *ret_waits);

/*
 * Returns whether threads that wait for the futex of this process mostly wake each other: then a
 * lock is handed on among them, whatever kind of futex it is. Work comes from threads that do not
 * wait for it. `waits` NULL, or a futex that is not among them: false.
 */
bool lock_waits_is_handed_on(const struct lock_waits *waits, uint32_t tgid, uint64_t address);

/*
 * Returns the word for a kind ("futex"), for a lock's memory ("heap"), for a waker ("thread"), or
 * for a pattern, which may be NULL.
 */
const char *lock_waits_kind(uint32_t kind);
const char *lock_waits_memory(uint32_t kind);
const char *lock_waits_waker(uint32_t kind);
const char *lock_waits_pattern(enum lock_pattern pattern);

void lock_waits_done(struct lock_waits *waits);

/* Returns the lock waits of a session's signals, which the session owns; NULL if it has none. */
static inline struct lock_waits *lock_waits_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_LOCK);
}

#endif
