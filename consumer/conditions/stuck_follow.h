/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck_follow.h: follows the stuck_threads_pct thresholds of a watch's rules: this share of the
 * cgroup's threads is in one wait. It takes no samples: it uses those of the recorder
 * (consumer/sampling/wait_recorder.h). Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_STUCK_FOLLOW_H
#define TROCAR_CONSUMER_CONDITIONS_STUCK_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/conditions/habit.h"
#include "consumer/trigger/trigger.h"

struct jsonw;
struct wait_recorder;

/* Below this number, threads are never stuck, because one more or less is a large share. */
#define STUCK_THREADS_MIN 4

/* Samples this far apart found the thread in its wait. */
#define STUCK_STOOD_NS (3 * NSEC_PER_SEC)

/*
 * The thread ran before that: at most this long ago, and it was switched at least this often in its
 * life. A pool worker that has had no work for longer, or never had any, is idle, even if it waits
 * on a lock.
 */
#define STUCK_RAN_NS	   (300 * NSEC_PER_SEC)
#define STUCK_SWITCHES_MIN 8

struct stuck_threshold {
	uint32_t milli_pct;
	bool wanted;			   /* valid only while thresholds are updated */
	bool fired;			   /* a session has begun since the threads got stuck */
	uint64_t begun_ns[HABIT_SESSIONS]; /* habit.h */
};

/* The stuck thresholds of one watch. */
struct stuck {
	struct stuck_threshold *thresholds; /* owned; each share once */
	uint32_t count;
};

/* The result of the recorder's last pass for a watch. */
struct stuck_found {
	uint64_t all;	   /* threads that did not run */
	uint64_t threads;  /* part of `all`: in the wait that most threads are stuck in */
	uint64_t since_ns; /* all `threads` are in that wait since then */
	uint8_t wait;	   /* wait_kind.h */
};

/*
 * Updates *stuck to the rules of the watch: creates it if a rule asks for it, frees it (NULL) if
 * none does. A watch of the root cgroup has none. Remaining thresholds keep their state.
 */
void stuck_follow_changed(const struct watch *w, struct stuck **stuck);

/* Finds the wait that most threads of the watch are stuck in. Returns 0 or -ENOMEM. */
int stuck_follow_find(const struct wait_recorder *waits, const struct watch *w,
		      struct stuck_found *ret_found);

/* Fires triggers for rules with a crossed threshold. Call after each complete pass. */
void stuck_follow_check(struct stuck *s, const struct wait_recorder *waits, struct watch *w,
			struct triggers *triggers);

/*
 * Writes the object "stuck": `by` and `reason`; writes nothing if no rule asks for it. `waits`
 * NULL: no sampling passes.
 */
void stuck_follow_write(const struct wait_recorder *waits, const struct watch *w,
			struct jsonw *json);

/* Frees `s`; NULL is allowed. */
void stuck_follow_free(struct stuck *s);

#endif
