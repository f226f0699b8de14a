/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nested_signals.c: two threads; in each a signal handler on a stack of its own that raises another
 * signal, with a handler in which qsort(3) compares; and timers that interrupt all of it.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "../../workloads/workload.h"

#define GOODS	   64
#define ROOM_BYTES (256 * 1024)

static uint64_t deadline;

NAMED void leaf(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++)
		KEEP_FRAME();
}

static int compare(const void *a, const void *b)
{
	leaf(50);
	return *(const int *)a - *(const int *)b;
}

NAMED void sorts(void)
{
	int goods[GOODS];

	for (int i = 0; i < GOODS; i++)
		goods[i] = (i * 37) % GOODS;
	qsort(goods, GOODS, sizeof(*goods), compare);
	KEEP_FRAME();
}

static void on_inner(int number)
{
	sorts();
	KEEP_FRAME();
}

static void on_outer(int number)
{
	leaf(WORKLOAD_TURNS);
	raise(SIGUSR2);
	KEEP_FRAME();
}

static void on_timer(int number)
{
	leaf(10 * WORKLOAD_TURNS);
	KEEP_FRAME();
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags | SA_RESTART };

	sigaction(number, &action, NULL);
}

NAMED void works(void)
{
	while (workload_now_ns() < deadline) {
		leaf(WORKLOAD_TURNS);
		raise(SIGUSR1);
	}
}

static void *run(void *unused)
{
	stack_t room = { .ss_sp = malloc(ROOM_BYTES), .ss_size = ROOM_BYTES };

	if (room.ss_sp)
		sigaltstack(&room, NULL);
	works();
	return unused;
}

int main(int argc, char **argv)
{
	struct itimerval each = { { 0, 5000 }, { 0, 5000 } };
	pthread_t other;

	deadline = workload_deadline(argc, argv, "nested_signals SECONDS");
	handle(SIGUSR1, on_outer, SA_ONSTACK);
	handle(SIGUSR2, on_inner, 0);
	handle(SIGPROF, on_timer, 0);
	setitimer(ITIMER_PROF, &each, NULL);
	if (pthread_create(&other, NULL, run, NULL))
		return 1;
	run(NULL);
	return 0;
}
