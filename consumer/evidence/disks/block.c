/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `block`: the disk requests of the session's cgroup, how long each waited for its disk
 * and how long the disk took, and the other users of the disk. The broker attaches the programs for
 * the session (bpf/disks/block.bpf.c).
 */
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/disks/block_requests.h"
#include "consumer/evidence/disks/session_block.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/slot_nest.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct block {
	struct signal signal;
	struct block_reading before;	/* owned */
	struct block_requests requests; /* owned */
};

static const char unreadable[] = "the kernel's counts of requests to disks cannot be read";
static const char no_memory[] = "there was no memory for the requests to disks";
static const char one_process[] =
	"the kernel side counts requests by cgroup, and the session is of some of its processes";

static struct block *block_of(struct signal *s)
{
	return (struct block *)s;
}

/*
 * Returns true for io, for a stall that no pressure shows, and for a request. Pressure of cpu or
 * memory proves by itself that the wait is not for a disk.
 */
static bool is_auto(const struct trigger_reason *reason)
{
	return reason->kind == TRIGGER_PRESSURE ? reason->when.resource == RESOURCE_IO
						: trigger_reason_asks_why(reason);
}

static struct signal *create_block(const struct signal_host *host,
				   const struct signal_target *target)
{
	return counter_signal_new(sizeof(struct block), NULL);
}

static void destroy_block(struct signal *signal)
{
	struct block *s = block_of(signal);

	block_maps_forget(&s->before);
	block_requests_done(&s->requests);
	free(s);
}

static void attach_block(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct block *s = block_of(signal);

	if (counter_signal_hold(signal, host, target, one_process, block_maps_empty))
		counter_signal_started(signal, host, target,
				       block_maps_read(host->pins, target->slot, &s->before),
				       unreadable);
}

static void end_block(struct signal *signal, const struct signal_host *host,
		      const struct signal_target *target)
{
	struct block *s = block_of(signal);
	const struct slot_nest nest = { host->pins, target->slot };
	const struct slot_owner owner = { slot_nest_holds, &nest };
	struct block_reading now = {};
	const char *off_reason = NULL;

	if (!signal->held)
		return;
	if (target->shared)
		off_reason = one_process;
	else if (block_maps_read(host->pins, target->slot, &now) < 0)
		off_reason = unreadable;
	else if (block_requests_make(&s->before, &now, &owner, &s->requests) < 0)
		off_reason = no_memory;
	counter_signal_end(signal, host, off_reason, &s->requests, &s->requests.ledger);
	neighbour_rows_ask(s->requests.neighbours, s->requests.n_neighbours,
			   sizeof(*s->requests.neighbours), target->names, host->cgroups);
	block_maps_forget(&now);
	block_maps_forget(&s->before);
}

/* The paths that needed a lookup are known by now. */
static void close_block(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	_cleanup_(neighbour_rows_source_done) struct neighbour_rows_source source;
	const struct neighbour_names names =
		neighbour_rows_names(&source, target->names, host->cgroups);

	block_requests_close(&block_of(signal)->requests, &names);
}

static uint64_t sum_open(const struct block_requests *all)
{
	uint64_t open = 0;

	for (size_t i = 0; i < all->count; i++)
		open += all->items[i].open;
	return open;
}

static void write_block(const struct signal *signal, struct jsonw *w)
{
	const struct block_requests *all = signal->evidence;
	struct block_times sum;

	if (!counter_signal_write_begin("block", all, signal->off_reason, w))
		return;
	sum = block_requests_sum(all);
	jsonw_u64(w, "requests", sum.requests);
	jsonw_u64(w, "bytes", sum.bytes);
	jsonw_u64(w, "queue_ms", sum.queue_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "service_ms", sum.service_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "longest_ms", sum.longest_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "open", sum_open(all));
	jsonw_u64_nonzero(w, "errors", sum.errors);
	jsonw_u64_nonzero(w, "late_ms", signal->late_ms);
	jsonw_object_end(w);
}

const struct signal_kind block_kind = {
	.id = SIGNAL_BLOCK,
	.counts = "disk requests",
	.table = "tables of requests",
	.is_auto = is_auto,
	.create = create_block,
	.destroy = destroy_block,
	.attach = attach_block,
	.end = end_block,
	.close = close_block,
	.write = write_block,
	.lines = session_block_put,
};
