/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/lookup_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "consumer/io/turn.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "shared/tools/thread.h"

#define STACK_BYTES (256u << 10) /* a walk needs a path and one directory per level */
#define LATE_MAX    16		 /* late calls that are kept; the rest are freed */

struct worker {
	pthread_t thread;
	struct lookup_pool *pool;
	struct lookup_call *work; /* NULL: idle */
	pthread_cond_t begin;	  /* it has a call, or the pool stops */
	bool finished, late;	  /* the call has run; no caller waits for it */
};

struct lookup_pool {
	pthread_mutex_t lock;
	pthread_cond_t done;				/* CLOCK_MONOTONIC */
	struct worker workers[LOOKUP_POOL_THREADS + 1]; /* the last: for the agent's own calls */
	size_t started, living;	  /* threads that were started; threads that have not ended */
	struct lookup_call *late; /* calls that finished late and were not fetched */
	size_t late_count;
	uint64_t credit_ns, asked_ns; /* how long a caller may wait now; when this was computed */
	bool stopping, left;	      /* left: the last thread to end frees all */
};

static void free_all(struct lookup_pool *p)
{
	pthread_cond_destroy(&p->done);
	for (size_t i = 0; i < ARRAY_SIZE(p->workers); i++)
		pthread_cond_destroy(&p->workers[i].begin);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* Keeps a call that finished after its caller had stopped waiting. */
static void keep_late(struct lookup_pool *p, struct worker *worker)
{
	struct lookup_call *w = worker->work;

	worker->work = NULL;
	if (p->late_count >= LATE_MAX || p->stopping) {
		w->free(w);
		return;
	}
	w->next = p->late;
	p->late = w;
	p->late_count++;
}

static void *run_worker(void *context)
{
	struct worker *worker = context;
	struct lookup_pool *p = worker->pool;
	bool last;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while ((!worker->work || worker->finished) && !p->stopping)
			pthread_cond_wait(&worker->begin, &p->lock);
		if (p->stopping)
			break;
		pthread_mutex_unlock(&p->lock);
		worker->work->run(worker->work);
		pthread_mutex_lock(&p->lock);
		if (worker->late)
			keep_late(p, worker);
		else
			worker->finished = true;
		pthread_cond_signal(&p->done);
	}
	if (worker->work && worker->late) /* cancelled before it began */
		keep_late(p, worker);
	last = --p->living == 0 && p->left;
	pthread_mutex_unlock(&p->lock);
	if (last)
		free_all(p);
	return NULL;
}

static int start_threads(struct lookup_pool *p)
{
	pthread_attr_t attributes;
	int r = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_mutex_lock(&p->lock);
	while (r == 0 && p->started < ARRAY_SIZE(p->workers)) {
		p->workers[p->started].pool = p;
		r = thread_start(&p->workers[p->started].thread, &attributes,
				 p->started < LOOKUP_POOL_THREADS ? "lookup" : "walker", run_worker,
				 &p->workers[p->started]);
		p->started += r == 0;
	}
	p->living = p->started;
	pthread_mutex_unlock(&p->lock);
	pthread_attr_destroy(&attributes);
	return r;
}

int lookup_pool_new(struct lookup_pool **ret_pool)
{
	struct lookup_pool *p = calloc(1, sizeof(*p));
	pthread_condattr_t attributes;
	int r;

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(p->workers); i++)
		pthread_cond_init(&p->workers[i].begin, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&p->done, &attributes);
	pthread_condattr_destroy(&attributes);
	p->credit_ns = LOOKUP_POOL_WAIT_NS;
	p->asked_ns = clock_mono_ns();
	r = start_threads(p);
	if (r < 0) {
		lookup_pool_stop(p);
		return r;
	}
	*ret_pool = p;
	return 0;
}

/*
 * Finds an idle worker for a call of this owner; NULL: all workers that the owner may use are busy,
 * or one already runs a call of this owner.
 */
static struct worker *find_worker(struct lookup_pool *p, uint64_t owner)
{
	struct worker *idle = NULL;
	size_t n = owner == LOOKUP_POOL_AGENT ? p->started : p->started - 1;

	for (size_t i = 0; i < n; i++) {
		struct worker *worker = &p->workers[i];

		if (!worker->work)
			idle = worker;
		else if (worker->work->owner == owner)
			return NULL;
	}
	return idle;
}

/* Returns the thread that has the call; NULL: it ran without a thread. */
static struct worker *worker_of(struct lookup_pool *p, const struct lookup_call *w)
{
	for (size_t i = 0; i < p->started; i++)
		if (p->workers[i].work == w)
			return &p->workers[i];
	return NULL;
}

int lookup_pool_start(struct lookup_pool *p, struct lookup_call *w)
{
	struct worker *worker;

	if (!p) {
		w->run(w);
		return 0;
	}
	pthread_mutex_lock(&p->lock);
	worker = find_worker(p, w->owner);
	if (worker) {
		worker->work = w;
		worker->finished = worker->late = false;
		pthread_cond_signal(&worker->begin);
	}
	pthread_mutex_unlock(&p->lock);
	if (worker)
		return 0;
	w->free(w);
	return -EBUSY;
}

int lookup_pool_wait(struct lookup_pool *p, struct lookup_call *w, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };
	struct worker *worker;
	int r = 0;

	if (!p)
		return 0;
	pthread_mutex_lock(&p->lock);
	worker = worker_of(p, w);
	while (!worker->finished)
		if (pthread_cond_timedwait(&p->done, &p->lock, &until) == ETIMEDOUT)
			break;
	if (worker->finished)
		worker->work = NULL;
	else
		r = -EAGAIN;
	pthread_mutex_unlock(&p->lock);
	return r;
}

void lookup_pool_abandon(struct lookup_pool *p, struct lookup_call *w)
{
	struct worker *worker;

	if (!p) {
		w->free(w);
		return;
	}
	pthread_mutex_lock(&p->lock);
	worker = worker_of(p, w);
	if (worker->finished)
		keep_late(p, worker);
	else
		worker->late = true;
	pthread_mutex_unlock(&p->lock);
}

/*
 * Returns when to stop waiting: the credit grows as time passes, up to LOOKUP_POOL_WAIT_NS, and
 * none of it extends beyond the time slice.
 */
static uint64_t wait_until(struct lookup_pool *p, uint64_t now_ns)
{
	p->credit_ns = MIN(p->credit_ns + (now_ns - p->asked_ns), (uint64_t)LOOKUP_POOL_WAIT_NS);
	return MIN(now_ns + MAX(p->credit_ns, (uint64_t)TURN_LEAST_NS), turn_until_ns());
}

int lookup_pool_wait_turn(struct lookup_pool *p, struct lookup_call *w)
{
	uint64_t now_ns = clock_mono_ns();
	int r;

	if (!p)
		return 0;
	r = lookup_pool_wait(p, w, wait_until(p, now_ns));
	p->asked_ns = clock_mono_ns();
	p->credit_ns -= MIN(p->asked_ns - now_ns, p->credit_ns);
	return r;
}

int lookup_pool_run(struct lookup_pool *p, struct lookup_call *w)
{
	int r = lookup_pool_start(p, w);

	if (r < 0 || lookup_pool_wait_turn(p, w) == 0)
		return r;
	lookup_pool_abandon(p, w);
	return -EBUSY;
}

struct lookup_call *lookup_pool_late(struct lookup_pool *p)
{
	struct lookup_call *w;

	if (!p)
		return NULL;
	pthread_mutex_lock(&p->lock);
	w = p->late;
	if (w) {
		p->late = w->next;
		p->late_count--;
	}
	pthread_mutex_unlock(&p->lock);
	return w;
}

void lookup_pool_stop(struct lookup_pool *p)
{
	struct lookup_call *w;
	pthread_t threads[ARRAY_SIZE(p->workers)];
	bool waits = false;
	size_t n;

	if (!p)
		return;
	while ((w = lookup_pool_late(p)))
		w->free(w);
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	n = p->started;
	for (size_t i = 0; i < n; i++) {
		threads[i] = p->workers[i].thread;
		waits = waits || p->workers[i].work;
		pthread_cond_signal(&p->workers[i].begin);
	}
	p->left = waits;
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < n; i++)
		if (waits)
			pthread_detach(threads[i]);
		else
			pthread_join(threads[i], NULL);
	if (!waits)
		free_all(p);
}
