/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `reclaim`: direct reclaim and dirty throttling of the session's cgroup, and other
 * cgroups that were short of memory. The broker attaches the programs for the session
 * (bpf/memory/reclaim.bpf.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/evidence/memory/reclaim_times.h"
#include "consumer/evidence/memory/session_reclaim.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/slot_nest.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct reclaim {
	struct signal signal;
	bool no_pauses;		       /* the kernel does not report throttled writers */
	struct reclaim_reading before; /* owned */
	struct reclaim_times times;    /* owned */
};

static const char unreadable[] = "the kernel's times of reclaim cannot be read";
static const char no_memory[] = "there was no memory for the times of reclaim";
static const char one_process[] =
	"the kernel side counts reclaim by cgroup, and the session is of some of its processes";
static const char no_pauses[] =
	"the tracepoint balance_dirty_pages has a format that this version does not know";

static struct reclaim *reclaim_of(struct signal *s)
{
	return (struct reclaim *)s;
}

/*
 * Returns true if the wait may be for memory: at memory pressure, at a stall that no pressure
 * shows, and at a kill. A writer is throttled in an io wait, so io pressure counts too.
 */
static bool is_auto(const struct trigger_reason *reason)
{
	if (reason->kind == TRIGGER_PRESSURE)
		return reason->when.resource != RESOURCE_CPU;
	return reason->kind == TRIGGER_OOM_KILL || trigger_reason_asks_why(reason);
}

static struct signal *create_reclaim(const struct signal_host *host,
				     const struct signal_target *target)
{
	struct reclaim *s = counter_signal_new(sizeof(*s), NULL);

	if (!s)
		return NULL;
	s->no_pauses = !host->pins->abi.dirty_pauses;
	return &s->signal;
}

static void destroy_reclaim(struct signal *signal)
{
	struct reclaim *s = reclaim_of(signal);

	reclaim_maps_forget(&s->before);
	reclaim_times_done(&s->times);
	free(s);
}

static void attach_reclaim(struct signal *signal, const struct signal_host *host,
			   const struct signal_target *target)
{
	struct reclaim *s = reclaim_of(signal);

	if (counter_signal_hold(signal, host, target, one_process, reclaim_maps_empty))
		counter_signal_started(signal, host, target,
				       reclaim_maps_read(host->pins, target->slot, &s->before),
				       unreadable);
}

static void end_reclaim(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	struct reclaim *s = reclaim_of(signal);
	const struct slot_nest nest = { host->pins, target->slot };
	const struct slot_owner owner = { slot_nest_holds, &nest };
	struct reclaim_reading now = {};
	const char *off_reason = NULL;

	if (!signal->held)
		return;
	if (target->shared)
		off_reason = one_process;
	else if (reclaim_maps_read(host->pins, target->slot, &now) < 0)
		off_reason = unreadable;
	else if (reclaim_times_make(&s->before, &now, &owner, &s->times) < 0)
		off_reason = no_memory;
	counter_signal_end(signal, host, off_reason, &s->times, &s->times.ledger);
	neighbour_rows_ask(s->times.neighbours, s->times.n_neighbours, sizeof(*s->times.neighbours),
			   target->names, host->cgroups);
	reclaim_maps_forget(&now);
	reclaim_maps_forget(&s->before);
}

/* The paths that needed a lookup are known by now. */
static void close_reclaim(struct signal *signal, const struct signal_host *host,
			  const struct signal_target *target)
{
	_cleanup_(neighbour_rows_source_done) struct neighbour_rows_source source;
	const struct neighbour_names names =
		neighbour_rows_names(&source, target->names, host->cgroups);

	reclaim_times_close(&reclaim_of(signal)->times, &names);
}

static void write_kinds(const struct reclaim_times *times, bool no_throttle, struct jsonw *w)
{
	for (int i = 0; i < RECLAIM_KINDS_; i++) {
		enum reclaim_kind kind = (enum reclaim_kind)i;
		char key[32];

		snprintf(key, sizeof(key), "%s_ms", reclaim_times_kind_name(kind));
		if (kind == RECLAIM_THROTTLE && no_throttle) {
			jsonw_null(w, key);
			jsonw_string(w, "throttle_reason", no_pauses);
			continue;
		}
		jsonw_u64(w, key, reclaim_times_ns(times, kind) / NSEC_PER_MSEC);
	}
}

static void write_reclaim(const struct signal *signal, struct jsonw *w)
{
	const struct reclaim *s = (const struct reclaim *)signal;
	const struct reclaim_times *times = signal->evidence;
	struct reclaim_time sum;

	if (!counter_signal_write_begin("reclaim", times, signal->off_reason, w))
		return;
	sum = reclaim_times_sum(times);
	write_kinds(times, s->no_pauses, w);
	jsonw_u64(w, "from_mono_ns", times->from_ns);
	jsonw_u64(w, "to_mono_ns", times->to_ns);
	jsonw_u64(w, "stretches", sum.count);
	jsonw_u64(w, "open", sum.open);
	jsonw_u64(w, "reclaimed_bytes", sum.pages * (uint64_t)sysconf(_SC_PAGESIZE));
	jsonw_u64_nonzero(w, "orphans", sum.orphans);
	jsonw_u64_nonzero(w, "awake", times->awake);
	jsonw_u64_nonzero(w, "late_ms", signal->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind reclaim_kind = {
	.id = SIGNAL_RECLAIM,
	.counts = "reclaim events",
	.table = "tables of reclaim",
	.is_auto = is_auto,
	.create = create_reclaim,
	.destroy = destroy_reclaim,
	.attach = attach_reclaim,
	.end = end_reclaim,
	.close = close_reclaim,
	.write = write_reclaim,
	.lines = session_reclaim_put,
};
