/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/pressure_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "consumer/conditions/psi_trigger.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define SCAN_MIN_NS (100 * NSEC_PER_MSEC)

/* An unprivileged process may set this trigger (psi_trigger.h). */
#define TRIGGER_WINDOW_NS    (2 * NSEC_PER_SEC)
#define TRIGGER_THRESHOLD_US 100

/* The scan sleeps when no needed total has grown for this long. */
#define SLEEP_AFTER_NS (4 * NSEC_PER_SEC)

/*
 * Moves the newest point, which is from before the sleep, to the start of the trigger's window. The
 * trigger that woke the scan ignores less than TRIGGER_THRESHOLD_US per window: that much per
 * window of sleep is taken off the growth, because it must not add up to a stall.
 */
static void age_history(struct psi_history *history, uint64_t now_ns)
{
	const struct psi_point *newest = psi_history_newest(history);
	uint64_t then_ns = now_ns - TRIGGER_WINDOW_NS, slack_us;
	struct psi psi;

	if (!newest || newest->time_ns >= then_ns)
		return;
	slack_us = TRIGGER_THRESHOLD_US * ((now_ns - newest->time_ns) / TRIGGER_WINDOW_NS + 1);
	psi = newest->psi;
	psi.some.total_us += slack_us;
	psi.full.total_us += slack_us;
	psi_history_clear(history);
	psi_history_add(history, then_ns, &psi);
	psi_history_pause(history);
}

static void age_histories(const struct followed_slots *slots)
{
	uint64_t now_ns = clock_mono_ns();

	for (uint32_t i = 0; i < slots->count; i++)
		for (int r = 0; r < RESOURCE_COUNT_; r++)
			if (slots->at[i].file[r].by_scan)
				age_history(&slots->at[i].file[r].history, now_ns);
}

static void on_trigger(void *context, uint32_t events)
{
	struct pressure_scan *s = context;

	if (!s->asleep || !s->every_ns)
		return;
	s->asleep = false;
	age_histories(s->slots);
	loop_timer_set(s->timer, 1, s->every_ns);
}

static void open_system(struct pressure_scan *scan, struct loop *loop, enum resource resource)
{
	struct pressure_system *s = &scan->system[resource];
	char path[64], text[PSI_TRIGGER_TEXT_BYTES];
	struct psi psi;
	size_t n;

	snprintf(path, sizeof(path), "/proc/pressure/%s", rules_resource_name(resource));
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0) {
		s->error = -errno;
		return;
	}
	s->error = psi_read(s->fd, &psi);
	if (s->error < 0) {
		close(s->fd);
		s->fd = -1;
		return;
	}
	s->trigger_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (s->trigger_fd < 0)
		return;
	n = psi_trigger_text(text, false, TRIGGER_THRESHOLD_US, TRIGGER_WINDOW_NS / 1000);
	if (write(s->trigger_fd, text, n) < 0 ||
	    loop_add(loop, s->trigger_fd, 0, on_trigger, scan, &s->source) < 0) {
		close(s->trigger_fd);
		s->trigger_fd = -1;
	}
}

int pressure_scan_system(const struct pressure_scan *scan, enum resource resource,
			 struct psi *ret_psi)
{
	const struct pressure_system *s = &scan->system[resource];

	return s->fd < 0 ? s->error : psi_read(s->fd, ret_psi);
}

const char *pressure_scan_sleep(const struct pressure_scan *scan, const char **ret_reason)
{
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		const struct pressure_system *s = &scan->system[i];

		if (s->needed && s->fd < 0) {
			*ret_reason = "/proc/pressure cannot be read: the scan never sleeps";
			return "timer";
		}
		if (s->needed && s->trigger_fd < 0) {
			*ret_reason = "the kernel grants no unprivileged trigger on /proc/pressure "
				      "(Linux 6.4 does)";
			return "timer";
		}
	}
	*ret_reason = "an unprivileged trigger on /proc/pressure wakes the scan";
	return "trigger";
}

/* Returns whether every needed resource has a trigger that can wake the scan. */
static bool can_sleep(const struct pressure_scan *s)
{
	const char *reason;

	return !strcmp(pressure_scan_sleep(s, &reason), "trigger");
}

/*
 * Marks the resources that the scan needs for this watch. Returns the interval that suffices:
 * `every_ns` or shorter.
 */
static uint64_t note_need(struct pressure_scan *s, const struct followed *f, uint64_t every_ns)
{
	for (const struct threshold *t = f->thresholds; t; t = t->next) {
		uint64_t tenth = MAX(t->window_ms * NSEC_PER_MSEC / 10, SCAN_MIN_NS);

		if (t->way == THRESHOLD_TRIGGER || f->file[t->resource].fd < 0)
			continue;
		s->system[t->resource].needed = true;
		every_ns = every_ns ? MIN(every_ns, tenth) : tenth;
	}
	return every_ns;
}

static void set_pace(struct pressure_scan *s, uint64_t every_ns)
{
	/* Do not let an unneeded trigger wake the loop. */
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		if (s->system[i].source)
			loop_change(s->system[i].source, s->system[i].needed ? EPOLLPRI : 0);
	if (every_ns == s->every_ns)
		return;
	s->every_ns = every_ns;
	s->asleep = !every_ns;
	loop_timer_set(s->timer, every_ns ? 1 : 0, every_ns);
}

void pressure_scan_refresh(struct pressure_scan *s)
{
	uint64_t every_ns = 0;

	for (int i = 0; i < RESOURCE_COUNT_; i++)
		s->system[i].needed = false;
	for (uint32_t i = 0; i < s->slots->count; i++)
		every_ns = note_need(s, &s->slots->at[i], every_ns);
	set_pace(s, every_ns);
}

void pressure_scan_refresh_new(struct pressure_scan *s, const struct followed *f)
{
	set_pace(s, note_need(s, f, s->every_ns));
}

/* Returns whether readings were skipped since the newest one. */
static bool was_paused(const struct pressure_scan *s, const struct psi_history *history,
		       uint64_t now_ns)
{
	const struct psi_point *newest = psi_history_newest(history);

	return newest && now_ns - newest->time_ns > 2 * s->every_ns;
}

static void scan_followed(struct pressure_scan *s, struct followed *f, uint64_t now_ns)
{
	const struct psi_point *fresh[RESOURCE_COUNT_] = {};

	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct followed_file *file = &f->file[i];
		struct psi psi;

		if (!file->by_scan || file->fd < 0)
			continue;
		if (psi_read(file->fd, &psi) < 0) {
			file->failed = true;
			continue;
		}
		if (was_paused(s, &file->history, now_ns))
			psi_history_pause(&file->history);
		threshold_add_reading(file, now_ns, &psi);
		fresh[i] = psi_history_newest(&file->history);
	}
	/*
	 * Also checks thresholds that triggers follow, because their file was read anyway; the
	 * kernel's notice may come a moment later.
	 */
	for (struct threshold *t = f->thresholds; t; t = t->next) {
		const struct psi_point *now = fresh[t->resource], *from;

		from = now ? crossing_compare(t, &f->file[t->resource].history, now) : NULL;
		if (from)
			crossing_act(s->crossings, t, from, now, CROSSING_BY_SCAN);
	}
}

/*
 * Records which needed resources' system-wide totals have grown. True if one grew within the last
 * `within_ns`, or cannot be read, as in a container that hides /proc/pressure.
 */
static bool system_moves(struct pressure_scan *scan, uint64_t now_ns, uint64_t within_ns)
{
	bool moves = false;

	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct pressure_system *s = &scan->system[i];
		struct psi psi = {};

		if (!s->needed)
			continue;
		if (pressure_scan_system(scan, (enum resource)i, &psi) < 0) {
			moves = true;
			continue;
		}
		if (psi.some.total_us != s->total_us) {
			s->total_us = psi.some.total_us;
			s->moved_ns = now_ns;
		}
		moves = moves || now_ns - s->moved_ns < within_ns;
	}
	return moves;
}

static void on_scan(void *context, uint32_t events)
{
	struct pressure_scan *s = context;
	uint64_t now_ns = clock_mono_ns();

	if (!system_moves(s, now_ns, SLEEP_AFTER_NS)) {
		if (can_sleep(s)) {
			s->asleep = true;
			loop_timer_set(s->timer, 0, 0);
		}
		return;
	}
	/* By slot: a session that starts or ends must not disturb the iteration. */
	for (uint32_t i = 0; i < s->slots->count; i++)
		scan_followed(s, &s->slots->at[i], now_ns);
}

int pressure_scan_open(struct pressure_scan *s, struct loop *loop)
{
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		s->system[i].fd = s->system[i].trigger_fd = -1;
		open_system(s, loop, (enum resource)i);
	}
	s->asleep = true;
	return loop_timer(loop, on_scan, s, &s->timer);
}

void pressure_scan_done(struct pressure_scan *scan)
{
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct pressure_system *s = &scan->system[i];

		loop_remove(s->source);
		if (s->fd >= 0)
			close(s->fd);
		if (s->trigger_fd >= 0)
			close(s->trigger_fd);
		*s = (struct pressure_system){ .fd = -1, .trigger_fd = -1 };
	}
	loop_remove(scan->timer);
	scan->timer = NULL;
}
