/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/io/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "consumer/io/cpu_wait.h"
#include "consumer/io/turn.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define LOOP_BATCH 32 /* events taken per epoll_wait(2) */

struct loop_source {
	struct loop *loop;
	struct loop_source *next,
		**link; /* list of all live sources, or of this round's dead ones */
	loop_call call;
	void *context;
	int fd;
	uint32_t events; /* 0: not in the epoll set, because epoll would still report EPOLLHUP */
	bool timer;	 /* loop_remove closes fd */
	bool dead;
};

struct loop {
	int epoll_fd;
	bool stop;
	bool dispatching;
	uint64_t turn;				   /* number of the current iteration */
	int cpu_wait_fd;			   /* negative: the kernel lacks these figures */
	struct loop_longest longest, longest_ever; /* `longest`: since loop_longest_turn */
	struct loop_source *sources;
	/* Sources removed inside a call: later events of this round may still point to them. */
	struct loop_source *dead;
};

static void list_add(struct loop_source **head, struct loop_source *source)
{
	source->next = *head;
	source->link = head;
	if (*head)
		(*head)->link = &source->next;
	*head = source;
}

static void list_remove(struct loop_source *source)
{
	*source->link = source->next;
	if (source->next)
		source->next->link = source->link;
}

static void free_list(struct loop_source **head)
{
	while (*head) {
		struct loop_source *source = *head;

		*head = source->next;
		free(source);
	}
}

int loop_new(struct loop **ret_loop)
{
	_cleanup_free_ struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	loop->cpu_wait_fd = cpu_wait_open();
	*ret_loop = TAKE_PTR(loop);
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	while (loop->sources)
		loop_remove(loop->sources);
	free_list(&loop->dead);
	cleanup_close(&loop->cpu_wait_fd);
	close(loop->epoll_fd);
	free(loop);
}

int loop_add(struct loop *loop, int fd, uint32_t events, loop_call call, void *context,
	     struct loop_source **ret_source)
{
	_cleanup_free_ struct loop_source *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	source->loop = loop;
	source->fd = fd;
	source->call = call;
	source->context = context;
	r = loop_change(source, events);
	if (r < 0)
		return r;
	list_add(&loop->sources, source);
	*ret_source = TAKE_PTR(source);
	return 0;
}

int loop_change(struct loop_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };
	int op = EPOLL_CTL_MOD;

	if (events == source->events)
		return 0;
	if (!events)
		op = EPOLL_CTL_DEL;
	else if (!source->events)
		op = EPOLL_CTL_ADD;
	if (epoll_ctl(source->loop->epoll_fd, op, source->fd, &event) < 0)
		return -errno;
	source->events = events;
	return 0;
}

void loop_remove(struct loop_source *source)
{
	if (!source || source->dead)
		return;
	(void)loop_change(source, 0); /* -EBADF when the owner closed fd first */
	if (source->timer)
		close(source->fd);
	list_remove(source);
	source->dead = true;
	if (source->loop->dispatching)
		list_add(&source->loop->dead, source);
	else
		free(source);
}

int loop_timer(struct loop *loop, loop_call call, void *context, struct loop_source **ret_source)
{
	_cleanup_close_ int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct loop_source *source;
	int r;

	if (fd < 0)
		return -errno;
	r = loop_add(loop, fd, EPOLLIN, call, context, &source);
	if (r < 0)
		return r;
	source->timer = true;
	TAKE_FD(fd);
	*ret_source = source;
	return 0;
}

int loop_timer_set(struct loop_source *timer, uint64_t first_ns, uint64_t every_ns)
{
	struct itimerspec spec = {
		.it_value.tv_sec = (time_t)(first_ns / NSEC_PER_SEC),
		.it_value.tv_nsec = (long)(first_ns % NSEC_PER_SEC),
		.it_interval.tv_sec = (time_t)(every_ns / NSEC_PER_SEC),
		.it_interval.tv_nsec = (long)(every_ns % NSEC_PER_SEC),
	};

	if (timerfd_settime(timer->fd, 0, &spec, NULL) < 0)
		return -errno;
	return 0;
}

/* Returns false when the timer was set again after epoll fetched its event: that expiry is void. */
static bool timer_expired(const struct loop_source *source)
{
	uint64_t expirations;

	return read(source->fd, &expirations, sizeof(expirations)) == sizeof(expirations);
}

static void dispatch_events(struct loop *loop, const struct epoll_event *events, int n)
{
	loop->dispatching = true;
	for (int i = 0; i < n; i++) {
		struct loop_source *source = events[i].data.ptr;

		if (source->dead || !source->events)
			continue;
		if (source->timer && !timer_expired(source))
			continue;
		source->call(source->context, events[i].events);
	}
	loop->dispatching = false;
	free_list(&loop->dead);
}

uint64_t loop_turn(const struct loop *loop)
{
	return loop->turn;
}

static struct loop_longest take_longer(const struct loop_longest *a, const struct loop_longest *b)
{
	return (struct loop_longest){ .turn_ns = MAX(a->turn_ns, b->turn_ns),
				      .own_ns = MAX(a->own_ns, b->own_ns),
				      .own_known = b->own_known };
}

struct loop_longest loop_longest_turn(struct loop *loop)
{
	struct loop_longest longest = loop->longest;

	loop->longest = (struct loop_longest){ .own_known = longest.own_known };
	return longest;
}

struct loop_longest loop_longest_ever(const struct loop *loop)
{
	return loop->longest_ever;
}

/* Serves the sources and records how long that took. */
static void take_turn(struct loop *loop, const struct epoll_event *events, int n)
{
	uint64_t began_ns = clock_mono_ns(), waited_ns = cpu_wait_ns(loop->cpu_wait_fd);
	struct loop_longest now;

	loop->turn++;
	turn_start(began_ns);
	dispatch_events(loop, events, n);
	waited_ns = cpu_wait_ns(loop->cpu_wait_fd) - waited_ns;
	now.turn_ns = clock_mono_ns() - began_ns;
	now.own_ns = now.turn_ns - MIN(waited_ns, now.turn_ns);
	now.own_known = loop->cpu_wait_fd >= 0;
	loop->longest = take_longer(&loop->longest, &now);
	loop->longest_ever = take_longer(&loop->longest_ever, &now);
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[LOOP_BATCH];

	loop->stop = false;
	while (!loop->stop) {
		int n = epoll_wait(loop->epoll_fd, events, LOOP_BATCH, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		take_turn(loop, events, n);
	}
	turn_start(0);
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}
