/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quiet_follow.h: follows the quiet_pct thresholds of a watch's rules: the cgroup's CPU time fell
 * below a share of its usual CPU time. It reads no file: the readings are those of watch_facts.h.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_QUIET_FOLLOW_H
#define TROCAR_CONSUMER_CONDITIONS_QUIET_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/conditions/habit.h"
#include "consumer/conditions/quiet_series.h"
#include "consumer/trigger/trigger.h"

struct jsonw;

/* A share and a window; rules of the watch with equal values have one threshold. */
struct quiet_threshold {
	uint32_t milli_pct, window_ms;
	bool wanted;			   /* valid only while thresholds are updated */
	bool fired;			   /* a session has begun since the cgroup became quiet */
	uint64_t begun_ns[HABIT_SESSIONS]; /* habit.h */
};

/* The quiet thresholds of one watch. */
struct quiet {
	struct quiet_series series;
	uint64_t read_ns;		    /* time of the newest reading taken */
	struct quiet_threshold *thresholds; /* owned */
	uint32_t count;
};

/*
 * Updates *quiet to the rules of the watch: creates it if a rule asks for it, frees it (NULL) if
 * none does. A watch of the root cgroup has none. Remaining thresholds keep their history.
 */
void quiet_follow_changed(const struct watch *w, struct quiet **quiet);

/*
 * Takes the watch's newest facts, unless they were taken before, and fires triggers for rules with
 * a crossed threshold. Call after each drain that may have read facts.
 */
void quiet_follow_read(struct quiet *q, struct watch *w, struct triggers *triggers);

/*
 * Writes the object "quiet": `by` and `reason`, and with `state` also the usual CPU time and that
 * of the last window. Writes nothing if no rule asks for it.
 */
void quiet_follow_write(const struct quiet *q, const struct watch *w, bool state,
			struct jsonw *json);

/* Frees `q`; NULL is allowed. */
void quiet_follow_free(struct quiet *q);

#endif
