/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/io/fd_closer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/thread.h"

/*
 * A thread that only closes needs a small stack; the default maps 8 MiB of address space for each.
 */
#define STACK_BYTES (64u << 10)

struct fd_closer {
	pthread_t threads[CLOSER_THREADS];
	size_t n_threads;
	pthread_mutex_t lock;
	pthread_cond_t work; /* something is queued, or stopping */
	pthread_cond_t done; /* nothing is left; CLOCK_MONOTONIC */
	int *queue;	     /* ring of `space` */
	size_t space, first, queued;
	size_t closing; /* taken by a thread */
	bool stopping;
};

/* Returns the next descriptor to close, or -1 when the thread must end. */
static int next_fd(struct fd_closer *c)
{
	int fd;

	while (!c->queued && !c->stopping)
		pthread_cond_wait(&c->work, &c->lock);
	if (c->stopping)
		return -1;
	fd = c->queue[c->first];
	c->first = (c->first + 1) % c->space;
	c->queued--;
	c->closing++;
	return fd;
}

static void *run_closer(void *context)
{
	struct fd_closer *c = context;
	int fd;

	pthread_mutex_lock(&c->lock);
	while ((fd = next_fd(c)) >= 0) {
		pthread_mutex_unlock(&c->lock);
		close(fd);
		pthread_mutex_lock(&c->lock);
		c->closing--;
		if (!c->queued && !c->closing)
			pthread_cond_signal(&c->done);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void end_threads(struct fd_closer *c)
{
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < c->n_threads; i++)
		pthread_join(c->threads[i], NULL);
}

static void free_closer(struct fd_closer *c)
{
	pthread_cond_destroy(&c->done);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c->queue);
	free(c);
}

static int start_threads(struct fd_closer *c)
{
	pthread_attr_t attributes;
	int r = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	while (r == 0 && c->n_threads < CLOSER_THREADS) {
		r = thread_start(&c->threads[c->n_threads], &attributes, "closer", run_closer, c);
		c->n_threads += r == 0;
	}
	pthread_attr_destroy(&attributes);
	return r;
}

int fd_closer_new(size_t space, struct fd_closer **ret_closer)
{
	_cleanup_free_ struct fd_closer *c = calloc(1, sizeof(*c));
	_cleanup_free_ int *queue = calloc(MAX(space, (size_t)1), sizeof(*queue));
	pthread_condattr_t attributes;
	int r;

	if (!c || !queue)
		return -ENOMEM;
	c->queue = TAKE_PTR(queue);
	c->space = MAX(space, (size_t)1);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&c->done, &attributes);
	pthread_condattr_destroy(&attributes);
	r = start_threads(c);
	if (r < 0) {
		end_threads(c);
		free_closer(TAKE_PTR(c));
		return r;
	}
	*ret_closer = TAKE_PTR(c);
	return 0;
}

void fd_closer_put(struct fd_closer *c, int fd)
{
	bool room = false;

	if (c) {
		pthread_mutex_lock(&c->lock);
		room = c->queued < c->space;
		if (room) {
			c->queue[(c->first + c->queued++) % c->space] = fd;
			pthread_cond_signal(&c->work);
		}
		pthread_mutex_unlock(&c->lock);
	}
	if (!room)
		close(fd);
}

size_t fd_closer_queued(struct fd_closer *c)
{
	size_t queued;

	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	queued = c->queued + c->closing;
	pthread_mutex_unlock(&c->lock);
	return queued;
}

size_t fd_closer_stop(struct fd_closer *c, uint32_t timeout_ms)
{
	struct timespec until;
	size_t left;

	if (!c)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	until.tv_sec += timeout_ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&c->lock);
	while (c->queued || c->closing)
		if (pthread_cond_timedwait(&c->done, &c->lock, &until) == ETIMEDOUT)
			break;
	left = c->queued;
	c->stopping = true; /* with the lock held: no thread takes one of those counted */
	pthread_mutex_unlock(&c->lock);
	end_threads(c);
	free_closer(c);
	return left;
}
