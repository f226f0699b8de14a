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
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/slot_nest.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct reclaim {
	struct signal signal;
	bool held, tried; /* the programs are attached for this session; the attach was tried */
	bool no_pauses;	  /* the kernel does not report throttled writers */
	uint64_t late_ms; /* how long after the begin */
	struct reclaim_reading before; /* owned */
	struct reclaim_times times;    /* owned */
};

static const char not_yet[] = "it has not been attached yet";
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
	struct reclaim *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->signal.off_reason = not_yet;
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
	bool late = s->tried;

	s->tried = true;
	if (s->held || target->stop_ns)
		return;
	if (target->only_tgid || target->by_process) {
		signal->off_reason = one_process;
		return;
	}
	if (!host->programs->of[SIGNAL_RECLAIM].holders)
		reclaim_maps_empty(host->pins);
	if (signal_programs_hold(host->programs, SIGNAL_RECLAIM, &signal->off_reason) < 0)
		return;
	if (reclaim_maps_read(host->pins, target->slot, &s->before) < 0) {
		signal_programs_drop(host->programs, SIGNAL_RECLAIM);
		signal->off_reason = unreadable;
		return;
	}
	s->held = true;
	signal->off_reason = NULL;
	if (late)
		s->late_ms = (clock_mono_ns() - target->start_ns) / NSEC_PER_MSEC;
}

static void end_reclaim(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	struct reclaim *s = reclaim_of(signal);
	const struct slot_nest nest = { host->pins, target->slot };
	struct reclaim_reading now = {};

	if (!s->held)
		return;
	s->held = false;
	if (target->shared)
		signal->off_reason = one_process;
	else if (reclaim_maps_read(host->pins, target->slot, &now) < 0)
		signal->off_reason = unreadable;
	else if (reclaim_times_make(&s->before, &now, slot_nest_holds, &nest, &s->times) < 0)
		signal->off_reason = no_memory;
	else
		signal->evidence = &s->times;
	neighbour_rows_ask(s->times.neighbours, s->times.n_neighbours, sizeof(*s->times.neighbours),
			   target->names, host->cgroups);
	signal->counted = signal->evidence ? &s->times.ledger : NULL;
	signal_programs_drop(host->programs, SIGNAL_RECLAIM);
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

	if (!times) {
		jsonw_null(w, "reclaim");
		jsonw_string(w, "reclaim_reason", signal->off_reason);
		return;
	}
	sum = reclaim_times_sum(times);
	jsonw_object(w, "reclaim");
	write_kinds(times, s->no_pauses, w);
	jsonw_u64(w, "from_mono_ns", times->from_ns);
	jsonw_u64(w, "to_mono_ns", times->to_ns);
	jsonw_u64(w, "stretches", sum.count);
	jsonw_u64(w, "open", sum.open);
	jsonw_u64(w, "reclaimed_bytes", sum.pages * (uint64_t)sysconf(_SC_PAGESIZE));
	if (sum.orphans)
		jsonw_u64(w, "orphans", sum.orphans);
	if (times->awake)
		jsonw_u64(w, "awake", times->awake);
	if (s->late_ms)
		jsonw_u64(w, "late_ms", s->late_ms);
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
