/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_patterns SECONDS FILE: locks that threads wait for in four ways. "herd-" threads want a lock
 * that wakes all waiters at its release, and one of them gets it. "job-" threads wait on a
 * condition variable for work that comes by itself. "step-" threads are woken together, and each of
 * them has work. "turn-" threads stand behind each other for a mutex. FILE gets a line for each:
 * name and address of the word that they wait for (of the job- threads the condition variable,
 * which has the word in it).
 */
#include "workload.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#define HOLD_NS 300000ull
#define WORK_NS                                                                           \
	400000ull /* of the step- threads: more than a thread that was woken in vain runs \
		   */
#define STEP_NS 20000000ull
#define JOBS_NS 2000000ull
#define HERD	8
#define OTHERS	4

uint32_t herd_lock, step_word;
pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t job_ready = PTHREAD_COND_INITIALIZER;
static uint32_t jobs;
static uint64_t deadline_ns;

static void futex(uint32_t *word, int operation, uint32_t value)
{
	syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* CPU time of the thread: how long it runs, with any other users of the CPU. */
static uint64_t run_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static bool is_over(void)
{
	return workload_now_ns() >= deadline_ns;
}

NAMED static void *join_herd(void *unused)
{
	pthread_setname_np(pthread_self(), "herd-1");
	while (!is_over()) {
		while (__atomic_exchange_n(&herd_lock, 1, __ATOMIC_SEQ_CST))
			futex(&herd_lock, FUTEX_WAIT, 1);
		workload_rest(HOLD_NS);
		__atomic_store_n(&herd_lock, 0, __ATOMIC_SEQ_CST);
		futex(&herd_lock, FUTEX_WAKE, INT_MAX);
	}
	return NULL;
}

NAMED static void *take_turns(void *unused)
{
	pthread_setname_np(pthread_self(), "turn-1");
	while (!is_over()) {
		pthread_mutex_lock(&turn_lock);
		workload_rest(HOLD_NS);
		pthread_mutex_unlock(&turn_lock);
	}
	return NULL;
}

NAMED static void *do_jobs(void *unused)
{
	pthread_setname_np(pthread_self(), "job-1");
	pthread_mutex_lock(&job_lock);
	while (!is_over()) {
		while (!jobs)
			pthread_cond_wait(&job_ready, &job_lock);
		jobs--;
	}
	pthread_mutex_unlock(&job_lock);
	return NULL;
}

NAMED static void *give_jobs(void *unused)
{
	pthread_setname_np(pthread_self(), "giver");
	while (!is_over()) {
		workload_rest(JOBS_NS);
		for (int i = 0; i < OTHERS; i++) {
			pthread_mutex_lock(&job_lock);
			jobs++;
			pthread_mutex_unlock(&job_lock);
			pthread_cond_signal(&job_ready);
		}
	}
	return NULL;
}

NAMED static void *do_step(void *unused)
{
	uint32_t seen = 0;

	pthread_setname_np(pthread_self(), "step-1");
	while (!is_over()) {
		uint64_t until_ns;

		while (__atomic_load_n(&step_word, __ATOMIC_SEQ_CST) == seen)
			futex(&step_word, FUTEX_WAIT, seen);
		seen = __atomic_load_n(&step_word, __ATOMIC_SEQ_CST);
		until_ns = run_ns() + WORK_NS;
		while (run_ns() < until_ns)
			KEEP_FRAME();
	}
	return NULL;
}

NAMED static void *give_steps(void *unused)
{
	pthread_setname_np(pthread_self(), "giver");
	while (!is_over()) {
		workload_rest(STEP_NS);
		__atomic_fetch_add(&step_word, 1, __ATOMIC_SEQ_CST);
		futex(&step_word, FUTEX_WAKE, INT_MAX);
	}
	return NULL;
}

static void start(unsigned int n, void *(*run)(void *))
{
	pthread_t thread;

	while (n--)
		pthread_create(&thread, NULL, run, NULL);
}

int main(int argc, char **argv)
{
	static const char usage[] = "lock_patterns SECONDS FILE";
	FILE *file;

	deadline_ns = workload_deadline(argc, argv, usage);
	file = argc > 2 ? fopen(argv[2], "we") : NULL;
	if (!file)
		return 1;
	fprintf(file, "herd %p\nstep %p\nturn %p\njob %p\n", (void *)&herd_lock, (void *)&step_word,
		(void *)&turn_lock, (void *)&job_ready);
	fclose(file);
	start(HERD, join_herd);
	start(OTHERS, take_turns);
	start(OTHERS, do_jobs);
	start(1, give_jobs);
	start(OTHERS, do_step);
	start(1, give_steps);
	workload_rest(deadline_ns - workload_now_ns());
	return 0;
}
