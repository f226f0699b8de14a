/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.h: the arithmetic of a session's ledger, apart from everything that samples. Pure.
 *
 * attempted = emitted + the sum of lost holds by construction: what is missing is given to the
 * reasons the kernel counted, in their order; what no counter explains is `unaccounted`, which the
 * tests require to be absent.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_LEDGER_H
#define TROCAR_CONSUMER_SIGNALS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/abi.h"

/* attempted = emitted + the sum of lost. */
struct ledger {
	uint64_t attempted, emitted;
	uint64_t lost[DROP_COUNT_];
};

/* "ring_full", ... */
const char *ledger_drop_name(enum drop drop);

/*
 * Closes `l`, of which attempted, emitted and the consumer's own losses (MAP_FULL, HELD) are
 * counted: spreads what is missing over the kernel's reasons, at most `kernel_lost[reason]` each,
 * the rest to `rest`. Counters that exceed what is missing (losses after the session) are cut.
 */
void ledger_close(struct ledger *l, const uint64_t kernel_lost[SLOT_LOST_REASONS], enum drop rest);

/* Sum of all losses. */
uint64_t ledger_lost(const struct ledger *l);

/* a += b. */
void ledger_add(struct ledger *a, const struct ledger *b);

enum verdict {
	VERDICT_COMPLETE,
	VERDICT_PARTIAL,
	VERDICT_INCONCLUSIVE,
};

const char *ledger_verdict_name(enum verdict verdict);

/*
 * complete: nothing lost, and no silent gap; partial: some; inconclusive: more than half.
 * `expected` is the number of ticks the cgroup's CPU time calls for, ~0 when not known; `during` is
 * compared with it. *ret_reason is a sentence or NULL when complete.
 */
enum verdict ledger_verdict(const struct ledger *all, const struct ledger *during,
			    uint64_t expected, const char **ret_reason);

#endif
