/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `runq`: how long the threads of the session waited for a CPU, each wait from runnable
 * to running, and which cgroup had the CPU in that time. The program of the time accounts counts it
 * (bpf/time/account_queue.h).
 */
#include <stdlib.h>

#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/evidence/time/queue_waits.h"
#include "consumer/evidence/time/session_queue.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/time_histogram.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

struct runq {
	struct signal signal;
	struct accounts_hold hold;
	struct queue_counts before; /* owned */
	struct queue_waits waits;   /* owned */
	struct ledger ledger;
};

static const char unreadable[] =
	"the kernel's counts of the threads that had the CPUs cannot be read";
static const char no_memory[] = "there was no memory for the waits for a CPU";

static struct runq *runq_of(struct signal *s)
{
	return (struct runq *)s;
}

static struct signal *create_runq(const struct signal_host *host,
				  const struct signal_target *target)
{
	return counter_signal_new(sizeof(struct runq), accounts_hold_reason(host));
}

static void destroy_runq(struct signal *signal)
{
	struct runq *s = runq_of(signal);

	queue_blame_forget(&s->before);
	queue_blame_done(&s->waits.blame);
	thread_pools_done(&s->waits.pools);
	free(s);
}

static void attach_runq(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	struct runq *s = runq_of(signal);
	bool first = !host->programs->of[SIGNAL_POOLS].holders;

	if (!accounts_hold_attach(&s->hold, signal, host, target))
		return;
	if (queue_blame_begin(host, first, &s->before) == 0)
		return;
	accounts_hold_leave(&s->hold, host);
	signal->off_reason = unreadable;
}

/* A wait is an attempt. Waits of threads without an account are lost. */
static void close_ledger(struct runq *s, const struct thread_accounts *accounts)
{
	s->ledger.emitted = queue_histogram_count(&s->waits.pools.all.queue);
	ledger_lose(&s->ledger, DROP_THREADS_FULL, accounts->losses.unqueued,
		    accounts->losses.no_memory);
	s->ledger.attempted = s->ledger.emitted + accounts->losses.unqueued;
	s->signal.counted = &s->ledger;
}

static bool prepare_runq(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	return accounts_hold_prepare(&runq_of(signal)->hold, host, target);
}

static void end_runq(struct signal *signal, const struct signal_host *host,
		     const struct signal_target *target)
{
	struct runq *s = runq_of(signal);
	struct thread_accounts *accounts = accounts_hold_end(&s->hold, signal, host, target);

	if (accounts && thread_pools_make(accounts, &s->waits.pools) == 0) {
		s->waits.pools.late_ns = signal->late_ms * NSEC_PER_MSEC;
		queue_waits_find_longest(accounts, &s->waits);
		queue_blame_end(host, target, &s->before, &s->waits.blame);
		close_ledger(s, accounts);
		signal->evidence = &s->waits;
	} else if (accounts) {
		signal->off_reason = no_memory;
	}
	queue_blame_forget(&s->before);
	accounts_hold_leave(&s->hold, host);
}

static void close_runq(struct signal *signal, const struct signal_host *host,
		       const struct signal_target *target)
{
	queue_blame_close(host, target, &runq_of(signal)->waits.blame);
}

static void write_sums(const struct queue_waits *q, struct jsonw *w)
{
	const struct queue_histogram *h = &q->pools.all.queue;

	jsonw_u64(w, "waits", queue_histogram_count(h));
	jsonw_u64(w, "wait_ms", queue_histogram_sum_ns(h) / NSEC_PER_MSEC);
	time_histogram_write_percentile("p50_ns", h->waits, 50, w);
	time_histogram_write_percentile("p90_ns", h->waits, 90, w);
	time_histogram_write_percentile("p99_ns", h->waits, 99, w);
	jsonw_u64(w, "longest_ns", q->n_longest ? q->longest[0].wait_ns : 0);
	jsonw_u64(w, "own_ms", queue_waits_own_ns(q) / NSEC_PER_MSEC);
	jsonw_u64(w, "others_ms", queue_waits_others_ns(q) / NSEC_PER_MSEC);
	jsonw_u64(w, "idle_ms", h->behind_ns[QUEUE_IDLE] / NSEC_PER_MSEC);
	jsonw_u64(w, "moved_ms", h->behind_ns[QUEUE_MOVED] / NSEC_PER_MSEC);
	jsonw_u64(w, "unseen_ms", h->behind_ns[QUEUE_UNSEEN] / NSEC_PER_MSEC);
	if (h->behind_ns[QUEUE_UNLISTED])
		jsonw_u64(w, "unlisted_ms", h->behind_ns[QUEUE_UNLISTED] / NSEC_PER_MSEC);
	if (q->blame.reason)
		jsonw_string(w, "neighbours_reason", q->blame.reason);
}

static void write_runq(const struct signal *signal, struct jsonw *w)
{
	const struct runq *s = (const struct runq *)signal;

	if (!accounts_hold_write_begin(&s->hold, signal, "runq", w))
		return;
	write_sums(signal->evidence, w);
	jsonw_u64_nonzero(w, "late_ms", signal->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind runq_kind = {
	.id = SIGNAL_RUNQ,
	.counts = "waits for a CPU",
	/* For a session that is to explain a stall: it costs nothing on top of the accounts. */
	.is_auto = trigger_reason_asks_why,
	.create = create_runq,
	.destroy = destroy_runq,
	.attach = attach_runq,
	.prepare = prepare_runq,
	.end = end_runq,
	.close = close_runq,
	.write = write_runq,
	.lines = session_queue_put,
};
