/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `pools`: how all threads of the session spent their time: running, waiting for a CPU,
 * and waiting by kind, exact for each thread, summed by process and name. A program that the broker
 * attaches for the session keeps the accounts (bpf/time/account.bpf.c).
 */
#include <stdlib.h>

#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/evidence/time/thread_pools.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signals.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

struct pools {
	struct signal signal;
	struct accounts_hold hold;
	struct thread_pools grouped; /* owned */
	struct ledger threads;
	uint64_t from_ns, to_ns; /* the accounts cover the time between these two */
	uint64_t read_ns;	 /* the longer of the two readings */
};

static const char no_memory[] = "there was no memory for the accounts of threads";

static struct pools *pools_of(struct signal *s)
{
	return (struct pools *)s;
}

static struct signal *create_pools(const struct signal_host *host,
				   const struct signal_target *target)
{
	return counter_signal_new(sizeof(struct pools), accounts_hold_reason(host));
}

static void destroy_pools(struct signal *signal)
{
	struct pools *s = pools_of(signal);

	thread_pools_done(&s->grouped);
	free(s);
}

static void attach_pools(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	accounts_hold_attach(&pools_of(signal)->hold, signal, host, target);
}

/* Groups the threads, and closes the ledger: a thread is an attempt. */
static bool prepare_pools(struct signal *signal, const struct signal_host *host,
			  const struct signal_target *target)
{
	return accounts_hold_prepare(&pools_of(signal)->hold, host, target);
}

static void end_pools(struct signal *signal, const struct signal_host *host,
		      const struct signal_target *target)
{
	struct pools *s = pools_of(signal);
	struct thread_accounts *accounts = accounts_hold_end(&s->hold, signal, host, target);

	if (accounts && thread_pools_make(accounts, &s->grouped) == 0) {
		const struct thread_baseline *before = accounts_hold_before(&s->hold);

		s->from_ns = before->begin_ns;
		s->to_ns = accounts->end_ns;
		s->read_ns = MAX(before->read_ns, accounts->read_ns);
		s->grouped.late_ns = s->from_ns - MIN(s->from_ns, target->start_ns);
		s->threads.emitted = accounts->count;
		ledger_lose(&s->threads, DROP_THREADS_FULL, accounts->lost, accounts->no_memory);
		s->threads.attempted = accounts->count + accounts->lost;
		signal->evidence = &s->grouped;
		signal->counted = &s->threads;
	} else if (accounts) {
		signal->off_reason = no_memory;
	}
	accounts_hold_leave(&s->hold, host);
}

/* Writes the sums over all threads; the lines of the pools have the details. */
static void write_sums(const struct thread_pool *all, struct jsonw *w)
{
	jsonw_u64(w, "pools", all->pools);
	jsonw_u64(w, "threads", all->threads);
	jsonw_u64(w, "born", all->born);
	jsonw_u64(w, "ended", all->ended);
	jsonw_u64(w, "arrived", all->arrived);
	jsonw_u64(w, "left", all->left);
	jsonw_u64(w, "wall_ms", all->wall_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "running_ms", all->part_ns[ACCOUNT_RUNNING] / NSEC_PER_MSEC);
	jsonw_u64(w, "queue_ms", all->part_ns[ACCOUNT_QUEUE] / NSEC_PER_MSEC);
	jsonw_u64(w, "waited_ms", thread_pools_waited_ns(all) / NSEC_PER_MSEC);
	jsonw_u64(w, "unaccounted_ms", all->unaccounted_ns / NSEC_PER_MSEC);
}

static void write_pools(const struct signal *signal, struct jsonw *w)
{
	const struct pools *s = (const struct pools *)signal;
	const struct thread_pools *grouped = signal->evidence;

	if (!accounts_hold_write_begin(&s->hold, signal, "pools", w))
		return;
	write_sums(&grouped->all, w);
	jsonw_u64(w, "from_mono_ns", s->from_ns);
	jsonw_u64(w, "to_mono_ns", s->to_ns);
	jsonw_u64(w, "read_us", s->read_ns / NSEC_PER_USEC);
	jsonw_u64_nonzero(w, "late_ms", signal->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind pools_kind = {
	.id = SIGNAL_POOLS,
	.counts = "threads",
	.auto_why =
		"auto: at a stall and on request, running threads, context switches and waits of "
		"threads",
	/* For a session that is to explain a stall, which is waiting: it has the kinds of waits. */
	.is_auto = trigger_reason_asks_why,
	.settle = accounts_hold_settle,
	.create = create_pools,
	.destroy = destroy_pools,
	.attach = attach_pools,
	.prepare = prepare_pools,
	.end = end_pools,
	.write = write_pools,
};
