/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quiet_series.h: a cgroup's CPU time as read from time to time, and whether it has fallen quiet:
 * used less than a share of its usual CPU time. What is usual is the mean of the last minutes
 * before the window in question; stretches in which it was quiet are cut out of these minutes.
 * Keeps plain numbers; reads nothing.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_QUIET_SERIES_H
#define TROCAR_CONSUMER_CONDITIONS_QUIET_SERIES_H

#include <stdbool.h>
#include <stdint.h>

/* What is usual is learnt over QUIET_LEARN_MS at least and QUIET_MEMORY_MS at most. */
#define QUIET_LEARN_MS	60000
#define QUIET_MEMORY_MS 300000

/* A cgroup that usually has less than this share of one CPU counts as idle: it is never quiet. */
#define QUIET_IDLE_PCT 1

/*
 * Nor is it quiet where the lowest window of these minutes had less than this many times its
 * present time: it works in bursts, and rests in between.
 */
#define QUIET_LOWER 2

/* Readings that are less apart are passed over. */
#define QUIET_APART_MS 1000

/* Readings of the last window: RULE_WINDOW_MAX_MS of them, and one before. */
#define QUIET_RECENT 16

/* Readings of usual time: 2 KiB. At one each 5 s they cover more than QUIET_MEMORY_MS. */
#define QUIET_STEADY 128

struct quiet_reading {
	uint64_t time_ms;
	uint64_t cpu_us;
};

/* All zero: nothing was read. */
struct quiet_series {
	struct quiet_reading recent[QUIET_RECENT]; /* a ring, by time of day */
	uint32_t n_recent, newest_recent;
	/* A ring of usual time: both numbers count from 0, quiet stretches are not in them. */
	struct quiet_reading steady[QUIET_STEADY];
	uint32_t n_steady, newest_steady;
	struct quiet_reading taken; /* the recent reading up to which `steady` goes */
	uint64_t quiet_ms;	    /* since when it is quiet; 0: it is not */
};

/* How much CPU time a window had, and how much is usual. */
struct quiet_window {
	uint64_t from_ms, measured_ms; /* at least nine tenths of the window that was asked for */
	uint64_t cpu_us, usual_us;     /* in measured_ms */
};

/*
 * Adds a reading. False when it was passed over: too near to the last one. One with a time or CPU
 * time before the last one's, or that comes more than QUIET_MEMORY_MS later, begins the series
 * anew.
 */
bool quiet_series_add(struct quiet_series *s, uint64_t time_ms, uint64_t cpu_us);

/* Returns whether there is a window and something usual to compare it with; only then *ret_window.
 */
bool quiet_series_window(const struct quiet_series *s, uint32_t window_ms,
			 struct quiet_window *ret_window);

/*
 * Returns whether the cgroup is quiet in that window: it had less than `milli_pct` thousandths of a
 * percent of its usual time.
 */
bool quiet_series_is_quiet(const struct quiet_series *s, const struct quiet_window *window,
			   uint32_t milli_pct);

/* Whether the cgroup usually has so little that it counts as idle. */
bool quiet_series_is_idle(const struct quiet_window *window);

/*
 * Call after each reading: `from_ms` is where the earliest window begins in which the cgroup is
 * quiet by some threshold, 0 where it is by none. Adds the readings to the usual time, or cuts them
 * out. A cgroup that stays quiet for QUIET_MEMORY_MS has another usual time from now on: the series
 * begins anew. True then.
 */
bool quiet_series_settle(struct quiet_series *s, uint64_t from_ms);

/* Forgets all: the service has started anew. */
void quiet_series_reset(struct quiet_series *s);

#endif
