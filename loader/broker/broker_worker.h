/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_worker.h: runs requests that may block in separate processes. No signal, not even SIGKILL,
 * ends a process that waits for a dead disk or server. So the broker never waits for a worker: it
 * gives up a late one. At most BROKER_WORKERS exist at a time, including given-up ones until they
 * end.
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_WORKER_H
#define TROCAR_LOADER_BROKER_BROKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/broker/broker_dispatch.h"

#define BROKER_WORKERS	4		   /* for requests that open files */
#define BROKER_COUNTERS BROKER_CONNECTIONS /* for counts, which no file system blocks */
#define BROKER_WORK_MS	1000 /* then SIGALRM ends a worker, or the broker gives it up */

struct broker_worker {
	int fd; /* our end of its socket, -1: no worker; the other end closes when it ends */
	uint64_t end_ns; /* CLOCK_MONOTONIC; the worker is late after that */
	bool given_up;
};

struct broker_workers {
	struct broker_worker items[BROKER_WORKERS + BROKER_COUNTERS];
};

/* Runs in the worker. Must close unneeded descriptors. */
typedef void (*broker_work)(void *context, struct broker_result *result);

void broker_workers_init(struct broker_workers *ret_workers);

/* Closes our ends of the sockets; workers that still run end by themselves. */
void broker_workers_done(struct broker_workers *workers);

/*
 * Forks a process that runs `work` and ends. It closes descriptors 0 to 2 and those of other
 * workers. With `counter` the process takes one of the BROKER_COUNTERS places. 0: *ret_worker is
 * the caller's until broker_worker_take returns 0 or -ETIMEDOUT, or until the worker is given up.
 * -EBUSY: no place is free; else -errno of socketpair(2) or fork(2).
 */
int broker_worker_start(struct broker_workers *workers, bool counter, broker_work work,
			void *context, struct broker_worker **ret_worker);

/*
 * Takes the worker's result at `now_ns`. 0: the result, with descriptors that the caller owns, and
 * the worker has ended. -EAGAIN: no result yet. -ETIMEDOUT: the worker was late and is given up, or
 * it ended without a result.
 */
int broker_worker_take(struct broker_worker *worker, uint64_t now_ns,
		       struct broker_result *ret_result);

/* Gives the worker up: its result will be discarded. */
void broker_worker_give_up(struct broker_worker *worker);

/* Frees the place of a given-up worker that has ended. */
void broker_worker_look(struct broker_worker *worker);

#endif
