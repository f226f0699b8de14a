/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/triggers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "consumer/agent.h"
#include "consumer/closer.h"
#include "consumer/link.h"
#include "shared/broker.h"
#include "shared/cleanup.h"
#include "shared/log.h"
#include "shared/macro.h"

/* The broker serves so many requests in a second, and no more. */
#define RATE_AGAIN_NS NSEC_PER_SEC

/* Longest wait at the end; what is open then is closed by the end of the process. */
#define CLOSE_WAIT_MS 10000

static const char in_turn[] = "its turn to be opened has not come yet";
static const char unreadable[] = "its pressure file cannot be read";
static const char at_limit[] = "the limit of trigger descriptors is reached";

static void on_turn(void *context, uint32_t events);

int triggers_open(struct agent *a)
{
	struct triggers *ts = &a->pressure.triggers;
	struct rlimit limit = {};

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = MIN(limit.rlim_cur, (rlim_t)(2 * TRIGGERS_MAX + TRIGGERS_MARGIN));
	if (limit.rlim_cur > TRIGGERS_MARGIN)
		ts->max = (uint32_t)(limit.rlim_cur - TRIGGERS_MARGIN) / 2;
	ts->left = TRIGGERS_TURN;
	return loop_timer(a->loop, on_turn, a, &ts->timer);
}

static int by_link(void *context, uint64_t cgroup_id, enum resource resource, int *ret_fd,
		   const char **ret_why)
{
	return link_pressure_open(context, cgroup_id, resource, ret_fd, ret_why);
}

int triggers_start(struct agent *a)
{
	a->pressure.triggers.opener = by_link;
	a->pressure.triggers.context = a->link;
	return closer_new(a->pressure.triggers.max, &a->pressure.triggers.closer);
}

void triggers_done(struct agent *a)
{
	struct triggers *ts = &a->pressure.triggers;
	size_t left = closer_stop(ts->closer, CLOSE_WAIT_MS);

	ts->closer = NULL;
	loop_remove(ts->timer);
	ts->timer = NULL;
	if (left)
		log_warning("%zu pressure triggers are left to the end of the process: about 10 ms "
			    "each",
			    left);
}

bool threshold_is(const struct threshold *t, const struct rule_when *when)
{
	return t->resource == when->resource && t->full == when->full &&
	       t->stall_ms == when->stall_ms && t->window_ms == when->window_ms;
}

int64_t triggers_threads(const struct agent *a)
{
	int64_t threads = 0;

	if (!a->pressure.triggers.set || a->pressure.triggers.power == TRIGGER_PLAIN)
		return 0;
	if (a->pressure.triggers.power == TRIGGER_POWER_UNKNOWN)
		return -1;
	for (uint32_t i = 0; i < a->pins.abi.slots; i++) {
		const struct watch *w = a->watches.by_slot[i];
		const struct threshold *t = w ? w->thresholds : NULL;

		while (t && t->way != THRESHOLD_TRIGGER)
			t = t->next;
		threads += t != NULL;
	}
	return threads;
}

/* Takes the trigger away, if there is one. */
static void put_down(struct threshold *t)
{
	struct triggers *ts = &t->watch->agent->pressure.triggers;

	if (t->fd < 0)
		return;
	loop_remove(t->source);
	t->source = NULL;
	closer_put(ts->closer, TAKE_FD(t->fd));
	ts->set--;
	ts->full_said = false;
}

void triggers_fail(struct threshold *t, int error)
{
	put_down(t);
	t->way = THRESHOLD_SCAN;
	t->why = trigger_refusal(error).why;
}

static void on_notice(void *context, uint32_t events)
{
	struct threshold *t = context;

	pressure_notice(t, (events & (EPOLLERR | EPOLLHUP)) != 0);
}

static void next_turn(struct triggers *ts, uint64_t in_ns)
{
	loop_timer_set(ts->timer, in_ns, 0);
}

static void say_full(struct agent *a)
{
	struct triggers *ts = &a->pressure.triggers;

	if (ts->full_said)
		return;
	ts->full_said = true;
	line_error(
		&a->lines, NULL, "triggers_full",
		"raise LimitNOFILE, or make the rules narrower; the scan follows the others", NULL,
		NULL,
		"%u trigger descriptors are open: half of what RLIMIT_NOFILE leaves, at most %d; "
		"further thresholds are followed by scan",
		ts->set, TRIGGERS_MAX);
}

/* Arms what the opener gave, and waits for its events. Takes `fd` over where it succeeds. */
static int put_up(struct threshold *t, int fd)
{
	struct agent *a = t->watch->agent;
	struct triggers *ts = &a->pressure.triggers;
	int r;

	r = trigger_arm(fd, t->full, t->stall_ms, t->window_ms, &ts->power);
	if (r < 0)
		return r;
	r = loop_add(a->loop, fd, EPOLLPRI, on_notice, t, &t->source);
	if (r < 0)
		return r;
	t->fd = fd;
	t->way = THRESHOLD_TRIGGER;
	t->why = NULL;
	ts->set++;
	return 0;
}

/*
 * Opens one. A descriptor that is given back without a trigger on it closes at once, one with a
 * trigger does not: so all go through the closer. 0, or why not; the turn ends when it is for all.
 */
static int try_one(struct threshold *t, const char **ret_why)
{
	struct watch *w = t->watch;
	struct triggers *ts = &w->agent->pressure.triggers;
	int fd = -1, r;

	*ret_why = NULL;
	if (!ts->opener)
		return -ENOTCONN;
	r = ts->opener(ts->context, w->cgroup_id, t->resource, &fd, ret_why);
	if (r < 0)
		return r;
	*ret_why = NULL;
	r = put_up(t, fd);
	if (r < 0)
		closer_put(ts->closer, fd);
	return r;
}

static void open_one(struct threshold *t)
{
	struct triggers *ts = &t->watch->agent->pressure.triggers;
	struct trigger_refusal refusal;
	const char *why;
	int r;

	r = try_one(t, &why);
	if (r == 0)
		return;
	refusal = trigger_refusal(r);
	/* The broker's own sentence where it is the broker's own reason. */
	t->why = why && (r == -EACCES || r == -ENOTCONN) ? why : refusal.why;
	if (r == -EACCES && why && !strcmp(why, broker_refusal_help(REFUSAL_RATE))) {
		ts->left = 0;
		ts->more = true;
		next_turn(ts, RATE_AGAIN_NS);
		return;
	}
	if (!refusal.again)
		t->way = THRESHOLD_SCAN;
	if (refusal.all)
		ts->stopped = t->why;
}

/* Opens what waits in this watch, as far as the turn goes. */
static void open_watch(struct watch *w)
{
	struct agent *a = w->agent;
	struct triggers *ts = &a->pressure.triggers;

	for (struct threshold *t = w->thresholds; t; t = t->next) {
		if (t->way != THRESHOLD_WAITING)
			continue;
		if (w->pressure[t->resource].fd < 0) {
			t->way = THRESHOLD_SCAN;
			t->why = unreadable;
		} else if (ts->stopped) {
			t->why = ts->stopped;
		} else if (ts->set + closer_queued(ts->closer) >= ts->max) {
			t->why = at_limit;
			say_full(a);
		} else if (!ts->left) {
			t->why = in_turn;
			ts->more = true;
		} else {
			/* The first of a turn asks for the next, which gives the openings back. */
			if (ts->left-- == TRIGGERS_TURN)
				next_turn(ts, 1);
			open_one(t);
		}
	}
}

static bool waits(const struct watch *w)
{
	for (const struct threshold *t = w->thresholds; t; t = t->next)
		if (t->way == THRESHOLD_WAITING)
			return true;
	return false;
}

static void open_waiting(struct agent *a)
{
	bool tried = false;

	for (uint32_t i = 0; i < a->pins.abi.slots; i++) {
		struct watch *w = a->watches.by_slot[i];

		if (!w || !waits(w))
			continue;
		open_watch(w);
		pressure_tally(w);
		tried = true;
	}
	if (tried)
		pressure_refresh(a);
}

void triggers_retry(struct agent *a)
{
	a->pressure.triggers.stopped = NULL;
	open_waiting(a);
}

static void on_turn(void *context, uint32_t events)
{
	struct agent *a = context;
	struct triggers *ts = &a->pressure.triggers;

	ts->left = TRIGGERS_TURN;
	if (ts->more && !ts->stopped) {
		ts->more = false;
		open_waiting(a);
	}
}

static struct threshold *find(const struct watch *w, const struct rule_when *when)
{
	struct threshold *t = w->thresholds;

	while (t && !threshold_is(t, when))
		t = t->next;
	return t;
}

static struct threshold *add(struct watch *w, const struct rule_when *when)
{
	struct threshold *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct threshold){
		.next = w->thresholds,
		.watch = w,
		.resource = when->resource,
		.full = when->full,
		.stall_ms = when->stall_ms,
		.window_ms = when->window_ms,
		.way = THRESHOLD_WAITING,
		.why = in_turn,
		.fd = -1,
	};
	w->thresholds = t;
	return t;
}

/* Frees those that are not wanted; true when there were any. */
static bool sweep(struct watch *w)
{
	struct threshold **at = &w->thresholds;
	bool swept = false;

	while (*at) {
		struct threshold *t = *at;

		if (t->wanted) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		put_down(t);
		free(t);
		swept = true;
	}
	return swept;
}

bool triggers_follow(struct watch *w)
{
	bool added = false, swept;

	for (struct threshold *t = w->thresholds; t; t = t->next)
		t->wanted = false;
	for (size_t b = 0; b < w->n_bindings; b++)
		for (uint32_t k = 0; k < w->bindings[b].rule->n_when; k++) {
			const struct rule_when *when = &w->bindings[b].rule->when[k];
			struct threshold *t = find(w, when);

			if (!t) {
				t = add(w, when);
				added = true;
			}
			if (t)
				t->wanted = true;
			else
				log_warning("no memory for a threshold of %s: not followed",
					    w->path);
		}
	swept = sweep(w);
	if (added)
		open_watch(w);
	return added || swept;
}

void triggers_unfollow(struct watch *w)
{
	for (struct threshold *t = w->thresholds; t; t = t->next)
		t->wanted = false;
	sweep(w);
}
