/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chains.h: wait chains: the threads that a session's threads waited for, and their activity in
 * that time, link by link. Made from the single long waits: a wait has a begin, an end, and a
 * thread that ended it; the activity of that thread is taken for exactly this time. Waits of
 * threads with the same name (without digits) that follow the same path are one chain. Pure; report
 * thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_CHAINS_H
#define TROCAR_CONSUMER_ANSWER_CHAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/locks/lock_names.h"
#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/evidence/locks/long_waits.h"
#include "consumer/evidence/waits/wait_places.h"

#define CHAINS_LINKS   5
#define CHAINS_NODES   8192	  /* sets of threads and their activities, in all chains */
#define CHAINS_STEPS   2000000ull /* waits visited on all paths: a tenth of a second */
#define CHAINS_NO_NODE 0	  /* the root node: all first links are its children */
#define CHAINS_PASS    64	  /* threads that one lock is handed through, within one wait */

enum chain_end {
#define CHAIN_END(id, json, says) CHAIN_END_##id,
#include "shared/findings/chain_ends.def"
#undef CHAIN_END
	CHAIN_ENDS_
};

/*
 * The activity of the threads of one name while the threads of the previous link waited for them.
 */
struct chain_link {
	uint8_t state;	/* wait_kind.h; WAIT_RUNS: no long wait */
	bool idle;	/* of a wait: for work, and no thread waits for them */
	bool condition; /* on a condition variable */
	uint64_t ns, waits;
	uint32_t threads;   /* two with ids that differ by 512 count as one */
	uint32_t tid, tgid; /* of the thread with the longest part */
	char comm[COMM_BYTES];
	uint32_t lock; /* number in the lock_waits plus 1; 0: none named or contended */
	/* For WAIT_RUNS: the split of ns by the threads' activity over the whole session. */
	uint64_t running_ns, queue_ns, short_ns;
	const struct wait_place *place; /* of the waits of thread `tid`; NULL: unknown */
};

struct chain {
	struct chain_link links[CHAINS_LINKS];
	uint32_t count;
	enum chain_end end;
	char end_comm[COMM_BYTES]; /* of the thread that the end names */
	bool idle;		   /* no thread of the chain has work: it waits for work */
	uint32_t number;	   /* of its `chain` line, from 1; 0: no line */
	uint32_t root;		   /* private */
};

/* Private: the activity of some threads at the end of a certain path. */
struct chain_node {
	uint32_t parent, child, next;
	uint32_t group, lock;
	uint8_t state, end; /* of an end: WAIT_RUNS and the end; else CHAIN_ENDS_ */
	bool condition, idle;
	uint64_t ns, waits, running_ns, queue_ns, short_ns;
	uint64_t longest_ns;
	uint32_t tid;
	char comm[COMM_BYTES]; /* of the thread that the end names */
	uint64_t threads[LOCK_THREAD_WORDS];
};

/* All chains of a session. All 0: no chains. */
struct chains {
	struct chain *items; /* owned; the most time first, one for each first link */
	size_t count;
	uint64_t ns;		  /* of their first links */
	uint64_t unwalked_ns;	  /* part of ns: no steps were left to walk further */
	bool partial;		  /* some waits were lost, or are in no node */
	struct chain_node *nodes; /* owned */
	uint32_t n_nodes;
};

/*
 * Makes the chains; `locks`, `names` (of the locks) and `places` may be NULL. Returns 0 or -ENOMEM.
 * The arguments must live as long as the chains. Release with chains_done.
 */
int chains_make(const struct long_waits *waits, const struct lock_waits *locks,
		const struct lock_name *names, const struct wait_places *places,
		struct chains *ret_chains);
void chains_done(struct chains *c);

#endif
