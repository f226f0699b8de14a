/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/session/held_triggers.h"

#include <stdbool.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

void held_triggers_add(struct held_triggers *h, const struct trigger_reason *reason)
{
	uint64_t from_us, to_us;

	h->count++;
	if (reason->kind != TRIGGER_PRESSURE)
		return;
	/* Readings overlap if a scan follows the pressure, or if rules have several thresholds. */
	from_us = MAX(h->counted_us, reason->before.some.total_us);
	to_us = MAX(from_us, reason->now.some.total_us);
	h->largest_ms = MAX(h->largest_ms, reason->stall_ms);
	h->sum_us += to_us - from_us;
	h->counted_us = to_us;
}

void held_triggers_reset(struct held_triggers *h)
{
	*h = (struct held_triggers){ .counted_us = h->counted_us };
}

void held_triggers_write_stall(const struct held_triggers *h, enum trigger_cause cause,
			       struct jsonw *w)
{
	if (!trigger_reason_cause_resource(cause))
		return;
	jsonw_u64(w, "largest_ms", h->largest_ms);
	jsonw_u64(w, "sum_ms", h->sum_us / 1000);
}

static void write_cause(const struct held_triggers *h, enum trigger_cause cause, struct jsonw *w)
{
	const char *resource = trigger_reason_cause_resource(cause);

	jsonw_object(w, NULL);
	jsonw_string(w, "trigger", trigger_reason_cause_name(cause));
	if (resource)
		jsonw_string(w, "resource", resource);
	jsonw_u64(w, "triggers", h->count);
	held_triggers_write_stall(h, cause, w);
	jsonw_object_end(w);
}

void held_triggers_write(const struct held_triggers held[CAUSE_COUNT_], struct jsonw *w,
			 const char *key)
{
	bool any = false;

	for (int cause = 0; cause < CAUSE_COUNT_; cause++) {
		if (!held[cause].count)
			continue;
		if (!any)
			jsonw_array(w, key);
		any = true;
		write_cause(&held[cause], (enum trigger_cause)cause, w);
	}
	if (any)
		jsonw_array_end(w);
}
