/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_worker.h: what asks a file system that may not answer, in a process of its own. Whoever
 * waits for a dead disk or server is ended by no signal, SIGKILL neither. So the broker itself
 * never waits: a worker that is late is given up, and nobody waits for its end; there are
 * BROKER_WORKERS at a time, those that are given up and not gone yet included.
 */
#ifndef TROCAR_LOADER_BROKER_WORKER_H
#define TROCAR_LOADER_BROKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/broker/broker_dispatch.h"

#define BROKER_WORKERS	4		   /* for files */
#define BROKER_COUNTERS BROKER_CONNECTIONS /* for what a file system cannot hold up */
#define BROKER_WORK_MS	1000		   /* then SIGALRM ends a worker, or it is given up */

struct broker_worker {
	int fd;		 /* our end of its socket, -1: no worker; the other end goes with it */
	uint64_t end_ns; /* CLOCK_MONOTONIC, when it is late */
	bool given_up;
};

struct broker_workers {
	struct broker_worker items[BROKER_WORKERS + BROKER_COUNTERS];
};

/* In the worker: does the work, without anything of the broker's that it does not need. */
typedef void (*broker_work)(void *context, struct broker_result *result);

void broker_workers_init(struct broker_workers *ret_workers);

/* Lets go of all of them; those that live end by themselves. */
void broker_workers_done(struct broker_workers *workers);

/*
 * Starts `work` in a process of its own, a copy of this one. Its descriptors 0 to 2 and those of
 * other workers are closed there. With `counter` it takes one of the BROKER_COUNTERS places. 0, and
 * *ret_worker is the caller's until broker_worker_take says 0 or -ETIMEDOUT, or it is given up.
 * -EBUSY: there are as many as may be; else -errno of socketpair(2) or fork(2).
 */
int broker_worker_start(struct broker_workers *workers, bool counter, broker_work work,
			void *context, struct broker_worker **ret_worker);

/*
 * What it has to say, at `now_ns`: 0, the result, whose descriptors are the caller's, and the
 * worker is over. -EAGAIN: nothing yet. -ETIMEDOUT: nothing in time, or it ended without a word;
 * it is over or given up.
 */
int broker_worker_take(struct broker_worker *worker, uint64_t now_ns,
		       struct broker_result *ret_result);

/* Nobody wants its result any more. */
void broker_worker_give_up(struct broker_worker *worker);

/* Looks whether one that was given up has ended; its place is free then. */
void broker_worker_look(struct broker_worker *worker);

#endif
