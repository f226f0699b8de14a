/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/ledger.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/*
 * From this many expected ticks on, the actual ticks are compared with the expected: from
 * EXPECTED_SOME on for a large gap, from EXPECTED_MANY on for these shares.
 */
#define EXPECTED_SOME	  40
#define EXPECTED_MANY	  200
#define ATTEMPTED_MIN_PCT 85
#define ATTEMPTED_MAX_PCT 115

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

void ledger_lose(struct ledger *l, enum drop full, uint64_t lost, uint64_t no_memory)
{
	no_memory = MIN(no_memory, lost);
	l->lost[DROP_NO_MEMORY] += no_memory;
	l->lost[full] += lost - no_memory;
}

uint64_t ledger_lost_to_full(const struct ledger *l)
{
	return ledger_lost(l) - l->lost[DROP_NO_MEMORY] - l->lost[DROP_END_UNSEEN];
}

bool ledger_say_unrecorded(const struct ledger *l, const char *what,
			   char ret_reason[LEDGER_REASON_BYTES])
{
	bool no_memory = l->lost[DROP_NO_MEMORY] > 0;

	if (!ledger_lost(l) || ledger_lost_to_full(l))
		return false;
	snprintf(ret_reason, LEDGER_REASON_BYTES,
		 "%" PRIu64 " of %" PRIu64 " %s were not recorded: %s", ledger_lost(l),
		 l->attempted, what,
		 no_memory ? "the kernel had no memory for them at that moment"
			   : "the kernel reported no end of them");
	return true;
}

void ledger_write(const struct ledger *l, struct jsonw *w)
{
	jsonw_u64(w, "attempted", l->attempted);
	jsonw_u64(w, "emitted", l->emitted);
	jsonw_object(w, "lost");
	for (int i = 0; i < DROP_COUNT_; i++)
		if (l->lost[i])
			jsonw_u64(w, ledger_drop_name((enum drop)i), l->lost[i]);
	jsonw_object_end(w);
}

void ledger_add(struct ledger *a, const struct ledger *b)
{
	a->attempted += b->attempted;
	a->emitted += b->emitted;
	for (int i = 0; i < DROP_COUNT_; i++)
		a->lost[i] += b->lost[i];
}

void ledger_assign(struct ledger *l, uint64_t kernel_lost[SLOT_LOST_REASONS])
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
		kernel_lost[kernel[i]] -= n;
		missing -= n;
	}
}

void ledger_close(struct ledger *l, uint64_t kernel_lost[SLOT_LOST_REASONS])
{
	ledger_assign(l, kernel_lost);
	l->lost[DROP_UNACCOUNTED] += l->attempted - l->emitted - ledger_lost(l);
}

const char *ledger_verdict_name(enum verdict verdict)
{
	static const char *const names[] = { "complete", "partial", "inconclusive" };

	return names[verdict];
}

/*
 * Returns whether there were fewer ticks than the CPU time requires. Few ticks prove little: timers
 * of virtual machines are late.
 */
static bool lacks_ticks(uint64_t attempted, uint64_t expected)
{
	if (expected >= EXPECTED_MANY)
		return attempted * 100 < expected * ATTEMPTED_MIN_PCT;
	return expected >= EXPECTED_SOME && attempted * 2 < expected;
}

static bool has_more_ticks(uint64_t attempted, uint64_t expected)
{
	return expected >= EXPECTED_MANY && attempted * 100 > expected * ATTEMPTED_MAX_PCT;
}

enum verdict ledger_verdict(const struct ledger *all, const struct ledger *during,
			    uint64_t expected, char ret_reason[LEDGER_REASON_BYTES])
{
	bool known = expected != UINT64_MAX;
	uint64_t lost = ledger_lost(all);

	*ret_reason = 0;
	if (lost * 2 > all->attempted) {
		snprintf(ret_reason, LEDGER_REASON_BYTES,
			 "more than half of the samples were lost");
		return VERDICT_INCONCLUSIVE;
	}
	if (known && lacks_ticks(during->attempted, expected)) {
		snprintf(ret_reason, LEDGER_REASON_BYTES,
			 "%" PRIu64
			 " ticks came in the phase during, and its CPU time needs %" PRIu64
			 ": the stacks do not show the rest of it",
			 during->attempted, expected);
		return VERDICT_PARTIAL;
	}
	if (lost) {
		snprintf(ret_reason, LEDGER_REASON_BYTES,
			 "some samples were lost; the ledger names each reason");
		return VERDICT_PARTIAL;
	}
	if (known && has_more_ticks(during->attempted, expected))
		snprintf(ret_reason, LEDGER_REASON_BYTES,
			 "%" PRIu64
			 " ticks came in the phase during, and its CPU time needs %" PRIu64
			 ": weight_ns is too high by the difference",
			 during->attempted, expected);
	return VERDICT_COMPLETE;
}
