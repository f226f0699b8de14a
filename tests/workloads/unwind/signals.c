/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.c: work within signal handlers that interrupt work, one on the stack that it finds, the
 * other on an alternate one. Neither interrupts the other.
 */
#include <signal.h>
#include <sys/time.h>

#include "../workload.h"

static inline __attribute__((always_inline)) void spin(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++)
		KEEP_FRAME();
}

NAMED void handler_leaf(void)
{
	spin(200 * WORKLOAD_TURNS);
}

NAMED void on_alarm(int number)
{
	handler_leaf();
	KEEP_FRAME();
}

NAMED void alternate_leaf(void)
{
	spin(200 * WORKLOAD_TURNS);
}

NAMED void on_alternate(int number)
{
	alternate_leaf();
	KEEP_FRAME();
}

NAMED void is_interrupted(void)
{
	spin(100 * WORKLOAD_TURNS);
}

NAMED void calls_interrupted(void)
{
	is_interrupted();
	KEEP_FRAME();
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags | SA_RESTART };

	sigfillset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "signals SECONDS");
	struct itimerval each = { { 0, 5000 }, { 0, 5000 } }, other = { { 0, 7000 }, { 0, 7000 } };
	static char room[64 * 1024];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };

	alarm(0); /* it shares a timer with setitimer: the deadline alone ends this one */
	sigaltstack(&stack, NULL);
	handle(SIGALRM, on_alarm, 0);
	handle(SIGVTALRM, on_alternate, SA_ONSTACK);
	setitimer(ITIMER_REAL, &each, NULL);
	setitimer(ITIMER_VIRTUAL, &other, NULL);
	while (workload_now_ns() < deadline)
		calls_interrupted();
	return 0;
}
