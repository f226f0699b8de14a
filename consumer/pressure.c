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

/* Without privilege a window must be a multiple of 2 s (kernel/sched/psi.c, psi_trigger_create). */
#define TRIGGER_WINDOW_NS (2 * NSEC_PER_SEC)
/* The NUL is part of what is written: psi_write() overwrites the last byte with one. */
#define TRIGGER_THRESHOLD_US 100
static const char trigger_text[] = "some 100 2000000";

/* After this long without movement the scan sleeps. */
#define SLEEP_AFTER_NS (4 * NSEC_PER_SEC)

static void scan(void *context, uint32_t events);

/*
 * The newest point of each history is from before the sleep. What the trigger let pass unseen since
 * then (less than its threshold in each window) must not add up to a stall: it is taken off, and
 * the rest counts as having happened in the trigger's own window.
 */
static void age_histories(struct agent *a, uint64_t slept_ns)
{
	uint64_t slack_us = TRIGGER_THRESHOLD_US * (slept_ns / TRIGGER_WINDOW_NS + 1);
	uint64_t then_ns = clock_mono_ns() - TRIGGER_WINDOW_NS;
	struct watch *w;
	uint64_t id;

	idmap_for_each (&a->watches.by_cgroup, i, id, w)
		for (int r = 0; r < RESOURCE_COUNT_; r++) {
			const struct psi_point *newest =
				psi_history_newest(&w->pressure[r].history);
			struct psi psi;

			if (w->pressure[r].fd < 0 || !newest || newest->time_ns >= then_ns)
				continue;
			psi = newest->psi;
			psi.some.total_us += slack_us;
			psi.full.total_us += slack_us;
			psi_history_clear(&w->pressure[r].history);
			psi_history_add(&w->pressure[r].history, then_ns, &psi);
		}
}

static void wake(struct agent *a)
{
	if (!a->pressure.asleep || !a->pressure.every_ns)
		return;
	a->pressure.asleep = false;
	age_histories(a, clock_mono_ns() - a->pressure.slept_ns);
	loop_timer_set(a->pressure.timer, 1, a->pressure.every_ns);
}

static void triggered(void *context, uint32_t events)
{
	wake(context);
}

static void open_system(struct agent *a, enum resource resource)
{
	struct pressure_system *s = &a->pressure.system[resource];
	char path[64];
	struct psi psi;

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
	if (write(s->trigger_fd, trigger_text, sizeof(trigger_text)) < 0 ||
	    loop_add(a->loop, s->trigger_fd, 0, triggered, a, &s->source) < 0) {
		close(s->trigger_fd);
		s->trigger_fd = -1;
	}
}

int pressure_open(struct agent *a)
{
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		a->pressure.system[i].fd = a->pressure.system[i].trigger_fd = -1;
		open_system(a, (enum resource)i);
	}
	a->pressure.asleep = true;
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
}

int pressure_system(const struct agent *a, enum resource resource, struct psi *ret_psi)
{
	const struct pressure_system *s = &a->pressure.system[resource];

	return s->fd < 0 ? s->error : psi_read(s->fd, ret_psi);
}

uint64_t pressure_every_ms(const struct agent *a)
{
	return a->pressure.every_ns / NSEC_PER_MSEC;
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

void pressure_refresh(struct agent *a)
{
	struct pressure *p = &a->pressure;
	uint64_t every_ns = 0;
	struct watch *w;
	uint64_t id;

	for (int i = 0; i < RESOURCE_COUNT_; i++)
		p->system[i].needed = false;
	idmap_for_each (&a->watches.by_cgroup, i, id, w)
		for (size_t b = 0; b < w->n_bindings; b++)
			for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++) {
				const struct rule_when *when = &w->bindings[b].rule->when[k];
				uint64_t tenth = when->window_ms * NSEC_PER_MSEC / 10;

				p->system[when->resource].needed = true;
				every_ns = every_ns ? MIN(every_ns, tenth) : tenth;
			}
	if (every_ns)
		every_ns = MAX(every_ns, SCAN_MIN_NS);
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

static void say_pressure(struct watch *w, const struct rule *rule,
			 const struct trigger_reason *reason, const struct session *session)
{
	struct agent *a = w->agent;
	struct line_subject subject = agent_subject(a, rule, w->cgroup_id);
	struct jsonw json;

	subject.session = session ? session->id : 0;
	line_begin(&a->lines, &json, "pressure", &subject);
	jsonw_string(&json, "resource", resource_name(reason->when->resource));
	jsonw_string(&json, "kind", reason->when->full ? "full" : "some");
	jsonw_u64(&json, "stall_ms", reason->stall_ms);
	jsonw_u64(&json, "threshold_ms", reason->when->stall_ms);
	jsonw_u64(&json, "window_ms", reason->when->window_ms);
	jsonw_u64(&json, "measured_ms", reason->measured_ms);
	jsonw_string(&json, "scope", w->root ? "system" : "cgroup");
	psi_write(&reason->before, &json, "before");
	psi_write(&reason->now, &json, "now");
	line_end(&a->lines, &json);
}

/* Compares one threshold with the stall over its window; starts a session when it is crossed. */
static void compare(struct watch *w, struct binding *b, const struct rule_when *when)
{
	struct psi_history *history = &w->pressure[when->resource].history;
	const struct psi_point *from, *now = psi_history_newest(history);
	struct trigger_reason reason = { .kind = TRIGGER_PRESSURE, .when = when };
	struct session *session = NULL;
	struct held held;
	uint64_t stall_us;
	int r;

	stall_us =
		psi_history_stall_us(history, when->window_ms * NSEC_PER_MSEC, when->full, &from);
	if (stall_us < when->stall_ms * MSEC_PER_SEC || (when->full && !now->psi.has_full))
		return;
	reason.stall_ms = stall_us / 1000;
	reason.measured_ms = (now->time_ns - from->time_ns) / NSEC_PER_MSEC;
	reason.before = from->psi;
	reason.now = now->psi;
	/* Pressure that goes on in the session it started is no new trigger. */
	if (w->session && w->session->rule == b->rule)
		return;
	r = session_start(w, b->rule, &reason, 0, 0, &session, &held);
	if (r == -EAGAIN)
		session_say_held(w, b->rule, &reason, &held);
	if (r < 0)
		return;
	say_pressure(w, b->rule, &reason, session);
	session_announce(session);
}

static void read_watch(struct watch *w, uint64_t now_ns)
{
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct watch_pressure *p = &w->pressure[i];
		struct psi psi;

		if (p->fd >= 0 && psi_read(p->fd, &psi) == 0)
			psi_history_add(&p->history, now_ns, &psi);
	}
	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++) {
			const struct rule_when *when = &w->bindings[b].rule->when[k];

			if (w->pressure[when->resource].fd >= 0)
				compare(w, &w->bindings[b], when);
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
			a->pressure.slept_ns = now_ns;
			loop_timer_set(a->pressure.timer, 0, 0);
		}
		return;
	}
	/* By slot: a session that starts or ends must not disturb the walk. */
	for (uint32_t i = 0; i < slots; i++)
		if (a->watches.by_slot[i])
			read_watch(a->watches.by_slot[i], now_ns);
}
