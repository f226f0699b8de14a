/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quiet_series.h: a cgroup's CPU time as read periodically, and whether it has become quiet: used
 * less than a share of its usual CPU time. The usual time is the mean of the last minutes before
 * the window in question, without intervals in which the cgroup was quiet. Keeps plain numbers;
 * reads nothing.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_QUIET_SERIES_H
#define TROCAR_CONSUMER_CONDITIONS_QUIET_SERIES_H

#include <stdbool.h>
#include <stdint.h>

/* The usual time is learnt over at least QUIET_LEARN_MS and at most QUIET_MEMORY_MS. */
#define QUIET_LEARN_MS	60000
#define QUIET_MEMORY_MS 300000

/*
 * A cgroup with a usual time of less than this share of one CPU counts as idle: it is never quiet.
 */
#define QUIET_IDLE_PCT 1

/*
 * The cgroup is not quiet either if the lowest window of these minutes had less than this many
 * times its present time: it then works in bursts, with rests between them.
 */
#define QUIET_LOWER 2

/* Readings closer together than this are skipped. */
#define QUIET_APART_MS 1000

/* Readings of the last window: RULE_WINDOW_MAX_MS, and one reading before. */
#define QUIET_RECENT 16

/* Readings of usual time: 2 KiB. At one reading per 5 s they cover more than QUIET_MEMORY_MS. */
#define QUIET_STEADY 128

struct quiet_reading {
	uint64_t time_ms;
	uint64_t cpu_us;
};

/* All zero: no readings. */
struct quiet_series {
	struct quiet_reading recent[QUIET_RECENT]; /* a ring, by time of day */
	uint32_t n_recent, newest_recent;
	/* A ring of usual time: both numbers count from 0, and quiet intervals are left out. */
	struct quiet_reading steady[QUIET_STEADY];
	uint32_t n_steady, newest_steady;
	struct quiet_reading taken; /* last recent reading that was added to `steady` */
	uint64_t quiet_ms;	    /* since when the cgroup is quiet; 0: not quiet */
};

/* The CPU time of a window, and the usual time. */
struct quiet_window {
	uint64_t from_ms, measured_ms; /* at least nine tenths of the requested window */
	/*
	 * How long ago it began to be quiet: the window, and of the interval before it the part for
	 * which its CPU time falls short of the usual one.
	 */
	uint64_t began_ms;
	uint64_t cpu_us, usual_us; /* in measured_ms */
};

/*
 * Adds a reading. Returns false if it was skipped because it is too close to the last one. If its
 * time or CPU time is below that of the last reading, or if it is more than QUIET_MEMORY_MS later,
 * the series begins anew.
 */
bool quiet_series_add(struct quiet_series *s, uint64_t time_ms, uint64_t cpu_us);

/*
 * Returns whether there is a window and a usual time to compare it with; sets *ret_window only
 * then.
 */
bool quiet_series_window(const struct quiet_series *s, uint32_t window_ms,
			 struct quiet_window *ret_window);

/*
 * Returns whether the cgroup is quiet in the window: it had less than `milli_pct` thousandths of a
 * percent of its usual time.
 */
bool quiet_series_is_quiet(const struct quiet_series *s, const struct quiet_window *window,
			   uint32_t milli_pct);

/* Returns whether the usual time is so small that the cgroup counts as idle. */
bool quiet_series_is_idle(const struct quiet_window *window);

/*
 * Call after each reading. `from_ms` is the begin of the earliest window in which the cgroup is
 * quiet by some threshold; 0: quiet by none. Adds the readings to the usual time, or leaves them
 * out. If the cgroup stays quiet for QUIET_MEMORY_MS, its usual time has changed: the series begins
 * anew, and the call returns true.
 */
bool quiet_series_settle(struct quiet_series *s, uint64_t from_ms);

/* Removes all readings, because the service has restarted. */
void quiet_series_reset(struct quiet_series *s);

#endif
