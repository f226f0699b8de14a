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
	bool tried;		    /* attach was called */
	bool shared;		    /* the counts include other processes */
	uint64_t late_ms;	    /* the delay between begin and attaching the program */
	uint64_t uncounted;	    /* switches of threads that got no account (table full) */
	struct slot_switches count; /* at begin the first counts, at end the difference */
};

static const char not_yet[] = "it has not been attached yet";
static const char unreadable[] = "the counters cannot be read";
static const char others[] =
	"the kernel side counts by cgroup, and more of the cgroup was sampled than this "
	"session's processes";

static struct context_switches *switches_of(struct signal *s)
{
	return (struct context_switches *)s;
}

/*
 * Returns true for a session that is to explain a stall: whether tasks lost the CPU or gave it up
 * to wait, and how often, shows the delay of the service.
 */
static bool is_auto(const struct trigger_reason *reason)
{
	return trigger_reason_asks_why(reason);
}

static struct signal *create_switches(const struct signal_host *host,
				      const struct signal_target *target)
{
	struct context_switches *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->signal.off_reason = not_yet;
	return &s->signal;
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
	bool late = s->tried;

	s->tried = true;
	if (s->counted || target->stop_ns)
		return;
	if (!join_accounts(s, host, target)) {
		if (signal_programs_hold(host->programs, SIGNAL_SWITCH, &signal->off_reason) < 0)
			return;
		if (read_switches(host, target, &s->count) < 0) {
			signal_programs_drop(host->programs, SIGNAL_SWITCH);
			signal->off_reason = unreadable;
			return;
		}
	}
	s->counted = true;
	signal->off_reason = NULL;
	if (late)
		s->late_ms = (clock_mono_ns() - target->start_ns) / NSEC_PER_MSEC;
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
	if (read_switches(host, target, &last) == 0) {
		s->count.voluntary = last.voluntary - s->count.voluntary;
		s->count.involuntary = last.involuntary - s->count.involuntary;
	} else {
		s->counted = false;
		s->signal.off_reason = unreadable;
	}
	signal_programs_drop(host->programs, SIGNAL_SWITCH);
}

static void end_switches(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct context_switches *s = switches_of(signal);

	if (s->counted && s->by_accounts)
		sum_accounts(s, host, target);
	else if (s->counted)
		subtract_counters(s, host, target);
}

static void write_switches(const struct signal *signal, struct jsonw *w)
{
	const struct context_switches *s = (const struct context_switches *)signal;

	if (!s->counted || s->shared) {
		jsonw_null(w, "switches");
		jsonw_string(w, "switches_reason", s->counted ? others : signal->off_reason);
		return;
	}
	jsonw_object(w, "switches");
	jsonw_u64(w, "voluntary", s->count.voluntary);
	jsonw_u64(w, "involuntary", s->count.involuntary);
	if (s->uncounted)
		jsonw_u64(w, "uncounted", s->uncounted);
	if (s->late_ms)
		jsonw_u64(w, "late_ms", s->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind context_switches_kind = {
	.id = SIGNAL_SWITCH,
	.auto_why = "auto: at pressure, running threads and context switches",
	.is_auto = is_auto,
	.create = create_switches,
	.destroy = destroy_switches,
	.attach = attach_switches,
	.prepare = prepare_switches,
	.end = end_switches,
	.write = write_switches,
};
