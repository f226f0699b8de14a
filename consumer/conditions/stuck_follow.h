/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck_follow.h: follows the thresholds stuck_threads_pct of a watch's rules: so many of the
 * cgroup's threads stand in one wait. It looks at nothing: it reads the results of the recorder's
 * looks (consumer/sampling/wait_recorder.h). Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_STUCK_FOLLOW_H
#define TROCAR_CONSUMER_CONDITIONS_STUCK_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/conditions/habit.h"
#include "consumer/trigger/trigger.h"

struct jsonw;
struct wait_recorder;

/* Fewer threads are never stuck: with these, one lock more or less is a large share. */
#define STUCK_THREADS_MIN 4

/* Looks so far apart found the thread in its wait. */
#define STUCK_STOOD_NS (3 * NSEC_PER_SEC)

/*
 * It ran before that: since so long, and was switched so often in its life. A worker of a pool that
 * has had no work for longer, or never had any, is idle, though it waits on a lock.
 */
#define STUCK_RAN_NS	   (300 * NSEC_PER_SEC)
#define STUCK_SWITCHES_MIN 8

struct stuck_threshold {
	uint32_t milli_pct;
	bool wanted;			   /* valid only while thresholds are updated */
	bool fired;			   /* a session has begun since the threads stand */
	uint64_t begun_ns[HABIT_SESSIONS]; /* habit.h */
};

/* What is followed of one watch. */
struct stuck {
	struct stuck_threshold *thresholds; /* owned; each share once */
	uint32_t count;
};

/* What the recorder's last pass found of a watch. */
struct stuck_found {
	uint64_t all;	   /* threads that did not run */
	uint64_t threads;  /* of them those in the wait that most are stuck in */
	uint64_t since_ns; /* all of these stand there */
	uint8_t wait;	   /* wait_kind.h */
};

/*
 * Brings *stuck in line with the rules of the watch: makes it where a rule asks for it, frees it
 * (NULL) where none does. A watch of the root cgroup has none. Shares that stay go on.
 */
void stuck_follow_changed(const struct watch *w, struct stuck **stuck);

/* Finds the wait that most threads of the watch are stuck in. 0; -ENOMEM. */
int stuck_follow_find(const struct wait_recorder *waits, const struct watch *w,
		      struct stuck_found *ret_found);

/* Fires triggers for the rules with a crossed threshold. Call after each whole pass. */
void stuck_follow_check(struct stuck *s, const struct wait_recorder *waits, struct watch *w,
			struct triggers *triggers);

/*
 * Writes the object "stuck": `by` and `reason`. Nothing where no rule asks; NULL: there are no
 * looks.
 */
void stuck_follow_write(const struct wait_recorder *waits, const struct watch *w,
			struct jsonw *json);

/* Frees it; NULL is allowed. */
void stuck_follow_free(struct stuck *s);

#endif
