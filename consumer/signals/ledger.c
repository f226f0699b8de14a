/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/ledger.h"

#include <stddef.h>

#include "shared/tools/macro.h"

static const char *const drops[] = {
#define DROP(id, json, text) [DROP_##id] = (json),
#include "shared/abi/drops.def"
#undef DROP
};
_Static_assert(ARRAY_SIZE(drops) == DROP_COUNT_, "a row per reason");

const char *ledger_drop_name(enum drop drop)
{
	return drops[drop];
}

uint64_t ledger_lost(const struct ledger *l)
{
	uint64_t sum = 0;

	for (int i = 0; i < DROP_COUNT_; i++)
		sum += l->lost[i];
	return sum;
}

void ledger_add(struct ledger *a, const struct ledger *b)
{
	a->attempted += b->attempted;
	a->emitted += b->emitted;
	for (int i = 0; i < DROP_COUNT_; i++)
		a->lost[i] += b->lost[i];
}

void ledger_assign(struct ledger *l, const uint64_t kernel_lost[SLOT_LOST_REASONS])
{
	static const enum drop kernel[] = { DROP_STALE, DROP_RING_FULL, DROP_STACK_USER,
					    DROP_STACK_KERNEL };
	uint64_t known = l->emitted + ledger_lost(l), missing;

	if (l->attempted < known) {
		/*
		 * More samples arrived than were attempted: a counter was read late. Count them
		 * all.
		 */
		l->attempted = known;
		return;
	}
	missing = l->attempted - known;
	for (size_t i = 0; i < ARRAY_SIZE(kernel); i++) {
		uint64_t n = MIN(missing, kernel_lost[kernel[i]]);

		l->lost[kernel[i]] += n;
		missing -= n;
	}
}

void ledger_close(struct ledger *l, const uint64_t kernel_lost[SLOT_LOST_REASONS])
{
	ledger_assign(l, kernel_lost);
	l->lost[DROP_UNACCOUNTED] += l->attempted - l->emitted - ledger_lost(l);
}

const char *ledger_verdict_name(enum verdict verdict)
{
	static const char *const names[] = { "complete", "partial", "inconclusive" };

	return names[verdict];
}

enum verdict ledger_verdict(const struct ledger *all, const struct ledger *during,
			    uint64_t expected, const char **ret_reason)
{
	uint64_t lost = ledger_lost(all);

	*ret_reason = NULL;
	if (lost * 2 > all->attempted) {
		*ret_reason = "more than half of the samples were lost";
		return VERDICT_INCONCLUSIVE;
	}
	/* Fewer ticks than this prove nothing: timers of virtual machines come late. */
	if (expected != UINT64_MAX && expected >= 40 && during->attempted * 2 < expected) {
		*ret_reason = "less than half of the ticks that the CPU time calls for arrived";
		return VERDICT_PARTIAL;
	}
	if (lost) {
		*ret_reason = "some samples were lost; the ledger names each reason";
		return VERDICT_PARTIAL;
	}
	return VERDICT_COMPLETE;
}
