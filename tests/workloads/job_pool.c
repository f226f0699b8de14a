/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * job_pool SECONDS: two pools on condition variables. "idle-" threads wait for jobs that never
 * come, in wait_for_jobs. "late-" threads are woken again and again while hold_door has their mutex
 * for HOLD_NS: they stand at it within pthread_cond_wait, in take_turn.
 */
#include "workload.h"

#include <pthread.h>

#define IDLE	6
#define LATE	3
#define HOLD_NS 63000000ull /* with FREE_NS no multiple of the time between two looks */
#define FREE_NS 7000000ull

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER, door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_came = PTHREAD_COND_INITIALIZER, opened = PTHREAD_COND_INITIALIZER;
static uint64_t deadline_ns;

NAMED static void *wait_for_jobs(void *unused)
{
	pthread_setname_np(pthread_self(), "idle-1");
	pthread_mutex_lock(&jobs_lock);
	for (;;)
		pthread_cond_wait(&job_came, &jobs_lock);
	return NULL;
}

NAMED static void *take_turn(void *unused)
{
	pthread_setname_np(pthread_self(), "late-1");
	pthread_mutex_lock(&door);
	for (;;)
		pthread_cond_wait(&opened, &door);
	return NULL;
}

NAMED static void hold_door(void)
{
	pthread_mutex_lock(&door);
	pthread_cond_broadcast(&opened);
	workload_rest(HOLD_NS);
	pthread_mutex_unlock(&door);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	pthread_t thread;

	deadline_ns = workload_deadline(argc, argv, "job_pool SECONDS");
	for (int i = 0; i < IDLE + LATE; i++)
		if (pthread_create(&thread, NULL, i < IDLE ? wait_for_jobs : take_turn, NULL))
			return 1;
	while (workload_now_ns() < deadline_ns) {
		hold_door();
		workload_rest(FREE_NS);
	}
	return 0;
}
