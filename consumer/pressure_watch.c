/* SPDX-License-Identifier: BSD-2-Clause */
/* The pressure of one watch: its files, its readings, and what a crossed threshold starts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/agent.h"
#include "shared/clock.h"
#include "shared/macro.h"

/* Ten points a window and some for a slow tick; windows reach 10 s at scans of 100 ms. As many as
 * are needed: most of what is scanned never moves, or only until its trigger is open. */
#define SCAN_POINTS 112
/* A window of 10 s and more than one time between two drains, at points not nearer than APART_NS.
 */
#define TRIGGER_POINTS 16
#define APART_NS       NSEC_PER_SEC

/* UPDATES_PER_WINDOW of kernel/sched/psi.c. */
#define LOOKS_PER_WINDOW 10

static void close_file(struct watch_pressure *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	psi_history_done(&p->history);
}

static void say_unreadable(struct watch *w, enum resource resource, int error)
{
	struct watch_pressure *p = &w->pressure[resource];

	p->again = error == -EBUSY;
	if (error == -ENOENT || p->again || p->said)
		return;
	p->said = true;
	line_error(&w->agent->lines, NULL, "pressure_unreadable",
		   "see `trocar check` for how to switch PSI on", NULL, NULL,
		   "%s pressure of %s cannot be read: %s", resource_name(resource), w->path,
		   strerror(-error));
}

static void open_file(struct watch *w, enum resource resource)
{
	char file[64];
	int fd;

	snprintf(file, sizeof(file), w->root ? "/proc/pressure/%s" : "%s.pressure",
		 resource_name(resource));
	if (w->root) {
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	} else {
		fd = cgroups_open_file(&w->agent->cgroups, w->path, file);
	}
	if (fd < 0)
		say_unreadable(w, resource, fd);
	w->pressure[resource].fd = MAX(fd, -1);
}

/* Opens the files that the bindings need, and closes the others. True when one of them changed. */
static bool follow_files(struct watch *w)
{
	bool wanted[RESOURCE_COUNT_] = {}, changed = false;

	for (size_t i = 0; i < w->n_bindings; i++)
		for (uint32_t k = 0; k < w->bindings[i].rule->n_when; k++)
			wanted[w->bindings[i].rule->when[k].resource] = true;
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct watch_pressure *p = &w->pressure[i];

		if (wanted[i] == (p->fd >= 0))
			continue;
		if (wanted[i])
			open_file(w, (enum resource)i);
		else
			close_file(p);
		changed = changed || wanted[i] == (p->fd >= 0);
	}
	return changed;
}

/* Room for the readings; the first point, from which growth counts. */
static void make_room(struct watch *w, enum resource resource, uint64_t now_ns)
{
	struct watch_pressure *p = &w->pressure[resource];
	struct psi psi;

	if (p->fd < 0 || !(p->by_scan || p->by_trigger))
		return;
	/* Less room than before is no loss when there is no memory for the move. */
	if ((!p->by_scan || !p->history.space) &&
	    psi_history_resize(&p->history, TRIGGER_POINTS) < 0 && !p->history.space) {
		say_unreadable(w, resource, -ENOMEM);
		close_file(p);
	} else if (!p->history.count && psi_read(p->fd, &psi) == 0) {
		psi_history_add(&p->history, now_ns, &psi);
	}
}

void pressure_scanned(struct watch_pressure *p, uint64_t now_ns, const struct psi *psi)
{
	struct psi_history *h = &p->history;

	/* Without memory for more, stalls are measured over a shorter time. */
	if (h->count == h->space && h->space < SCAN_POINTS)
		(void)psi_history_resize(h, MIN(2 * h->space, (size_t)SCAN_POINTS));
	psi_history_add(h, now_ns, psi);
}

void pressure_tally(struct watch *w)
{
	uint64_t now_ns = clock_mono_ns();

	for (int i = 0; i < RESOURCE_COUNT_; i++)
		w->pressure[i].by_trigger = w->pressure[i].by_scan = 0;
	for (const struct threshold *t = w->thresholds; t; t = t->next)
		if (t->way == THRESHOLD_TRIGGER)
			w->pressure[t->resource].by_trigger++;
		else
			w->pressure[t->resource].by_scan++;
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		make_room(w, (enum resource)i, now_ns);
}

void pressure_follow(struct watch *w)
{
	bool fresh = !w->thresholds, changed = follow_files(w);

	changed = triggers_follow(w) || changed;
	if (!changed)
		return;
	pressure_tally(w);
	if (fresh)
		pressure_refresh_new(w);
	else
		pressure_refresh(w->agent);
}

void pressure_again(struct watch *w)
{
	bool again = false;

	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		again = again || w->pressure[i].again;
		w->pressure[i].again = false;
	}
	if (again)
		pressure_follow(w);
}

void pressure_unfollow(struct watch *w)
{
	triggers_unfollow(w);
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		close_file(&w->pressure[i]);
}

const struct psi_point *pressure_compare(const struct threshold *t, const struct psi_history *h,
					 const struct psi_point *now)
{
	uint64_t window_ns = t->window_ms * NSEC_PER_MSEC;
	const struct psi_point *from =
		psi_history_since(h, now->time_ns > window_ns ? now->time_ns - window_ns : 0);

	/* The readings between triggers are far apart: no stall is to count twice. */
	if (from && t->way == THRESHOLD_TRIGGER && from->time_ns < t->crossed.time_ns)
		from = &t->crossed;
	if (!from || (t->full && !now->psi.has_full) ||
	    psi_growth_us(&from->psi, &now->psi, t->full) < t->stall_ms * 1000ULL)
		return NULL;
	return from;
}

static void start(struct watch *w, struct binding *b, const struct trigger_reason *reason,
		  enum pressure_by by)
{
	struct session *session = NULL;
	struct held held;
	int r;

	/* Pressure that goes on in the session it started is no new trigger. */
	if (w->session && w->session->rule == b->rule)
		return;
	r = session_start(w, b->rule, reason, 0, 0, &session, &held);
	if (r == -EAGAIN)
		session_say_held(w, b->rule, reason, &held);
	if (r < 0)
		return;
	pressure_say(w, b->rule, reason, session, by);
	session_announce(session);
}

/*
 * A trigger tells at most once in its window. What a scan or a reading found shortly before is the
 * same crossing.
 */
static bool is_repeat(const struct threshold *t, uint64_t now_ns)
{
	return t->way == THRESHOLD_TRIGGER && t->crossed.time_ns &&
	       now_ns - t->crossed.time_ns < t->window_ms * NSEC_PER_MSEC / 4 * 3;
}

void pressure_crossed(struct threshold *t, const struct psi_point *from,
		      const struct psi_point *now, enum pressure_by by)
{
	struct watch *w = t->watch;
	struct triggers *ts = &w->agent->pressure.triggers;
	struct trigger_reason reason = {
		.kind = TRIGGER_PRESSURE,
		.stall_ms = psi_growth_us(&from->psi, &now->psi, t->full) / 1000,
		.measured_ms = (now->time_ns - from->time_ns) / NSEC_PER_MSEC,
		.before = from->psi,
		.now = now->psi,
	};

	if (is_repeat(t, now->time_ns))
		return;
	t->crossed = *now;
	t->look_ns = 0;
	ts->crossings += by == PRESSURE_BY_TRIGGER;
	ts->missed += t->way == THRESHOLD_TRIGGER && by != PRESSURE_BY_TRIGGER;
	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++) {
			reason.when = &w->bindings[b].rule->when[k];
			if (threshold_is(t, reason.when))
				start(w, &w->bindings[b], &reason, by);
		}
}

/* Keeps the point when the last one is not too near: the history is short. */
static void keep(struct psi_history *h, const struct psi_point *now)
{
	const struct psi_point *newest = psi_history_newest(h);

	if (!newest || now->time_ns - newest->time_ns >= APART_NS)
		psi_history_add(h, now->time_ns, &now->psi);
}

/*
 * A stall that goes on after its notice leaves one behind in the kernel, which it gives when the
 * window is over or, if the stall has ended by then, at the first sign of the next one; and then it
 * is silent for a window (pending_event in update_triggers() of kernel/sched/psi.c). So a notice
 * may come before its threshold is crossed: for that window we read by ourselves, as often as the
 * kernel would.
 */
static void look_on(struct threshold *t, uint64_t now_ns)
{
	struct pressure *p = &t->watch->agent->pressure;
	uint64_t window_ns = t->window_ms * NSEC_PER_MSEC, every_ns = window_ns / LOOKS_PER_WINDOW;

	t->look_ns = now_ns + window_ns;
	if (p->look_every_ns && p->look_every_ns <= every_ns)
		return;
	p->look_every_ns = every_ns;
	loop_timer_set(p->look, every_ns, every_ns);
}

/* True while a threshold of this watch is to be read again. */
static bool look_watch(struct watch *w, uint64_t now_ns)
{
	bool more = false;

	for (struct threshold *t = w->thresholds; t; t = t->next) {
		struct watch_pressure *p = &w->pressure[t->resource];
		struct psi_point now = { .time_ns = now_ns };
		const struct psi_point *from;

		if (t->look_ns <= now_ns || psi_read(p->fd, &now.psi) < 0) {
			t->look_ns = 0;
			continue;
		}
		from = pressure_compare(t, &p->history, &now);
		if (from)
			pressure_crossed(t, from, &now, PRESSURE_BY_READING);
		more = more || t->look_ns;
	}
	return more;
}

void pressure_look(void *context, uint32_t events)
{
	struct agent *a = context;
	uint64_t now_ns = clock_mono_ns();
	bool more = false;

	/* By slot: a session that starts must not disturb the walk. */
	for (uint32_t i = 0; i < a->pins.abi.slots; i++)
		if (a->watches.by_slot[i])
			more = look_watch(a->watches.by_slot[i], now_ns) || more;
	if (more)
		return;
	a->pressure.look_every_ns = 0;
	loop_timer_set(a->pressure.look, 0, 0);
}

static void lost(struct threshold *t)
{
	struct watch *w = t->watch;

	w->agent->pressure.triggers.gone++;
	triggers_fail(t, -ENODEV);
	pressure_tally(w);
	pressure_refresh(w->agent);
}

void pressure_notice(struct threshold *t, bool gone)
{
	struct watch_pressure *p = &t->watch->pressure[t->resource];
	struct triggers *ts = &t->watch->agent->pressure.triggers;
	struct psi_point now = { .time_ns = clock_mono_ns() };
	const struct psi_point *from;
	int r;

	r = gone ? -ENODEV : psi_read(p->fd, &now.psi);
	if (r == -ENODEV) {
		lost(t);
		return;
	}
	ts->notices++;
	from = r == 0 ? pressure_compare(t, &p->history, &now) : NULL;
	if (is_repeat(t, now.time_ns))
		ts->repeats++;
	else if (from)
		pressure_crossed(t, from, &now, PRESSURE_BY_TRIGGER);
	else
		ts->false_events++;
	if (t->crossed.time_ns != now.time_ns)
		look_on(t, now.time_ns);
	if (r == 0)
		keep(&p->history, &now);
}

/*
 * Whether the stall since the last reading must have crossed the threshold: of the windows that
 * cover this time, one had at least the mean. The kernel may not tell of it where the window is 2 s
 * and more: who reads the file just when the averages are due takes its trigger's turn (psi_show()
 * against psi_avgs_work() in kernel/sched/psi.c).
 */
static bool must_have_crossed(const struct threshold *t, const struct psi_point *last,
			      const struct psi_point *now)
{
	uint64_t window_ns = t->window_ms * NSEC_PER_MSEC;
	uint64_t windows = (now->time_ns - last->time_ns + window_ns - 1) / window_ns;

	return t->way == THRESHOLD_TRIGGER && last->time_ns >= t->crossed.time_ns &&
	       !(t->full && !now->psi.has_full) &&
	       psi_growth_us(&last->psi, &now->psi, t->full) >=
		       t->stall_ms * 1000ULL * MAX(windows, (uint64_t)1);
}

static void read_resource(struct watch *w, enum resource resource)
{
	struct watch_pressure *p = &w->pressure[resource];
	const struct psi_point *newest = psi_history_newest(&p->history);
	struct psi_point last, now = { .time_ns = clock_mono_ns() };

	if (newest && now.time_ns - newest->time_ns < APART_NS)
		return;
	if (psi_read(p->fd, &now.psi) < 0)
		return;
	last = newest ? *newest : now;
	psi_history_add(&p->history, now.time_ns, &now.psi);
	for (struct threshold *t = w->thresholds; t; t = t->next)
		if (t->resource == resource && must_have_crossed(t, &last, &now))
			pressure_crossed(t, &last, &now, PRESSURE_BY_READING);
}

void pressure_drained(struct agent *a, uint64_t now_ns)
{
	if (now_ns - a->pressure.read_ns < APART_NS)
		return;
	a->pressure.read_ns = now_ns;
	triggers_retry(a);
	if (!a->pressure.triggers.set)
		return;
	/* By slot: a session that starts must not disturb the walk. */
	for (uint32_t i = 0; i < a->pins.abi.slots; i++) {
		struct watch *w = a->watches.by_slot[i];

		for (int k = 0; w && k < RESOURCE_COUNT_; k++)
			if (w->pressure[k].by_trigger && w->pressure[k].fd >= 0)
				read_resource(w, (enum resource)k);
	}
}
