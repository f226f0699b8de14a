/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_worker.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "loader/broker/broker_rights.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A worker's message; the descriptors are ancillary data. */
struct said {
	uint32_t refusal;
	int32_t error;
	uint32_t counted;
	struct broker_holdings held;
};

void broker_workers_init(struct broker_workers *ret_workers)
{
	for (size_t i = 0; i < ARRAY_SIZE(ret_workers->items); i++)
		ret_workers->items[i] = (struct broker_worker){ .fd = -1 };
}

static void release_worker(struct broker_worker *worker)
{
	cleanup_close(&worker->fd);
	*worker = (struct broker_worker){ .fd = -1 };
}

void broker_workers_done(struct broker_workers *workers)
{
	for (size_t i = 0; i < ARRAY_SIZE(workers->items); i++)
		release_worker(&workers->items[i]);
}

/*
 * Runs in the worker. SIGALRM ends it, unless a file system blocks it against all signals. It
 * closes unneeded descriptors, because a blocked worker would keep them open.
 */
static _Noreturn void run_worker(struct broker_workers *workers, int fd, broker_work work,
				 void *context)
{
	struct itimerval limit = { .it_value = { .tv_sec = BROKER_WORK_MS / 1000,
						 .tv_usec = BROKER_WORK_MS % 1000 * 1000 } };
	struct broker_result result = { .refusal = REFUSAL_NONE };
	struct said said;

	setitimer(ITIMER_REAL, &limit, NULL);
	broker_workers_done(workers);
	for (int i = 0; i <= STDERR_FILENO; i++)
		close(i);
	work(context, &result);
	said = (struct said){ .refusal = result.refusal,
			      .error = result.error,
			      .counted = result.counted,
			      .held = result.held };
	broker_rights_send(fd, &said, sizeof(said), &result);
	_exit(0);
}

static struct broker_worker *find_place(struct broker_workers *workers, bool counter)
{
	size_t from = counter ? BROKER_WORKERS : 0;
	size_t to = counter ? ARRAY_SIZE(workers->items) : BROKER_WORKERS;

	for (size_t i = from; i < to; i++)
		if (workers->items[i].fd < 0)
			return &workers->items[i];
	return NULL;
}

int broker_worker_start(struct broker_workers *workers, bool counter, broker_work work,
			void *context, struct broker_worker **ret_worker)
{
	struct broker_worker *worker = find_place(workers, counter);
	_cleanup_close_ int ours = -1, its = -1;
	int pair[2];
	pid_t pid;

	if (!worker)
		return -EBUSY;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	its = pair[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(ours);
		run_worker(workers, its, work, context);
	}
	*worker = (struct broker_worker){
		.fd = TAKE_FD(ours),
		.end_ns = clock_mono_ns() + BROKER_WORK_MS * NSEC_PER_MSEC,
	};
	*ret_worker = worker;
	return 0;
}

int broker_worker_take(struct broker_worker *worker, uint64_t now_ns,
		       struct broker_result *ret_result)
{
	struct broker_result result = { .refusal = REFUSAL_NONE };
	struct said said = { 0 };
	int r = broker_rights_receive(worker->fd, &said, sizeof(said), &result);

	if (r == -EAGAIN && now_ns < worker->end_ns)
		return r;
	if (r == -EAGAIN) {
		broker_worker_give_up(worker);
		return -ETIMEDOUT;
	}
	release_worker(worker);
	if (r < 0)
		return -ETIMEDOUT;
	result.refusal = said.refusal;
	result.error = said.error;
	result.counted = said.counted;
	result.held = said.held;
	*ret_result = result;
	return 0;
}

void broker_worker_give_up(struct broker_worker *worker)
{
	worker->given_up = true;
}

/*
 * Frees the worker's place if its end of the socket is closed, which means that it has ended.
 * Discards a late message.
 */
void broker_worker_look(struct broker_worker *worker)
{
	struct pollfd p = { .fd = worker->fd, .events = POLLRDHUP };

	if (worker->given_up && poll(&p, 1, 0) > 0)
		release_worker(worker);
}
