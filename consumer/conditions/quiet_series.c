/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/quiet_series.h"

#include "shared/rules/rules.h"
#include "shared/tools/macro.h"

/* A share of QUIET_IDLE_PCT of one CPU, in microseconds a second. */
#define IDLE_US_PER_S (QUIET_IDLE_PCT * 10000ULL)

/* Shortest accepted window: a reading may come before its timer by this share of a window. */
static uint64_t least_ms(uint64_t window_ms)
{
	return window_ms - window_ms / 10;
}

/* The reading that is `age` readings older than the newest. */
static const struct quiet_reading *recent_at(const struct quiet_series *s, uint32_t age)
{
	return &s->recent[(s->newest_recent + QUIET_RECENT - age) % QUIET_RECENT];
}

static const struct quiet_reading *steady_at(const struct quiet_series *s, uint32_t age)
{
	return &s->steady[(s->newest_steady + QUIET_STEADY - age) % QUIET_STEADY];
}

static void put_recent(struct quiet_series *s, struct quiet_reading reading)
{
	s->newest_recent = (s->newest_recent + 1) % QUIET_RECENT;
	s->recent[s->newest_recent] = reading;
	s->n_recent = MIN(s->n_recent + 1, (uint32_t)QUIET_RECENT);
}

static void put_steady(struct quiet_series *s, struct quiet_reading reading)
{
	s->newest_steady = (s->newest_steady + 1) % QUIET_STEADY;
	s->steady[s->newest_steady] = reading;
	s->n_steady = MIN(s->n_steady + 1, (uint32_t)QUIET_STEADY);
}

void quiet_series_reset(struct quiet_series *s)
{
	*s = (struct quiet_series){ 0 };
}

/* Starts the series with this reading. */
static void begin_series(struct quiet_series *s, struct quiet_reading reading)
{
	quiet_series_reset(s);
	put_recent(s, reading);
	put_steady(s, (struct quiet_reading){ 0 });
	s->taken = reading;
}

bool quiet_series_add(struct quiet_series *s, uint64_t time_ms, uint64_t cpu_us)
{
	const struct quiet_reading *last = recent_at(s, 0), reading = { time_ms, cpu_us };

	if (!s->n_recent || time_ms < last->time_ms || cpu_us < last->cpu_us ||
	    time_ms - last->time_ms > QUIET_MEMORY_MS) {
		begin_series(s, reading);
		return true;
	}
	if (time_ms - last->time_ms < QUIET_APART_MS)
		return false;
	put_recent(s, reading);
	return true;
}

/* Returns the age of the oldest reading of usual time that still counts. */
static uint32_t oldest_steady(const struct quiet_series *s)
{
	uint64_t end_ms = steady_at(s, 0)->time_ms;
	uint32_t age = 0;

	while (age + 1 < s->n_steady && end_ms - steady_at(s, age + 1)->time_ms <= QUIET_MEMORY_MS)
		age++;
	return age;
}

/* Returns the age of the newest reading that starts a window of this length; 0: none. */
static uint32_t find_from(const struct quiet_series *s, uint64_t window_ms)
{
	uint64_t now_ms = recent_at(s, 0)->time_ms;

	for (uint32_t age = 1; age < s->n_recent; age++)
		if (now_ms - recent_at(s, age)->time_ms >= least_ms(window_ms))
			return age;
	return 0;
}

/*
 * Returns for how long the cgroup was quiet before the reading of this age, in the interval that
 * ends there, if it had its usual CPU time in the rest of it.
 */
static uint64_t find_shortfall_ms(const struct quiet_series *s, uint32_t age,
				  const struct quiet_window *window)
{
	const struct quiet_reading *end = recent_at(s, age), *begin = recent_at(s, age + 1);
	uint64_t usual_us, used_us, ms;

	if (age + 1 >= s->n_recent)
		return 0;
	ms = end->time_ms - begin->time_ms;
	usual_us = window->usual_us * ms / window->measured_ms;
	used_us = end->cpu_us - begin->cpu_us;
	return used_us < usual_us ? ms - ms * used_us / usual_us : 0;
}

bool quiet_series_window(const struct quiet_series *s, uint32_t window_ms,
			 struct quiet_window *ret_window)
{
	const struct quiet_reading *first, *last, *from, *now = recent_at(s, 0);
	uint32_t from_age = find_from(s, window_ms);
	uint64_t span_ms, measured_ms;

	if (!from_age || !s->n_steady)
		return false;
	from = recent_at(s, from_age);
	first = steady_at(s, oldest_steady(s));
	last = steady_at(s, 0);
	span_ms = last->time_ms - first->time_ms;
	if (span_ms < QUIET_LEARN_MS)
		return false;
	measured_ms = now->time_ms - from->time_ms;
	*ret_window = (struct quiet_window){
		.from_ms = from->time_ms,
		.measured_ms = measured_ms,
		.cpu_us = now->cpu_us - from->cpu_us,
		.usual_us = (last->cpu_us - first->cpu_us) * measured_ms / span_ms,
	};
	ret_window->began_ms = measured_ms + find_shortfall_ms(s, from_age, ret_window);
	return true;
}

bool quiet_series_is_idle(const struct quiet_window *window)
{
	return window->usual_us * 1000 < IDLE_US_PER_S * window->measured_ms;
}

/*
 * Returns whether some window of usual time, of this window's length, had less than QUIET_LOWER
 * times its CPU time.
 */
static bool has_rested(const struct quiet_series *s, const struct quiet_window *window)
{
	uint32_t oldest = oldest_steady(s), from = 0;

	for (uint32_t to = 0; to <= oldest; to++) {
		const struct quiet_reading *end = steady_at(s, to), *begin;

		while (from <= oldest &&
		       end->time_ms - steady_at(s, from)->time_ms < least_ms(window->measured_ms))
			from++;
		if (from > oldest)
			return false;
		begin = steady_at(s, from);
		if ((end->cpu_us - begin->cpu_us) * window->measured_ms <
		    QUIET_LOWER * window->cpu_us * (end->time_ms - begin->time_ms))
			return true;
		/* A window without any CPU time is rest, regardless of this window's CPU time. */
		if (end->cpu_us == begin->cpu_us)
			return true;
	}
	return false;
}

bool quiet_series_is_quiet(const struct quiet_series *s, const struct quiet_window *window,
			   uint32_t milli_pct)
{
	return !quiet_series_is_idle(window) &&
	       window->cpu_us * 100000 < window->usual_us * milli_pct && !has_rested(s, window);
}

/* Adds the recent readings up to `until_ms` to the usual time. */
static void take_until(struct quiet_series *s, uint64_t until_ms)
{
	for (uint32_t age = s->n_recent; age-- > 0;) {
		const struct quiet_reading *r = recent_at(s, age), *last = steady_at(s, 0);

		if (r->time_ms <= s->taken.time_ms || r->time_ms > until_ms)
			continue;
		put_steady(s,
			   (struct quiet_reading){ last->time_ms + (r->time_ms - s->taken.time_ms),
						   last->cpu_us + (r->cpu_us - s->taken.cpu_us) });
		s->taken = *r;
	}
}

bool quiet_series_settle(struct quiet_series *s, uint64_t from_ms)
{
	const struct quiet_reading now = *recent_at(s, 0);

	if (from_ms && !s->quiet_ms) {
		take_until(s, from_ms);
		s->quiet_ms = from_ms;
	} else if (!from_ms && s->quiet_ms) {
		s->quiet_ms = 0;
		s->taken = now;
	} else if (!from_ms && now.time_ms > RULE_QUIET_WINDOW_MAX_MS) {
		/* No future window begins before this time. */
		take_until(s, now.time_ms - RULE_QUIET_WINDOW_MAX_MS);
	}
	if (!s->quiet_ms || now.time_ms - s->quiet_ms < QUIET_MEMORY_MS)
		return false;
	begin_series(s, now);
	return true;
}
