/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `neighbours`: the CPU time of all cgroups while the session ran. The sampler's ticks
 * on all CPUs count it (bpf/cpu/neighbours.h), so it needs no program of its own; without ticks it
 * is missing.
 */
#include <stdlib.h>

#include "consumer/evidence/cpu/neighbours.h"
#include "consumer/evidence/cpu/session_neighbours.h"
#include "consumer/sampling/sampler.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signals.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct cpu_neighbours {
	struct signal signal;
	struct neighbour_counts counts; /* at the begin */
	struct neighbours found;
	struct ledger ledger;
	uint64_t begin_ns; /* 0: not counting */
};

static const char no_ticks[] = "no CPU has a sampling event";
static const char no_memory[] = "there was no memory for the other cgroups";

static struct cpu_neighbours *cpu_neighbours_of(struct signal *s)
{
	return (struct cpu_neighbours *)s;
}

/* Every session has it: it costs a tick 0.35 us, and no stack shows the other users of the CPUs. */
static bool is_auto(const struct trigger_reason *reason)
{
	return true;
}

static struct signal *create_neighbours(const struct signal_host *host,
					const struct signal_target *target)
{
	return counter_signal_new(sizeof(struct cpu_neighbours), "the session has not begun");
}

static void destroy_neighbours(struct signal *signal)
{
	struct cpu_neighbours *s = cpu_neighbours_of(signal);

	neighbour_counts_done(&s->counts);
	neighbours_done(&s->found);
	free(s);
}

/* Returns how many CPUs tick; *ret_why has the reason for the others. */
static size_t count_ticking(const struct signal_host *host, const char **ret_why)
{
	size_t ticking, missing;

	sampler_state(host->sampler, &ticking, &missing, ret_why);
	if (!*ret_why)
		*ret_why = no_ticks;
	return ticking;
}

static void begin_neighbours(struct signal *signal, const struct signal_host *host,
			     const struct signal_target *target)
{
	struct cpu_neighbours *s = cpu_neighbours_of(signal);
	const char *why;

	if (!count_ticking(host, &why)) {
		signal->off_reason = why;
		return;
	}
	neighbours_begin(host->pins, &s->counts);
	s->begin_ns = clock_mono_ns();
	signal->off_reason = s->counts.reason;
}

/*
 * A millisecond of CPU time seen by a tick is an attempt; the time of cgroups that did not fit into
 * the map is lost.
 */
static void close_ledger(struct cpu_neighbours *s)
{
	const struct neighbours *n = &s->found;
	uint64_t lost_ms = n->unlisted_ns / NSEC_PER_MSEC;
	uint64_t short_ms = n->short_ns / NSEC_PER_MSEC;

	s->ledger.attempted = n->own_ns / NSEC_PER_MSEC + n->others_ns / NSEC_PER_MSEC;
	ledger_lose(&s->ledger, DROP_NEIGHBOURS_FULL, lost_ms, short_ms);
	s->ledger.emitted = s->ledger.attempted - lost_ms;
	s->signal.counted = &s->ledger;
	s->signal.evidence = &s->found;
}

static struct neighbours_target of_target(const struct signal_target *target)
{
	return (struct neighbours_target){
		.cgroup_id = target->cgroup_id,
		.cgroup = target->cgroup,
		.slot = target->slot,
		.names = target->names,
	};
}

/*
 * Called while the CPUs still tick at the full rate. It finds cgroups by processes in them, so that
 * signals that end after it name and sum up these cgroups the same way.
 */
static void end_neighbours(struct signal *signal, const struct signal_host *host,
			   const struct signal_target *target)
{
	struct cpu_neighbours *s = cpu_neighbours_of(signal);
	const struct neighbours_target of = of_target(target);
	const char *why;

	if (!s->begin_ns)
		return;
	neighbours_end(host->pins, host->cgroups, &of, &s->counts, &s->found);
	s->found.lasted_ns = clock_mono_ns() - s->begin_ns;
	s->found.cpus = count_ticking(host, &why);
	signal->off_reason = s->counts.reason ? s->counts.reason : s->found.cpus ? NULL : why;
}

static void close_neighbours(struct signal *signal, const struct signal_host *host,
			     const struct signal_target *target)
{
	struct cpu_neighbours *s = cpu_neighbours_of(signal);
	const struct neighbours_target of = of_target(target);

	if (neighbours_close(host->cgroups, &of, &s->found) < 0)
		signal->off_reason = no_memory;
	if (!signal->off_reason)
		close_ledger(s);
}

const struct signal_kind cpu_neighbours_kind = {
	.id = SIGNAL_NEIGHBOURS,
	.leads = true,
	.counts = "ms of CPU time",
	.table = "table of cgroups with CPU time",
	.is_auto = is_auto,
	.create = create_neighbours,
	.destroy = destroy_neighbours,
	.begin = begin_neighbours,
	.end = end_neighbours,
	.close = close_neighbours,
	.lines = session_neighbours_put,
};
