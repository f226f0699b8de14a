/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `syscall`: how long the threads of the session waited in which system call. It hooks
 * no system calls: the program of the time accounts counts them (bpf/time/account_calls.h).
 */
#include <stdlib.h>

#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/evidence/time/call_times.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

struct system_calls {
	struct signal signal;
	struct accounts_hold hold;
	struct call_times before; /* owned */
	struct call_times times;  /* owned */
	struct ledger ledger;
	uint64_t full_ns; /* of waits that did not fit into the table */
};

static const char unreadable[] = "the kernel's counts of waits by system call cannot be read";
static const char one_process[] =
	"the kernel side counts waits by cgroup, and the session is of one process";

static struct system_calls *calls_of(struct signal *s)
{
	return (struct system_calls *)s;
}

static struct signal *create_calls(const struct signal_host *host,
				   const struct signal_target *target)
{
	return counter_signal_new(sizeof(struct system_calls),
				  target->only_tgid ? one_process : accounts_hold_reason(host));
}

static void destroy_calls(struct signal *signal)
{
	struct system_calls *s = calls_of(signal);

	call_times_done(&s->before);
	call_times_done(&s->times);
	free(s);
}

/* Adds `number` to the sessions that the kernel side counts for. */
static void count_for(const struct signal_host *host, int number)
{
	host->accounts->calls += (unsigned int)number;
	__atomic_store_n(&host->pins->control->calls, host->accounts->calls, __ATOMIC_SEQ_CST);
}

/* Records the present counts; removes the counts that only ended sessions used. */
static int begin_calls(struct system_calls *s, const struct signal_host *host)
{
	int r = call_times_read(host->pins, &s->before);

	if (r == 0 && !host->accounts->calls && call_times_empty(host->pins, &s->before) == 0)
		call_times_done(&s->before);
	return r;
}

static void attach_calls(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct system_calls *s = calls_of(signal);

	if (target->only_tgid || !accounts_hold_attach(&s->hold, signal, host, target))
		return;
	if (begin_calls(s, host) == 0) {
		count_for(host, 1);
		return;
	}
	accounts_hold_leave(&s->hold, host);
	signal->off_reason = unreadable;
}

/*
 * A wait is an attempt. For threads without an account it is not known whether they waited when
 * they left a CPU.
 */
static void close_ledger(struct system_calls *s, const struct thread_accounts *accounts)
{
	struct ledger *l = &s->ledger;

	for (size_t i = 0; i < s->times.count; i++)
		l->emitted += s->times.items[i].waits + s->times.items[i].open;
	ledger_lose(l, DROP_THREADS_FULL, accounts->losses.unqueued, accounts->losses.no_memory);
	ledger_lose(l, DROP_CALLS_FULL, accounts->losses.calls_full,
		    accounts->losses.calls_no_memory);
	l->attempted = l->emitted + ledger_lost(l);
	s->full_ns = accounts->losses.calls_full_ns;
	s->signal.counted = l;
}

static bool prepare_calls(struct signal *signal, const struct signal_host *host,
			  const struct signal_target *target)
{
	return accounts_hold_prepare(&calls_of(signal)->hold, host, target);
}

static void end_calls(struct signal *signal, const struct signal_host *host,
		      const struct signal_target *target)
{
	struct system_calls *s = calls_of(signal);
	struct thread_accounts *accounts;

	if (!s->hold.held)
		return;
	accounts = accounts_hold_end(&s->hold, signal, host, target);
	if (accounts && call_times_end(host->pins, target->slot, &s->before,
				       accounts_hold_before(&s->hold), accounts, &s->times) == 0) {
		close_ledger(s, accounts);
		signal->evidence = &s->times;
	} else if (accounts) {
		signal->off_reason = unreadable;
	}
	call_times_done(&s->before);
	count_for(host, -1);
	accounts_hold_leave(&s->hold, host);
}

static void write_sums(const struct system_calls *s, struct jsonw *w)
{
	uint64_t waits = 0, open = 0, wait_ns = 0;

	for (size_t i = 0; i < s->times.count; i++) {
		waits += s->times.items[i].waits;
		open += s->times.items[i].open;
		wait_ns += s->times.items[i].wait_ns;
	}
	jsonw_u64(w, "calls", s->times.count);
	jsonw_u64(w, "waits", waits);
	jsonw_u64(w, "open", open);
	jsonw_u64(w, "wait_ms", wait_ns / NSEC_PER_MSEC);
	if (s->full_ns)
		jsonw_u64(w, "unlisted_ms", s->full_ns / NSEC_PER_MSEC);
}

static void write_calls(const struct signal *signal, struct jsonw *w)
{
	const struct system_calls *s = (const struct system_calls *)signal;

	if (!accounts_hold_write_begin(&s->hold, signal, "syscall", w))
		return;
	write_sums(s, w);
	jsonw_u64_nonzero(w, "late_ms", signal->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind syscall_kind = {
	.id = SIGNAL_SYSCALL,
	.counts = "waits in system calls",
	.table = "table of system calls",
	/* For a session that is to explain a stall, which is waiting: it has the system call. */
	.is_auto = trigger_reason_asks_why,
	.create = create_calls,
	.destroy = destroy_calls,
	.attach = attach_calls,
	.prepare = prepare_calls,
	.end = end_calls,
	.write = write_calls,
};
