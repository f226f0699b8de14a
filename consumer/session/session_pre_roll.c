/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/session/session_pre_roll.h"

#include "consumer/sampling/recorder.h"
#include "shared/tools/macro.h"

/*
 * Returns how much of the pre-roll the stall covers: the time that the trigger measured, or since
 * the CPU time fell. A request
 * for a session arrives after some seconds of late answers: the older half of the pre-roll counts
 * as baseline.
 */
static uint32_t onset_of(const struct trigger_reason *reason, uint32_t pre_ms)
{
	if (reason->kind == TRIGGER_REQUEST)
		return pre_ms / 2;
	if (!trigger_reason_is_stall(reason))
		return 0;
	return (uint32_t)MIN(MAX(reason->measured_ms, reason->began_ms), pre_ms);
}

void session_pre_roll_find(const struct sessions *all, const struct session_start *start,
			   uint64_t ticking_ns, uint64_t now_ns, struct session_result *r)
{
	uint32_t asked_ms = start->rule ? start->rule->pre_ms : SESSION_PRE_MS;
	uint64_t since_ns = MAX(start->recorded_ns, ticking_ns);
	enum session_pre_limit limit = since_ns == start->recorded_ns ? PRE_YOUNG : PRE_UNTICKED;
	uint64_t recorded_ms;

	if (all->host.recorder->evicted_ns >= since_ns) {
		since_ns = all->host.recorder->evicted_ns + 1;
		limit = PRE_EVICTED;
	}
	recorded_ms = (now_ns - MIN(now_ns, since_ns)) / NSEC_PER_MSEC;
	r->pre_ms = (uint32_t)MIN(asked_ms, recorded_ms);
	r->pre_limit = r->pre_ms < asked_ms ? limit : PRE_WHOLE;
	r->onset_ms = onset_of(start->reason, r->pre_ms);
}
