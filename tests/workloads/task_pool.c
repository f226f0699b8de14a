/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task_pool SECONDS WORKERS CALM_SECONDS SLOW HOW: threads "worker-0", ... that wait in take_task
 * for tasks of a queue, of which one comes each 10 ms. For CALM_SECONDS each is done at once. Then
 * tasks are slow, in call_billing, SLOW of them at a time; HOW is the activity of such a task for
 * 900 ms: sleep it sleeps result it waits in await_result, on a condition variable, for a task that
 * stands in the queue
 */
#include "workload.h"

#include <pthread.h>
#include <string.h>

#define WORKERS_MAX 64u
#define PERIOD_NS   10000000ull
#define SLOW_NS	    900000000ull

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t task_came = PTHREAD_COND_INITIALIZER, result_came = PTHREAD_COND_INITIALIZER;
static uint64_t deadline_ns, calm_ns;
static uint32_t queued, slow, slow_max;
static bool sleeps;

/* Returns whether the task is a slow one. */
NAMED static bool take_task(void)
{
	bool is_slow;

	pthread_mutex_lock(&queue_lock);
	while (!queued)
		pthread_cond_wait(&task_came, &queue_lock);
	queued--;
	is_slow = workload_now_ns() >= calm_ns && slow < slow_max;
	slow += is_slow;
	pthread_mutex_unlock(&queue_lock);
	KEEP_FRAME();
	return is_slow;
}

/*
 * No result is reported: the task that would report one is behind others, as long as a task waits.
 */
NAMED static void await_result(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += SLOW_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&queue_lock);
	while (pthread_cond_timedwait(&result_came, &queue_lock, &until) == 0)
		;
	pthread_mutex_unlock(&queue_lock);
	KEEP_FRAME();
}

NAMED static void call_billing(void)
{
	if (sleeps)
		workload_rest(SLOW_NS);
	else
		await_result();
	pthread_mutex_lock(&queue_lock);
	slow--;
	pthread_mutex_unlock(&queue_lock);
	KEEP_FRAME();
}

NAMED static void *run_tasks(void *name)
{
	pthread_setname_np(pthread_self(), name);
	while (workload_now_ns() < deadline_ns)
		if (take_task())
			call_billing();
	return NULL;
}

NAMED static void bring_tasks(void)
{
	while (workload_now_ns() < deadline_ns) {
		pthread_mutex_lock(&queue_lock);
		queued++;
		pthread_cond_signal(&task_came);
		pthread_mutex_unlock(&queue_lock);
		workload_rest(PERIOD_NS);
	}
}

int main(int argc, char **argv)
{
	static const char usage[] = "task_pool SECONDS WORKERS CALM_SECONDS SLOW sleep|result";
	static char names[WORKERS_MAX][24];
	uint32_t workers;

	deadline_ns = workload_deadline(argc, argv, usage);
	workers = workload_number(argc, argv, 2, 8, 1, WORKERS_MAX);
	calm_ns = workload_now_ns() +
		  workload_number(argc, argv, 3, 5, 0, WORKLOAD_SECONDS_MAX) * 1000000000ull;
	slow_max = workload_number(argc, argv, 4, workers, 0, WORKERS_MAX);
	sleeps = argc <= 5 || !strcmp(argv[5], "sleep");
	for (uint32_t i = 0; i < workers; i++) {
		pthread_t thread;

		snprintf(names[i], sizeof(names[i]), "worker-%u", i);
		if (pthread_create(&thread, NULL, run_tasks, names[i]) != 0)
			return 3;
	}
	bring_tasks();
	return 0;
}
