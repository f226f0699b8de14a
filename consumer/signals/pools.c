/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `pools`: what the time of all threads of the session went to: running, waiting for a
 * CPU, and waiting by kind, exact for each thread, summed by process and name. A program that the
 * broker attaches for the session keeps the accounts (bpf/account.bpf.c).
 */
#include <stdlib.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/thread_accounts.h"
#include "consumer/signals/thread_pools.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct pools {
	struct signal signal;
	bool held;		       /* the program is attached for this session */
	bool tried;		       /* attach was called */
	bool shared;		       /* the accounts are of others too */
	uint64_t late_ms;	       /* the program was attached so long after the begin */
	struct thread_baseline before; /* owned */
	struct thread_pools grouped;   /* owned */
	struct ledger threads;
};

static const char not_yet[] = "it has not been attached yet";
static const char unreadable[] = "the accounts of threads cannot be read";
static const char no_times[] =
	"this kernel keeps no times of threads: it was built without CONFIG_SCHEDSTATS and "
	"CONFIG_TASK_DELAY_ACCT";
static const char others[] =
	"the kernel side keeps accounts by cgroup, and more of the cgroup was sampled than this "
	"session's processes";

static struct pools *pools_of(struct signal *s)
{
	return (struct pools *)s;
}

/* Returns true for pressure: a stall is waiting, and this says for what. */
static bool is_auto(const struct trigger_reason *reason)
{
	return trigger_reason_is_stall(reason);
}

static struct signal *create_pools(const struct signal_host *host,
				   const struct signal_target *target)
{
	struct pools *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->signal.why = host->pins->abi.sched_info ? not_yet : no_times;
	return &s->signal;
}

static void destroy_pools(struct signal *signal)
{
	struct pools *s = pools_of(signal);

	thread_accounts_forget(&s->before);
	thread_pools_done(&s->grouped);
	free(s);
}

/*
 * Enters all threads after the program is attached: who is born meanwhile is met by the program,
 * who sleeps by the reading.
 */
static void attach_pools(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct pools *s = pools_of(signal);
	bool late = s->tried;

	s->tried = true;
	if (s->held || target->stop_ns || !host->pins->abi.sched_info)
		return;
	if (!host->programs->of[SIGNAL_POOLS].holders)
		thread_accounts_sweep(host->pins, true);
	if (signal_programs_hold(host->programs, SIGNAL_POOLS, &signal->why) < 0)
		return;
	if (thread_accounts_begin(host->pins, target->slot, &s->before) < 0) {
		signal_programs_drop(host->programs, SIGNAL_POOLS);
		signal->why = unreadable;
		return;
	}
	s->held = true;
	signal->why = NULL;
	if (late)
		s->late_ms = (clock_mono_ns() - target->start_ns) / NSEC_PER_MSEC;
}

/* Groups the threads, and closes the ledger: a thread is an attempt. */
static int count_threads(struct pools *s, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct thread_accounts accounts;
	int r = thread_accounts_end(host->pins, target->slot, target->only_tgid, &s->before,
				    &accounts);

	if (r < 0)
		return r;
	r = thread_pools_make(&accounts, &s->grouped);
	if (r == 0) {
		s->grouped.late_ns = s->before.begin_ns - MIN(s->before.begin_ns, target->start_ns);
		s->threads.emitted = accounts.count;
		s->threads.lost[DROP_THREADS_FULL] = accounts.lost;
		s->threads.attempted = accounts.count + accounts.lost;
	}
	thread_accounts_done(&accounts);
	return r;
}

static void end_pools(struct signal *signal, const struct signal_host *host,
		      const struct signal_target *target)
{
	struct pools *s = pools_of(signal);

	if (!s->held)
		return;
	s->shared = target->shared && !target->only_tgid;
	if (!s->shared && count_threads(s, host, target) == 0) {
		signal->pools = &s->grouped;
		signal->threads = &s->threads;
	} else if (!s->shared) {
		signal->why = unreadable;
	}
	signal_programs_drop(host->programs, SIGNAL_POOLS);
	s->held = false;
	thread_accounts_forget(&s->before);
	thread_accounts_sweep(host->pins, false);
}

/* Writes the sums over all threads; the lines of the pools have the rest. */
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

	if (!signal->pools) {
		jsonw_null(w, "pools");
		jsonw_string(w, "pools_reason", s->shared ? others : signal->why);
		return;
	}
	jsonw_object(w, "pools");
	write_sums(&signal->pools->all, w);
	if (s->late_ms)
		jsonw_u64(w, "late_ms", s->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind pools_kind = {
	.id = SIGNAL_POOLS,
	.auto_why = "auto: at pressure, and where CPU time fell, what runs on the CPUs, who gives "
		    "them up, and what the threads wait for",
	.is_auto = is_auto,
	.create = create_pools,
	.destroy = destroy_pools,
	.attach = attach_pools,
	.end = end_pools,
	.write = write_pools,
};
