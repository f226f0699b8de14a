/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* event_ring.h: puts records into the events ring. No other code writes there. */
#ifndef TROCAR_BPF_MAPS_EVENT_RING_H
#define TROCAR_BPF_MAPS_EVENT_RING_H

#include <stdbool.h>

#include "bpf/maps/error_ring.h"
#include "bpf/maps/maps.h"

/*
 * The consumer must handle a discovery event soon, or a short-lived process is gone before its
 * cgroup is watched. But a wake-up costs 6.6 us, and a fork storm must not cause one per event. So
 * the programs wake the consumer at most once in EVENT_WAKE_NS over all CPUs. Other events wait for
 * the consumer's timer.
 */
#define EVENT_WAKE_NS 50000000ull

/*
 * Private: when the events ring last woke the consumer. A race costs one more wake-up and loses no
 * event.
 */
__weak MAP(ARRAY, event_wake, __u32, __u64, 1);

static __always_inline __u64 event_ring_wake_flag(__u64 now)
{
	__u64 *woken_ns = map_single(&event_wake);

	/* Another CPU may have woken the consumer after `now` was read. */
	if (!woken_ns || (__s64)(now - *woken_ns) < (__s64)EVENT_WAKE_NS)
		return BPF_RB_NO_WAKEUP;
	*woken_ns = now;
	return BPF_RB_FORCE_WAKEUP;
}

/*
 * Reserves space for events that nothing else reports in time. Starts and kills may fill the whole
 * ring, exits half of it. Names, cgroups and addresses, which a scan or the next tick finds again,
 * may fill a quarter. Returns false without space, and counts the event as shed.
 */
static __always_inline bool event_ring_admits(__u32 kind)
{
	__u64 size, used;

	if (kind == EVENT_EXEC || kind == EVENT_FORK || kind == EVENT_OOM)
		return true;
	size = bpf_ringbuf_query(&events, BPF_RB_RING_SIZE);
	used = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	if (used < (kind == EVENT_EXIT ? size / 2 : size / 4))
		return true;
	TOTALS_COUNT(events_shed);
	return false;
}

/*
 * Puts `event` of `bytes` bytes, path included, into the ring, and counts it as an event, as shed
 * or as lost. Returns true if the consumer will see it. `at_once`: wake the consumer in any case.
 */
static __always_inline bool event_ring_submit(const struct event *event, __u64 bytes, bool at_once)
{
	long r;

	if (!event_ring_admits(event->kind))
		return false;
	r = bpf_ringbuf_output(&events, (void *)event, bytes,
			       at_once ? BPF_RB_FORCE_WAKEUP
				       : event_ring_wake_flag(event->time_ns));
	if (r < 0) {
		TOTALS_COUNT(events_lost);
		error_ring_put(ERROR_EVENTS_FULL, r, NO_SLOT, event->rule, bytes);
		return false;
	}
	TOTALS_COUNT(events);
	return true;
}

static __always_inline bool event_ring_put(const struct event *event, __u64 bytes)
{
	return event_ring_submit(event, bytes, false);
}

#endif
