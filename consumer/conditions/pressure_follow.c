/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/pressure_follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "consumer/conditions/pressure_signs.h"
#include "consumer/conditions/quiet_follow.h"
#include "consumer/conditions/stuck_follow.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

/* Least time between readings of files that triggers follow: their history is short. */
#define APART_NS NSEC_PER_SEC

/* Interval between checks for files that a cgroup lacks. */
#define FILES_EVERY_NS (5 * NSEC_PER_SEC)

/* UPDATES_PER_WINDOW of kernel/sched/psi.c. */
#define LOOKS_PER_WINDOW 10

struct followed *pressure_follow_of(const struct pressure_follow *p, const struct watch *w)
{
	return &p->slots.at[w->slot];
}

static void close_file(struct followed_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	psi_history_done(&f->history);
}

/*
 * Errors of a file that is gone, because its cgroup is gone or because the cgroup has no such file
 * any more.
 */
static bool is_missing(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -EOPNOTSUPP;
}

/* Whether the cgroup exists and lacks the file. False without PSI, where no cgroup has the file. */
static bool is_switched_off(const struct pressure_follow *p, const struct watch *w,
			    enum resource resource)
{
	_cleanup_close_ int fd = -1;

	if (w->root || p->scan.system[resource].fd < 0)
		return false;
	fd = cgroups_open_file(p->log->cgroups, w->path, "cgroup.procs");
	return fd >= 0;
}

static void say_unreadable(struct pressure_follow *p, const struct watch *w, enum resource resource,
			   int error)
{
	struct followed_file *f = &pressure_follow_of(p, w)->file[resource];

	f->retry = error == -EBUSY;
	f->off = is_missing(error) && is_switched_off(p, w, resource);
	if ((is_missing(error) && !f->off) || f->retry || f->logged)
		return;
	f->logged = true;
	event_line_error(
		p->log->lines, NULL, "pressure_unreadable",
		f->off ? "write 1 into the cgroup's cgroup.pressure; it is checked again every 5 s"
		       : "see `trocar check` for how to switch PSI on",
		NULL, NULL, "%s pressure of %s cannot be read: %s", rules_resource_name(resource),
		w->path, f->off ? "it is switched off" : strerror(-error));
}

static void open_file(struct pressure_follow *p, const struct watch *w, enum resource resource)
{
	char file[64];
	int fd;

	snprintf(file, sizeof(file), w->root ? "/proc/pressure/%s" : "%s.pressure",
		 rules_resource_name(resource));
	if (w->root) {
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	} else {
		fd = cgroups_open_file(p->log->cgroups, w->path, file);
	}
	if (fd < 0)
		say_unreadable(p, w, resource, fd);
	else
		pressure_follow_of(p, w)->file[resource].off = false;
	pressure_follow_of(p, w)->file[resource].fd = MAX(fd, -1);
}

/* Opens the files that the bindings need and closes the others. True if it opened or closed one. */
static bool follow_files(struct pressure_follow *p, const struct watch *w)
{
	bool wanted[RESOURCE_COUNT_] = {}, changed = false;

	for (size_t i = 0; i < w->n_bindings; i++)
		for (uint32_t k = 0; k < w->bindings[i].rule->n_when; k++) {
			const struct rule_when *when = &w->bindings[i].rule->when[k];

			if (!when->quiet && !when->stuck)
				wanted[when->resource] = true;
		}
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		struct followed_file *f = &pressure_follow_of(p, w)->file[i];

		if (wanted[i] == (f->fd >= 0))
			continue;
		if (wanted[i])
			open_file(p, w, (enum resource)i);
		else
			close_file(f);
		changed = changed || wanted[i] == (f->fd >= 0);
	}
	return changed;
}

static bool drop_unwanted(struct pressure_follow *p, struct followed *f)
{
	bool dropped = false;
	struct threshold *t;

	while ((t = threshold_take_unwanted(f))) {
		psi_opener_drop(&p->opener, t);
		dropped = true;
	}
	return dropped;
}

/*
 * Aligns the thresholds with the rules: keeps the thresholds that stay, with their triggers, closes
 * thresholds that no rule has any more, and opens new ones as far as this loop iteration allows.
 * True if a threshold was added or removed.
 */
static bool follow_thresholds(struct pressure_follow *p, const struct watch *w)
{
	struct followed *f = pressure_follow_of(p, w);
	bool added = false, dropped;

	for (struct threshold *t = f->thresholds; t; t = t->next)
		t->wanted = false;
	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++) {
			const struct rule_when *when = &w->bindings[b].rule->when[k];
			struct threshold *t = threshold_find(f, when);

			if (when->quiet || when->stuck)
				continue;
			if (!t) {
				t = threshold_add(f, when, psi_opener_in_turn);
				added = true;
			}
			if (t)
				t->wanted = true;
			else
				log_warning("no memory for a threshold of %s: not followed",
					    w->path);
		}
	dropped = drop_unwanted(p, f);
	if (added)
		psi_opener_open(&p->opener, f);
	return added || dropped;
}

static void tally_followed(struct pressure_follow *p, struct followed *f)
{
	uint32_t failed = threshold_tally(f);

	for (int i = 0; i < RESOURCE_COUNT_; i++)
		if (failed & 1u << i) {
			say_unreadable(p, f->watch, (enum resource)i, -ENOMEM);
			close_file(&f->file[i]);
		}
}

void pressure_follow_changed(struct pressure_follow *p, struct watch *w)
{
	struct followed *f = pressure_follow_of(p, w);
	bool fresh = !f->thresholds, changed;

	f->watch = w;
	quiet_follow_changed(w, &f->quiet);
	stuck_follow_changed(w, &f->stuck);
	changed = follow_files(p, w);
	changed = follow_thresholds(p, w) || changed;
	if (!changed)
		return;
	tally_followed(p, f);
	if (fresh)
		pressure_scan_refresh_new(&p->scan, f);
	else
		pressure_scan_refresh(&p->scan);
}

void pressure_follow_again(struct pressure_follow *p, struct watch *w)
{
	struct followed *f = pressure_follow_of(p, w);
	bool again = false;

	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		again = again || f->file[i].retry;
		f->file[i].retry = false;
	}
	if (again)
		pressure_follow_changed(p, w);
}

void pressure_follow_stopped(struct pressure_follow *p, const struct watch *w)
{
	struct followed *f = pressure_follow_of(p, w);

	for (struct threshold *t = f->thresholds; t; t = t->next)
		t->wanted = false;
	drop_unwanted(p, f);
	for (int i = 0; i < RESOURCE_COUNT_; i++) {
		close_file(&f->file[i]);
		f->file[i] = (struct followed_file){ .fd = -1 };
	}
	quiet_follow_free(f->quiet);
	f->quiet = NULL;
	stuck_follow_free(f->stuck);
	f->stuck = NULL;
	f->watch = NULL;
	pressure_scan_refresh(&p->scan);
}

/* Adds the point to the history if the newest is APART_NS old: the history is short. */
static void keep_point(struct psi_history *h, const struct psi_point *now)
{
	const struct psi_point *newest = psi_history_newest(h);

	if (!newest || now->time_ns - newest->time_ns >= APART_NS)
		psi_history_add(h, now->time_ns, &now->psi);
}

/*
 * Reads the file for one window as often as the kernel would, because the notice came before the
 * threshold was crossed. The reason: a stall that continues after a notice leaves a pending event
 * in the kernel. The kernel delivers it when the window is over or, if the stall has ended by then,
 * with the first stall of the next window; then it is silent for a window (pending_event in
 * update_triggers() of kernel/sched/psi.c).
 */
static void look_on(struct pressure_follow *p, struct threshold *t, uint64_t now_ns)
{
	uint64_t window_ns = t->window_ms * NSEC_PER_MSEC, every_ns = window_ns / LOOKS_PER_WINDOW;

	t->look_ns = now_ns + window_ns;
	if (p->look_every_ns && p->look_every_ns <= every_ns)
		return;
	p->look_every_ns = every_ns;
	loop_timer_set(p->look, every_ns, every_ns);
}

/* Reads the thresholds of this watch with an early notice; true while one must be read again. */
static bool look_at_watch(struct pressure_follow *p, struct followed *f, uint64_t now_ns)
{
	bool more = false;

	for (struct threshold *t = f->thresholds; t; t = t->next) {
		struct followed_file *file = &f->file[t->resource];
		struct psi_point now = { .time_ns = now_ns };
		const struct psi_point *from;

		if (t->look_ns <= now_ns || psi_read(file->fd, &now.psi) < 0) {
			t->look_ns = 0;
			continue;
		}
		from = crossing_compare(t, &file->history, &now);
		if (from)
			crossing_act(&p->crossings, t, from, &now, CROSSING_BY_READING);
		more = more || t->look_ns;
	}
	return more;
}

/* Timer: reads again the thresholds for which the kernel's notice came early. */
static void on_look(void *context, uint32_t events)
{
	struct pressure_follow *p = context;
	uint64_t now_ns = clock_mono_ns();
	bool more = false;

	/* By slot: a session that starts must not disturb the iteration. */
	for (uint32_t i = 0; i < p->slots.count; i++)
		more = look_at_watch(p, &p->slots.at[i], now_ns) || more;
	if (more)
		return;
	p->look_every_ns = 0;
	loop_timer_set(p->look, 0, 0);
}

static void lose_trigger(struct pressure_follow *p, struct threshold *t)
{
	p->gone++;
	psi_opener_fail(&p->opener, t, -ENODEV);
	tally_followed(p, t->of);
	pressure_scan_refresh(&p->scan);
}

void pressure_follow_notice(struct pressure_follow *p, struct threshold *t, bool gone)
{
	struct followed_file *f = &t->of->file[t->resource];
	struct psi_point now = { .time_ns = clock_mono_ns() };
	const struct psi_point *from;
	int r;

	r = gone ? -ENODEV : psi_read(f->fd, &now.psi);
	if (r == -ENODEV) {
		lose_trigger(p, t);
		return;
	}
	p->notices++;
	from = r == 0 ? crossing_compare(t, &f->history, &now) : NULL;
	if (crossing_is_repeat(t, now.time_ns))
		p->repeats++;
	else if (from)
		crossing_act(&p->crossings, t, from, &now, CROSSING_BY_TRIGGER);
	else
		p->false_events++;
	if (t->crossed.time_ns != now.time_ns)
		look_on(p, t, now.time_ns);
	if (r == 0)
		keep_point(&f->history, &now);
}

static void on_notice(void *context, uint32_t events)
{
	struct threshold *t = context;

	pressure_follow_notice(t->of->pressure, t, (events & (EPOLLERR | EPOLLHUP)) != 0);
}

static void open_waiting(struct pressure_follow *p)
{
	bool tried = false;

	for (uint32_t i = 0; i < p->slots.count; i++) {
		struct followed *f = &p->slots.at[i];

		if (!threshold_waits(f))
			continue;
		psi_opener_open(&p->opener, f);
		tally_followed(p, f);
		tried = true;
	}
	if (tried)
		pressure_scan_refresh(&p->scan);
}

static void on_turn(void *context, uint32_t events)
{
	struct pressure_follow *p = context;

	if (psi_opener_turn(&p->opener))
		open_waiting(p);
}

void pressure_follow_retry(struct pressure_follow *p)
{
	psi_opener_retry(&p->opener);
	open_waiting(p);
}

static void read_resource(struct pressure_follow *p, struct followed *f, enum resource resource)
{
	struct followed_file *file = &f->file[resource];
	const struct psi_point *newest = psi_history_newest(&file->history);
	struct psi_point last, now = { .time_ns = clock_mono_ns() };

	if (newest && now.time_ns - newest->time_ns < APART_NS)
		return;
	if (psi_read(file->fd, &now.psi) < 0) {
		file->failed = true;
		return;
	}
	last = newest ? *newest : now;
	psi_history_add(&file->history, now.time_ns, &now.psi);
	for (struct threshold *t = f->thresholds; t; t = t->next)
		if (t->resource == resource && crossing_is_certain(t, &last, &now))
			crossing_act(&p->crossings, t, &last, &now, CROSSING_BY_READING);
}

/* The file went away while its descriptor was open. */
static void lose_file(struct pressure_follow *p, struct followed *f, enum resource resource)
{
	struct followed_file *file = &f->file[resource];

	file->failed = false;
	if (file->fd < 0)
		return;
	close_file(file);
	say_unreadable(p, f->watch, resource, -ENODEV);
	pressure_scan_refresh(&p->scan);
}

/* Follows a resource again after its file returned, as if the rules had just requested it. */
static void find_again(struct pressure_follow *p, struct followed *f, enum resource resource)
{
	open_file(p, f->watch, resource);
	if (f->file[resource].fd < 0)
		return;
	f->file[resource].logged = false;
	for (struct threshold *t = f->thresholds; t; t = t->next)
		t->wanted = t->resource != resource;
	drop_unwanted(p, f);
	pressure_follow_changed(p, f->watch);
}

/* Checks for pressure files that were switched off or on again: no event reports this. */
static void look_for_files(struct pressure_follow *p, uint64_t now_ns)
{
	bool due = now_ns - p->looked_ns >= FILES_EVERY_NS;

	for (uint32_t i = 0; i < p->slots.count; i++)
		for (int k = 0; p->slots.at[i].watch && k < RESOURCE_COUNT_; k++) {
			struct followed *f = &p->slots.at[i];

			if (f->file[k].failed)
				lose_file(p, f, (enum resource)k);
			else if (f->file[k].off && due)
				find_again(p, f, (enum resource)k);
		}
	if (due)
		p->looked_ns = now_ns;
}

void pressure_follow_drained(struct pressure_follow *p, uint64_t now_ns)
{
	pressure_signs_check(p);
	if (now_ns - p->read_ns < APART_NS)
		return;
	p->read_ns = now_ns;
	look_for_files(p, now_ns);
	pressure_follow_retry(p);
	if (!p->opener.set)
		return;
	/* By slot: a session that starts must not disturb the iteration. */
	for (uint32_t i = 0; i < p->slots.count; i++)
		for (int k = 0; k < RESOURCE_COUNT_; k++)
			if (p->slots.at[i].file[k].by_trigger && p->slots.at[i].file[k].fd >= 0)
				read_resource(p, &p->slots.at[i], (enum resource)k);
}

int pressure_follow_open(struct pressure_follow *p, struct loop *loop, uint32_t slots)
{
	int r;

	p->slots.at = calloc(slots, sizeof(*p->slots.at));
	if (!p->slots.at)
		return -ENOMEM;
	p->slots.count = slots;
	for (uint32_t i = 0; i < slots; i++) {
		p->slots.at[i].pressure = p;
		for (int k = 0; k < RESOURCE_COUNT_; k++)
			p->slots.at[i].file[k].fd = -1;
	}
	p->scan.slots = &p->slots;
	p->scan.crossings = &p->crossings;
	r = psi_opener_init(&p->opener, loop, on_turn, p);
	if (r < 0)
		return r;
	p->opener.notice = on_notice;
	r = loop_timer(loop, on_look, p, &p->look);
	if (r < 0)
		return r;
	return pressure_scan_open(&p->scan, loop);
}

void pressure_follow_init(struct pressure_follow *p, const struct event_log *log,
			  struct triggers *triggers)
{
	p->log = log;
	p->opener.lines = log->lines;
	p->crossings.triggers = triggers;
}

void pressure_follow_done(struct pressure_follow *p)
{
	pressure_scan_done(&p->scan);
	loop_remove(p->look);
	p->look = NULL;
	psi_opener_done(&p->opener);
	free(p->slots.at);
	p->slots = (struct followed_slots){};
}
