/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/psi_opener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "consumer/broker/broker_ask.h"
#include "consumer/io/fd_closer.h"
#include "consumer/watch/watch.h"
#include "shared/broker/broker.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

/*
 * The broker refuses with REFUSAL_RATE beyond its requests per second: try again after this time.
 */
#define RATE_AGAIN_NS NSEC_PER_SEC

/* Longest wait at exit; the kernel closes the remaining descriptors when the process ends. */
#define CLOSE_WAIT_MS 10000

const char psi_opener_in_turn[] = "it waits to be opened";
static const char unreadable[] = "its pressure file cannot be read";
static const char at_limit[] = "the limit of trigger descriptors is reached";

int psi_opener_init(struct psi_opener *o, struct loop *loop, loop_call turn, void *context)
{
	struct rlimit limit = {};

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = MIN(limit.rlim_cur, (rlim_t)(2 * PSI_OPENER_MAX + PSI_OPENER_MARGIN));
	if (limit.rlim_cur > PSI_OPENER_MARGIN)
		o->max = (uint32_t)(limit.rlim_cur - PSI_OPENER_MARGIN) / 2;
	o->left = PSI_OPENER_TURN;
	o->loop = loop;
	return loop_timer(loop, turn, context, &o->timer);
}

static int ask_broker(void *context, uint64_t cgroup_id, enum resource resource, int *ret_fd,
		      const char **ret_why)
{
	return broker_ask_pressure(context, cgroup_id, resource, ret_fd, ret_why);
}

int psi_opener_start(struct psi_opener *o, struct broker_client *link)
{
	o->open = ask_broker;
	o->context = link;
	return fd_closer_new(o->max, &o->closer);
}

void psi_opener_done(struct psi_opener *o)
{
	size_t left = fd_closer_stop(o->closer, CLOSE_WAIT_MS);

	o->closer = NULL;
	loop_remove(o->timer);
	o->timer = NULL;
	if (left)
		log_warning("%zu pressure triggers are left to the end of the process: about 10 ms "
			    "each",
			    left);
}

int64_t psi_opener_threads(const struct psi_opener *o, const struct followed_slots *slots)
{
	int64_t threads = 0;

	if (!o->set || o->power == PSI_TRIGGER_PLAIN)
		return 0;
	if (o->power == PSI_TRIGGER_POWER_UNKNOWN)
		return -1;
	for (uint32_t i = 0; i < slots->count; i++) {
		const struct threshold *t = slots->at[i].thresholds;

		while (t && t->way != THRESHOLD_TRIGGER)
			t = t->next;
		threads += t != NULL;
	}
	return threads;
}

/* Closes the threshold's trigger, if it has one. */
static void close_trigger(struct psi_opener *o, struct threshold *t)
{
	if (t->fd < 0)
		return;
	loop_remove(t->source);
	t->source = NULL;
	fd_closer_put(o->closer, TAKE_FD(t->fd));
	o->set--;
	o->full_said = false;
}

void psi_opener_drop(struct psi_opener *o, struct threshold *t)
{
	close_trigger(o, t);
	free(t);
}

void psi_opener_fail(struct psi_opener *o, struct threshold *t, int error)
{
	close_trigger(o, t);
	t->way = THRESHOLD_SCAN;
	t->reason = psi_trigger_refusal(error).reason;
}

static void set_turn(struct psi_opener *o, uint64_t in_ns)
{
	loop_timer_set(o->timer, in_ns, 0);
}

static void say_full(struct psi_opener *o)
{
	if (o->full_said)
		return;
	o->full_said = true;
	event_line_error(
		o->lines, NULL, "triggers_full",
		"raise LimitNOFILE, or make the rules narrower; the scan follows the others", NULL,
		NULL,
		"%u trigger descriptors are open: half of what RLIMIT_NOFILE leaves, at most %d; "
		"further thresholds are followed by scan",
		o->set, PSI_OPENER_MAX);
}

/*
 * Arms a trigger on the descriptor from the broker and adds it to the loop. Takes ownership of `fd`
 * on success.
 */
static int arm_trigger(struct psi_opener *o, struct threshold *t, int fd)
{
	int r;

	r = psi_trigger_arm(fd, t->full, t->stall_ms, t->window_ms, &o->power);
	if (r < 0)
		return r;
	r = loop_add(o->loop, fd, EPOLLPRI, o->notice, t, &t->source);
	if (r < 0)
		return r;
	t->fd = fd;
	t->way = THRESHOLD_TRIGGER;
	t->reason = NULL;
	o->set++;
	return 0;
}

/*
 * Opens one trigger. Every descriptor goes through the fd_closer, because closing a descriptor with
 * a trigger may take long. Returns 0, or -errno with the reason.
 */
static int try_open(struct psi_opener *o, struct threshold *t, const char **ret_why)
{
	int fd = -1, r;

	*ret_why = NULL;
	if (!o->open)
		return -ENOTCONN;
	r = o->open(o->context, t->of->watch->cgroup_id, t->resource, &fd, ret_why);
	if (r < 0)
		return r;
	*ret_why = NULL;
	r = arm_trigger(o, t, fd);
	if (r < 0)
		fd_closer_put(o->closer, fd);
	return r;
}

static void open_threshold(struct psi_opener *o, struct threshold *t)
{
	struct psi_trigger_refusal refusal;
	const char *why;
	int r;

	r = try_open(o, t, &why);
	if (r == 0)
		return;
	refusal = psi_trigger_refusal(r);
	/* Prefer the broker's own sentence when the broker refused. */
	t->reason = why && (r == -EACCES || r == -ENOTCONN) ? why : refusal.reason;
	if (r == -EACCES && why && !strcmp(why, broker_refusal_help(REFUSAL_RATE))) {
		o->left = 0;
		o->more = true;
		set_turn(o, RATE_AGAIN_NS);
		return;
	}
	if (!refusal.retry)
		t->way = THRESHOLD_SCAN;
	if (refusal.all)
		o->stopped = t->reason;
}

void psi_opener_open(struct psi_opener *o, struct followed *f)
{
	for (struct threshold *t = f->thresholds; t; t = t->next) {
		if (t->way != THRESHOLD_WAITING)
			continue;
		if (f->file[t->resource].fd < 0) {
			t->way = THRESHOLD_SCAN;
			t->reason = unreadable;
		} else if (o->stopped) {
			t->reason = o->stopped;
		} else if (o->set + fd_closer_queued(o->closer) >= o->max) {
			t->reason = at_limit;
			say_full(o);
		} else if (!o->left) {
			t->reason = psi_opener_in_turn;
			o->more = true;
		} else {
			/*
			 * The first opening of an iteration schedules the next iteration, which
			 * allows PSI_OPENER_TURN again.
			 */
			if (o->left-- == PSI_OPENER_TURN)
				set_turn(o, 1);
			open_threshold(o, t);
		}
	}
}

bool psi_opener_turn(struct psi_opener *o)
{
	bool more = o->more && !o->stopped;

	o->left = PSI_OPENER_TURN;
	if (more)
		o->more = false;
	return more;
}

void psi_opener_retry(struct psi_opener *o)
{
	o->stopped = NULL;
}
