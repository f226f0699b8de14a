/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * error_ring.h: reports losses and faults, at most one record per kind, CPU and second. Further
 * ones are counted in the next record.
 */
#ifndef TROCAR_BPF_MAPS_ERROR_RING_H
#define TROCAR_BPF_MAPS_ERROR_RING_H

#include "bpf/maps/maps.h"

#define ERROR_EVERY_NS 1000000000ull

_Static_assert(ERROR_WATCHES_FULL < ERROR_KINDS, "error_limits has no element for a kind");

/*
 * Reports an error of the current task. `error` is -errno or 0. `slot` and `rule` are NO_SLOT if
 * there is none. `space` is the number of requested bytes. A tick that interrupts a discovery
 * program between the two stores may lose one increment of `suppressed`: that count is a hint, and
 * the counters are exact. A global function, for the verifier and for the stack that its record
 * needs; it returns 0.
 */
__weak __noinline int error_ring_put(__u32 kind, __s32 error, __u32 slot, __u32 rule, __u32 space)
{
	struct error_limit *limit = bpf_map_lookup_elem(&error_limits, &kind);
	__u64 now = bpf_ktime_get_ns();
	struct error_record record = {};

	if (!limit)
		return 0;
	if (limit->sent_ns && now - limit->sent_ns < ERROR_EVERY_NS) {
		limit->suppressed++;
		return 0;
	}
	record.time_ns = now;
	record.kind = kind;
	record.error = error;
	record.slot = slot;
	record.rule = rule;
	record.tgid = bpf_get_current_pid_tgid() >> 32;
	record.space = space;
	record.suppressed = limit->suppressed;
	record.cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(record.comm, sizeof(record.comm));
	limit->sent_ns = now;
	if (bpf_ringbuf_output(&errors, &record, sizeof(record), BPF_RB_NO_WAKEUP)) {
		limit->suppressed++;
		TOTALS_COUNT(errors_lost);
		return 0;
	}
	limit->suppressed = 0;
	return 0;
}

#endif
