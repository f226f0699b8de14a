/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/telemetry/owners_status.h"

#include "consumer/discovery/discovery.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Maximum number of owners in the status. */
#define TOP_MAX 5

static void write_owner(const struct owner *owner, const uint64_t parts[SHARE_COUNT_],
			struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "owner", owner->name);
	for (int i = 0; i < SHARE_COUNT_; i++)
		jsonw_u64(w, share_name((enum share)i), owner->held[i]);
	jsonw_array(w, "at_share");
	for (int i = 0; i < SHARE_COUNT_; i++)
		if (owner->held[i] && owner->held[i] >= parts[i])
			jsonw_string(w, NULL, share_name((enum share)i));
	jsonw_array_end(w);
	jsonw_object_end(w);
}

void owners_status_write(struct discovery *d, struct jsonw *w)
{
	const uint64_t capacity[SHARE_COUNT_] = {
		[SHARE_WATCHES] = d->pins->abi.slots,
		[SHARE_TABLES] = d->unwind->tables.count,
		[SHARE_ROWS] = (uint64_t)d->pins->abi.unwind_rows * 8,
		[SHARE_CAPTURED] = (uint64_t)d->active->set->rules->budget_s * MSEC_PER_SEC,
	};
	const struct owner *top[TOP_MAX];
	uint64_t parts[SHARE_COUNT_];
	size_t n;

	unwind_room_count(&d->unwind->room);
	n = shares_top(d->shares, capacity, clock_mono_ns(), top, TOP_MAX);
	shares_parts(d->shares, capacity, parts);
	jsonw_array(w, "owners");
	for (size_t i = 0; i < n; i++)
		write_owner(top[i], parts, w);
	jsonw_array_end(w);
}
