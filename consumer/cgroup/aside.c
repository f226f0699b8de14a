/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/aside.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define STACK_BYTES (256u << 10) /* a walk has a path and one directory per level */
#define LATE_MAX    16		 /* that are kept; more is let go */

struct seat {
	pthread_t thread;
	struct aside *aside;
	struct aside_work *work; /* NULL: idle */
	bool finished, late;	 /* it has run; nobody waits for it */
};

struct aside {
	pthread_mutex_t lock;
	pthread_cond_t work; /* something is to be run, or stopping */
	pthread_cond_t done; /* CLOCK_MONOTONIC */
	struct seat seats[ASIDE_THREADS];
	size_t started, sitting; /* threads that were started; that have not ended */
	struct aside_work *late; /* back, and not fetched */
	size_t late_count;
	uint64_t credit_ns, asked_ns; /* what may be waited now; when that was last counted */
	bool stopping, left;	      /* left: who ends last frees all */
};

static void free_all(struct aside *a)
{
	pthread_cond_destroy(&a->done);
	pthread_cond_destroy(&a->work);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* The seat's call is back, and nobody waits for it. */
static void keep_late(struct aside *a, struct seat *s)
{
	struct aside_work *w = s->work;

	s->work = NULL;
	if (a->late_count >= LATE_MAX || a->stopping) {
		w->free(w);
		return;
	}
	w->next = a->late;
	a->late = w;
	a->late_count++;
}

static void *serve_seat(void *context)
{
	struct seat *s = context;
	struct aside *a = s->aside;
	bool last;

	pthread_mutex_lock(&a->lock);
	for (;;) {
		while ((!s->work || s->finished) && !a->stopping)
			pthread_cond_wait(&a->work, &a->lock);
		if (a->stopping)
			break;
		pthread_mutex_unlock(&a->lock);
		s->work->run(s->work);
		pthread_mutex_lock(&a->lock);
		if (s->late)
			keep_late(a, s);
		else
			s->finished = true;
		pthread_cond_signal(&a->done);
	}
	last = --a->sitting == 0 && a->left;
	pthread_mutex_unlock(&a->lock);
	if (last)
		free_all(a);
	return NULL;
}

static int start_threads(struct aside *a)
{
	pthread_attr_t attributes;
	int e = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_mutex_lock(&a->lock);
	while (!e && a->started < ASIDE_THREADS) {
		a->seats[a->started].aside = a;
		e = pthread_create(&a->seats[a->started].thread, &attributes, serve_seat,
				   &a->seats[a->started]);
		a->started += !e;
	}
	a->sitting = a->started;
	pthread_mutex_unlock(&a->lock);
	pthread_attr_destroy(&attributes);
	return -e;
}

int aside_new(struct aside **ret_aside)
{
	struct aside *a = calloc(1, sizeof(*a));
	pthread_condattr_t attributes;
	int r;

	if (!a)
		return -ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->work, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&a->done, &attributes);
	pthread_condattr_destroy(&attributes);
	a->credit_ns = ASIDE_WAIT_NS;
	a->asked_ns = clock_mono_ns();
	r = start_threads(a);
	if (r < 0) {
		aside_stop(a);
		return r;
	}
	*ret_aside = a;
	return 0;
}

/* An idle seat for a call of that owner; NULL: there is none, or the owner has one already. */
static struct seat *find_seat(struct aside *a, uint64_t owner)
{
	struct seat *idle = NULL;

	for (size_t i = 0; i < a->started; i++) {
		struct seat *s = &a->seats[i];

		if (!s->work)
			idle = s;
		else if (s->work->owner == owner)
			return NULL;
	}
	return idle;
}

/* What is not waited comes back as time passes, up to ASIDE_WAIT_NS. When to stop waiting now. */
static uint64_t wait_until(struct aside *a, uint64_t now_ns)
{
	a->credit_ns = MIN(a->credit_ns + (now_ns - a->asked_ns), (uint64_t)ASIDE_WAIT_NS);
	return now_ns + MAX(a->credit_ns, (uint64_t)ASIDE_LEAST_NS);
}

/* Whether the call is back by then. */
static bool wait_for(struct aside *a, struct seat *s)
{
	uint64_t now_ns = clock_mono_ns(), until_ns = wait_until(a, now_ns);
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };

	while (!s->finished)
		if (pthread_cond_timedwait(&a->done, &a->lock, &until) == ETIMEDOUT)
			break;
	a->asked_ns = clock_mono_ns();
	a->credit_ns -= MIN(a->asked_ns - now_ns, a->credit_ns);
	return s->finished;
}

int aside_run(struct aside *a, struct aside_work *w)
{
	struct seat *s;
	int r = 0;

	if (!a) {
		w->run(w);
		return 0;
	}
	pthread_mutex_lock(&a->lock);
	s = find_seat(a, w->owner);
	if (!s) {
		pthread_mutex_unlock(&a->lock);
		w->free(w);
		return -EBUSY;
	}
	s->work = w;
	s->finished = s->late = false;
	pthread_cond_broadcast(&a->work);
	if (wait_for(a, s)) {
		s->work = NULL;
	} else {
		s->late = true;
		r = -EBUSY;
	}
	pthread_mutex_unlock(&a->lock);
	return r;
}

struct aside_work *aside_late(struct aside *a)
{
	struct aside_work *w;

	if (!a)
		return NULL;
	pthread_mutex_lock(&a->lock);
	w = a->late;
	if (w) {
		a->late = w->next;
		a->late_count--;
	}
	pthread_mutex_unlock(&a->lock);
	return w;
}

void aside_stop(struct aside *a)
{
	struct aside_work *w;
	pthread_t threads[ASIDE_THREADS];
	bool waits = false;
	size_t n;

	if (!a)
		return;
	while ((w = aside_late(a)))
		w->free(w);
	pthread_mutex_lock(&a->lock);
	a->stopping = true;
	n = a->started;
	for (size_t i = 0; i < n; i++) {
		threads[i] = a->seats[i].thread;
		waits = waits || a->seats[i].work;
	}
	a->left = waits;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
	for (size_t i = 0; i < n; i++)
		if (waits)
			pthread_detach(threads[i]);
		else
			pthread_join(threads[i], NULL);
	if (!waits)
		free_all(a);
}
