/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "consumer/agent.h"
#include "shared/clock.h"
#include "shared/macro.h"

#define SCAN_MIN_NS (100 * NSEC_PER_MSEC)

/* What the consumer may ask of the kernel by itself (trigger.h). */
#define TRIGGER_WINDOW_NS    (2 * NSEC_PER_SEC)
#define TRIGGER_THRESHOLD_US 100

/* After this long without movement the scan sleeps. */
#define SLEEP_AFTER_NS (4 * NSEC_PER_SEC)

static void scan(void *context, uint32_t events);

/*
 * The newest point of each history is from before the sleep. What the trigger let pass unseen since
 * then (less than its threshold in each window) must not add up to a stall: it is taken off, and
 * the rest counts as having happened in the trigger's own window.
 */
static void age_histories(struct agent *a)
{
	uint64_t now_ns = clock_mono_ns(), then_ns = now_ns - TRIGGER_WINDOW_NS;
	struct watch *w;
	uint64_t id;

	idmap_for_each (&a->watches.by_cgroup, i, id, w)
		for (int r = 0; r < RESOURCE_COUNT_; r++) {
			struct psi_history *history = &w->pressure[r].history;
			const struct psi_point *newest = psi_history_newest(history);
			uint64_t slack_us;
			struct psi psi;

			if (!w->pressure[r].by_scan || !newest || newest->time_ns >= then_ns)
				continue;
			slack_us = TRIGGER_THRESHOLD_US *
				   ((now_ns - newest->time_ns) / TRIGGER_WINDOW_NS + 1);
			psi = newest->psi;
			psi.some.total_us += slack_us;
			psi.full.total_us += slack_us;
			psi_history_clear(history);
			psi_history_add(history, then_ns, &psi);
		}
}

static void wake(struct agent *a)
{
	if (!a->pressure.asleep || !a->pressure.every_ns)
		return;
	a->pressure.asleep = false;
	age_histories(a);
	loop_timer_set(a->pressure.timer, 1, a->pressure.every_ns);
}

static void triggered(void *context, uint32_t events)
{
	wake(context);
}

static void open_system(struct agent *a, enum resource resource)
{
	struct pressure_system *s = &a->pressure.system[resource];
	char path[64], text[TRIGGER_TEXT_BYTES];
	struct psi psi;
	size_t n;

	snprintf(path, sizeof(path), "/proc/pressure/%s", resource_name(resource));
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
	n = trigger_text(text, false, TRIGGER_THRESHOLD_US, TRIGGER_WINDOW_NS / 1000);
	if (write(s->trigger_fd, text, n) < 0 ||
	    loop_add(a->loop, s->trigger_fd, 0, triggered, a, &s->source) < 0) {
		close(s->trigger_fd);
		s->trigger_fd = -1;
	}
}

int pressure_open(struct agent *a)
{
	int r = triggers_open(a);

	if (r < 0)
		return r;
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		a->pressure.system[i].fd = a->pressure.system[i].trigger_fd = -1;
		open_system(a, (enum resource)i);
	}
	a->pressure.asleep = true;
	r = loop_timer(a->loop, pressure_look, a, &a->pressure.look);
	if (r < 0)
		return r;
	return loop_timer(a->loop, scan, a, &a->pressure.timer);
}

void pressure_done(struct agent *a)
{
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct pressure_system *s = &a->pressure.system[i];

		loop_remove(s->source);
		if (s->fd >= 0)
			close(s->fd);
		if (s->trigger_fd >= 0)
			close(s->trigger_fd);
		*s = (struct pressure_system){ .fd = -1, .trigger_fd = -1 };
	}
	loop_remove(a->pressure.timer);
	a->pressure.timer = NULL;
	loop_remove(a->pressure.look);
	a->pressure.look = NULL;
	triggers_done(a);
}

int pressure_system(const struct agent *a, enum resource resource, struct psi *ret_psi)
{
	const struct pressure_system *s = &a->pressure.system[resource];

	return s->fd < 0 ? s->error : psi_read(s->fd, ret_psi);
}

const char *pressure_sleep(const struct agent *a, const char **ret_reason)
{
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		const struct pressure_system *s = &a->pressure.system[i];

		if (s->needed && s->trigger_fd < 0) {
			*ret_reason = "the kernel grants no unprivileged trigger on /proc/pressure "
				      "(Linux 6.4 does)";
			return "timer";
		}
	}
	*ret_reason = "an unprivileged trigger on /proc/pressure wakes the scan";
	return "trigger";
}

/* True when every needed resource can wake us. */
static bool can_sleep(const struct agent *a)
{
	const char *reason;

	return !strcmp(pressure_sleep(a, &reason), "trigger");
}

/* What the scan has to do for this watch; the interval that it may have then. */
static uint64_t need(struct pressure *p, const struct watch *w, uint64_t every_ns)
{
	for (const struct threshold *t = w->thresholds; t; t = t->next) {
		uint64_t tenth = MAX(t->window_ms * NSEC_PER_MSEC / 10, SCAN_MIN_NS);

		if (t->way == THRESHOLD_TRIGGER || w->pressure[t->resource].fd < 0)
			continue;
		p->system[t->resource].needed = true;
		every_ns = every_ns ? MIN(every_ns, tenth) : tenth;
	}
	return every_ns;
}

static void set_pace(struct pressure *p, uint64_t every_ns)
{
	/* A trigger that nobody needs must not wake us. */
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		if (p->system[i].source)
			loop_change(p->system[i].source, p->system[i].needed ? EPOLLPRI : 0);
	if (every_ns == p->every_ns)
		return;
	p->every_ns = every_ns;
	p->asleep = !every_ns;
	loop_timer_set(p->timer, every_ns ? 1 : 0, every_ns);
}

void pressure_refresh(struct agent *a)
{
	uint64_t every_ns = 0;
	struct watch *w;
	uint64_t id;

	for (int i = 0; i < RESOURCE_COUNT_; i++)
		a->pressure.system[i].needed = false;
	idmap_for_each (&a->watches.by_cgroup, i, id, w)
		every_ns = need(&a->pressure, w, every_ns);
	set_pace(&a->pressure, every_ns);
}

void pressure_refresh_new(const struct watch *w)
{
	struct pressure *p = &w->agent->pressure;

	set_pace(p, need(p, w, p->every_ns));
}

static void scan_watch(struct watch *w, uint64_t now_ns)
{
	const struct psi_point *fresh[RESOURCE_COUNT_] = {};

	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct watch_pressure *p = &w->pressure[i];
		struct psi psi;

		if (!p->by_scan || p->fd < 0 || psi_read(p->fd, &psi) < 0)
			continue;
		pressure_scanned(p, now_ns, &psi);
		fresh[i] = psi_history_newest(&p->history);
	}
	/* Also those that the kernel watches, since their file was read; it may tell a moment
	 * later.
	 */
	for (struct threshold *t = w->thresholds; t; t = t->next) {
		const struct psi_point *now = fresh[t->resource], *from;

		from = now ? pressure_compare(t, &w->pressure[t->resource].history, now) : NULL;
		if (from)
			pressure_crossed(t, from, now, PRESSURE_BY_SCAN);
	}
}

/* Which needed resources have moved in the system; true when one moved within `within_ns`. */
static bool system_moves(struct agent *a, uint64_t now_ns, uint64_t within_ns)
{
	bool moves = false;

	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct pressure_system *s = &a->pressure.system[i];
		struct psi psi = {};

		if (!s->needed || pressure_system(a, (enum resource)i, &psi) < 0)
			continue;
		if (psi.some.total_us != s->total_us) {
			s->total_us = psi.some.total_us;
			s->moved_ns = now_ns;
		}
		moves = moves || now_ns - s->moved_ns < within_ns;
	}
	return moves;
}

static void scan(void *context, uint32_t events)
{
	struct agent *a = context;
	uint64_t now_ns = clock_mono_ns();
	uint32_t slots = a->pins.abi.slots;

	if (!system_moves(a, now_ns, SLEEP_AFTER_NS)) {
		if (can_sleep(a)) {
			a->pressure.asleep = true;
			loop_timer_set(a->pressure.timer, 0, 0);
		}
		return;
	}
	/* By slot: a session that starts or ends must not disturb the walk. */
	for (uint32_t i = 0; i < slots; i++)
		if (a->watches.by_slot[i])
			scan_watch(a->watches.by_slot[i], now_ns);
}
