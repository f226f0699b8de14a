/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `switch`: counts how often the watched tasks gave up their CPU (voluntary), and how
 * often the scheduler took it from them (involuntary). If the session has time accounts of its
 * threads, they count the switches too, so that only one program runs at each switch; else the
 * broker attaches a program that only counts.
 */
#include <stdlib.h>

#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct context_switches {
	struct signal signal;
	struct accounts_hold hold; /* if the accounts count */
	bool by_accounts;
	bool counted;		    /* counts are valid, from begin + late_ms to end */
	bool shared;		    /* the counts include other processes */
	uint64_t uncounted;	    /* switches of threads that got no account (table full) */
	struct slot_switches count; /* at begin the first counts, at end the difference */
};

static const char unreadable[] = "the counters cannot be read";
static const char others[] =
	"the kernel side counts by cgroup, and more of the cgroup was sampled than this "
	"session's processes";

static struct context_switches *switches_of(struct signal *s)
{
	return (struct context_switches *)s;
}

static struct signal *create_switches(const struct signal_host *host,
				      const struct signal_target *target)
{
	return counter_signal_new(sizeof(struct context_switches), NULL);
}

static void destroy_switches(struct signal *s)
{
	free(s);
}

/* Sums the counts of the session's slot so far. Returns 0 or -errno. */
static int read_switches(const struct signal_host *host, const struct signal_target *target,
			 struct slot_switches *ret_count)
{
	return pinned_maps_signal(host->pins, PINNED_MAP_switches, target->slot,
				  sizeof(*ret_count) / sizeof(uint64_t), (uint64_t *)ret_count);
}

/* The signals that use time accounts of threads. */
#define WITH_ACCOUNTS \
	(1u << SIGNAL_POOLS | 1u << SIGNAL_RUNQ | 1u << SIGNAL_SYSCALL | 1u << SIGNAL_LOCK)

/* Joins the session's accounts. Returns whether they count. */
static bool join_accounts(struct context_switches *s, const struct signal_host *host,
			  const struct signal_target *target)
{
	if (!(target->wanted & WITH_ACCOUNTS))
		return false;
	s->by_accounts = accounts_hold_attach(&s->hold, &s->signal, host, target);
	return s->by_accounts;
}

static void attach_switches(struct signal *signal, const struct signal_host *host,
			    const struct signal_target *target)
{
	struct context_switches *s = switches_of(signal);

	if (s->by_accounts || signal->held || join_accounts(s, host, target))
		return;
	if (counter_signal_hold(signal, host, target, NULL, NULL))
		counter_signal_started(signal, host, target, read_switches(host, target, &s->count),
				       unreadable);
}

static bool prepare_switches(struct signal *signal, const struct signal_host *host,
			     const struct signal_target *target)
{
	struct context_switches *s = switches_of(signal);

	return !s->by_accounts || accounts_hold_prepare(&s->hold, host, target);
}

/* Sums the threads' switches by their accounts. */
static void sum_accounts(struct context_switches *s, const struct signal_host *host,
			 const struct signal_target *target)
{
	const struct thread_accounts *accounts =
		accounts_hold_end(&s->hold, &s->signal, host, target);

	s->counted = accounts != NULL;
	for (size_t i = 0; accounts && i < accounts->count; i++) {
		s->count.voluntary += accounts->items[i].switches.voluntary;
		s->count.involuntary += accounts->items[i].switches.involuntary;
	}
	if (accounts)
		s->uncounted = accounts->losses.unqueued;
	accounts_hold_leave(&s->hold, host);
}

/* Takes the difference of the slot's counters. */
static void subtract_counters(struct context_switches *s, const struct signal_host *host,
			      const struct signal_target *target)
{
	struct slot_switches last;

	s->shared = target->shared;
	s->counted = read_switches(host, target, &last) == 0;
	if (s->counted) {
		s->count.voluntary = last.voluntary - s->count.voluntary;
		s->count.involuntary = last.involuntary - s->count.involuntary;
	}
	counter_signal_end(&s->signal, host, s->counted ? NULL : unreadable, NULL, NULL);
}

static void end_switches(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct context_switches *s = switches_of(signal);

	if (s->by_accounts)
		sum_accounts(s, host, target);
	else if (signal->held)
		subtract_counters(s, host, target);
}

static void write_switches(const struct signal *signal, struct jsonw *w)
{
	const struct context_switches *s = (const struct context_switches *)signal;

	if (!counter_signal_write_begin("switches", s->counted && !s->shared,
					s->counted ? others : signal->off_reason, w))
		return;
	jsonw_u64(w, "voluntary", s->count.voluntary);
	jsonw_u64(w, "involuntary", s->count.involuntary);
	jsonw_u64_nonzero(w, "uncounted", s->uncounted);
	jsonw_u64_nonzero(w, "late_ms", signal->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind context_switches_kind = {
	.id = SIGNAL_SWITCH,
	.auto_why = "auto: at pressure, running threads and context switches",
	/*
	 * For a session that is to explain a stall: whether tasks lost the CPU or gave it up to
	 * wait, and how often, shows the delay of the service.
	 */
	.is_auto = trigger_reason_asks_why,
	.create = create_switches,
	.destroy = destroy_switches,
	.attach = attach_switches,
	.prepare = prepare_switches,
	.end = end_switches,
	.write = write_switches,
};
