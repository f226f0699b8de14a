/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/report_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "consumer/jit/perf_map_files.h"
#include "consumer/report/session_report.h"
#include "consumer/session/line_bytes.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "shared/tools/memory.h"
#include "shared/tools/thread.h"

/*
 * The report thread frees the kernel's symbols (some MiB) when no session arrives for this long.
 * Reading the symbols is most of the time of a session with known files, and sessions come in
 * groups.
 */
#define KERNEL_TRIM_S 600

struct report_thread {
	const struct event_lines *lines;
	struct symbols *symbols;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* CLOCK_MONOTONIC */
	struct session_result *first, *last;
	size_t queued;	     /* in the list or being written */
	uint64_t writing_ns; /* start_ns of the session that is being written; UINT64_MAX: none */
	bool stopping;
	bool errand;	/* perf maps wait to be opened or closed, or modules to be freed */
	bool hurry;	/* do not wait for space in the output queue */
	bool warm;	/* the kernel's symbols may be in memory */
	size_t running; /* sessions that have not ended */
	bool full;	/* memory of written sessions was not given back */
	struct line_bytes bytes;
};

static struct session_result *pop_session(struct report_thread *r)
{
	struct session_result *s = r->first;

	r->first = s->next;
	if (!r->first)
		r->last = NULL;
	return s;
}

void report_thread_wake(struct report_thread *r)
{
	pthread_mutex_lock(&r->lock);
	r->errand = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static void wake_thread(void *context)
{
	report_thread_wake(context);
}

/* Opens and closes perf maps, and frees modules: between sessions none of their names is in use. */
static void run_errands(struct report_thread *r)
{
	bool idle = !r->first;

	r->errand = false;
	pthread_mutex_unlock(&r->lock);
	perf_map_files_serve(symbols_perf_map_files(r->symbols), idle);
	symbols_sweep(r->symbols);
	pthread_mutex_lock(&r->lock);
}

/* Waits for work until `until_ns` (CLOCK_MONOTONIC; 0: without limit). False at the time limit. */
static bool wait_for_work(struct report_thread *r, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(until_ns % NSEC_PER_SEC) };

	if (until_ns)
		return pthread_cond_timedwait(&r->changed, &r->lock, &until) != ETIMEDOUT;
	pthread_cond_wait(&r->changed, &r->lock);
	return true;
}

/* Returns the memory that the stacks and names of sessions used: no other session needs it now. */
static void give_back(struct report_thread *r)
{
	r->full = false;
	pthread_mutex_unlock(&r->lock);
	memory_trim();
	pthread_mutex_lock(&r->lock);
}

/*
 * Waits for the next session. Serves perf maps in the meantime, and trims once when no session
 * arrives. NULL when the thread has to end.
 */
static struct session_result *next_session(struct report_thread *r)
{
	uint64_t trim_ns = clock_mono_ns() + KERNEL_TRIM_S * NSEC_PER_SEC;

	for (;;) {
		uint64_t due_ns;

		while (r->errand)
			run_errands(r);
		if (r->full && !r->first && !r->running) {
			give_back(r);
			continue;
		}
		if (r->first || r->stopping)
			break;
		due_ns = perf_map_files_due_ns(symbols_perf_map_files(r->symbols));
		if (r->warm && (!due_ns || trim_ns < due_ns))
			due_ns = trim_ns;
		if (wait_for_work(r, due_ns))
			continue;
		r->errand = true;
		if (r->warm && clock_mono_ns() >= trim_ns) {
			symbols_trim_kernel(r->symbols);
			r->warm = false;
		}
	}
	return r->first ? pop_session(r) : NULL;
}

static void *run_reports(void *context)
{
	struct report_thread *r = context;
	struct session_result *s;

	pthread_mutex_lock(&r->lock);
	while ((s = next_session(r))) {
		r->writing_ns = s->start_ns;
		pthread_mutex_unlock(&r->lock);
		symbols_set_since(r->symbols, session_result_first_ns(s));
		s->withheld_bytes =
			LINE_BYTES_SESSION - line_bytes_left(&r->bytes, s->owner, clock_mono_ns());
		session_report_write(s, r->lines, r->symbols, &r->hurry);
		line_bytes_spend(&r->bytes, s->owner, clock_mono_ns(), s->line_bytes);
		session_result_free(s);
		symbols_trim(r->symbols);
		pthread_mutex_lock(&r->lock);
		r->queued--;
		r->writing_ns = UINT64_MAX;
		r->warm = r->full = true;
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int report_thread_new(const struct event_lines *lines, struct symbols *symbols,
		      struct report_thread **ret_reporter)
{
	struct report_thread *r = calloc(1, sizeof(*r));
	pthread_condattr_t attributes;
	int e;

	if (!r)
		return -ENOMEM;
	r->lines = lines;
	r->symbols = symbols;
	r->writing_ns = UINT64_MAX;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	e = thread_start(&r->thread, NULL, "symbolizer", run_reports, r);
	if (e < 0) {
		free(r);
		return e;
	}
	perf_map_files_set_wake(symbols_perf_map_files(symbols), wake_thread, r);
	*ret_reporter = r;
	return 0;
}

void report_thread_put(struct report_thread *r, struct session_result *s)
{
	pthread_mutex_lock(&r->lock);
	s->next = NULL;
	if (r->last)
		r->last->next = s;
	else
		r->first = s;
	r->last = s;
	r->queued++;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

void report_thread_running(struct report_thread *r, size_t count)
{
	bool begun;

	pthread_mutex_lock(&r->lock);
	begun = count > r->running;
	r->running = count;
	if (!count && r->full)
		pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (begun)
		perf_map_files_mark(symbols_perf_map_files(r->symbols));
}

uint64_t report_thread_oldest_ns(struct report_thread *r)
{
	uint64_t oldest_ns;

	pthread_mutex_lock(&r->lock);
	oldest_ns = r->writing_ns;
	for (const struct session_result *s = r->first; s; s = s->next)
		oldest_ns = MIN(oldest_ns, s->start_ns);
	pthread_mutex_unlock(&r->lock);
	return oldest_ns;
}

size_t report_thread_queued(struct report_thread *r)
{
	size_t queued;

	pthread_mutex_lock(&r->lock);
	queued = r->queued;
	pthread_mutex_unlock(&r->lock);
	return queued;
}

void report_thread_stop(struct report_thread *r, uint32_t timeout_ms)
{
	struct timespec until;

	if (!r)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	pthread_mutex_lock(&r->lock);
	while (r->queued && !r->hurry)
		if (pthread_cond_timedwait(&r->changed, &r->lock, &until) == ETIMEDOUT)
			__atomic_store_n(&r->hurry, true, __ATOMIC_RELAXED);
	r->stopping = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	perf_map_files_set_wake(symbols_perf_map_files(r->symbols), NULL, NULL);
	while (r->first)
		session_result_free(pop_session(r));
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
