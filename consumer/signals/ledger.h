/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ledger.h: computes a session's ledger and verdict from counts, and writes them. Pure.
 *
 * attempted = emitted + the sum of lost holds by construction: ledger_close assigns missing samples
 * to the reasons that the kernel counted, in their order; a rest without a counter is
 * `unaccounted`, which the tests require to be absent.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_LEDGER_H
#define TROCAR_CONSUMER_SIGNALS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct jsonw;

#define LEDGER_REASON_BYTES 256

/* attempted = emitted + the sum of lost. */
struct ledger {
	uint64_t attempted, emitted;
	uint64_t lost[DROP_COUNT_];
};

/* Returns the reason's word in the lines: "ring_full", ... */
const char *ledger_drop_name(enum drop drop);

/*
 * Assigns the missing samples of `l` to the kernel's loss reasons, at most kernel_lost[reason] to
 * each, and subtracts them from kernel_lost. The caller has counted attempted, emitted and the
 * consumer's own losses before. The counts left in kernel_lost belong to others.
 */
void ledger_assign(struct ledger *l, uint64_t kernel_lost[SLOT_LOST_REASONS]);

/* Closes `l`: calls ledger_assign, then counts the remaining missing samples as UNACCOUNTED. */
void ledger_close(struct ledger *l, uint64_t kernel_lost[SLOT_LOST_REASONS]);

/* Returns the sum of all losses. */
uint64_t ledger_lost(const struct ledger *l);

/*
 * Counts `lost` events that did not fit into a table: `no_memory` of them under DROP_NO_MEMORY,
 * because the table was not full, and the others under `full`.
 */
void ledger_lose(struct ledger *l, enum drop full, uint64_t lost, uint64_t no_memory);

/* Returns the number of losses caused by a full table. */
uint64_t ledger_lost_to_full(const struct ledger *l);

/*
 * Writes a sentence on the losses if none of them was caused by a full table. `what` names the
 * counted things, such as "long waits". Returns whether it wrote a sentence.
 */
bool ledger_say_unrecorded(const struct ledger *l, const char *what,
			   char ret_reason[LEDGER_REASON_BYTES]);

/* Writes `attempted`, `emitted` and `lost`. */
void ledger_write(const struct ledger *l, struct jsonw *w);

/* Adds b to a. */
void ledger_add(struct ledger *a, const struct ledger *b);

enum verdict {
	VERDICT_COMPLETE,
	VERDICT_PARTIAL,
	VERDICT_INCONCLUSIVE,
};

const char *ledger_verdict_name(enum verdict verdict);

/*
 * Returns complete: nothing lost and no silent gap; partial: some lost, or a gap; inconclusive:
 * more than half lost. `expected` is the number of ticks that the cgroup's CPU time implies, ~0 if
 * unknown. It is compared with the ticks of `during`: fewer than 85 % of at least 200 ticks, or
 * fewer than half of at least 40 ticks, is a gap. `ret_reason` becomes a sentence, or empty if
 * there is no loss. A complete ledger also has a sentence if more than 115 % of the expected ticks
 * arrived.
 */
enum verdict ledger_verdict(const struct ledger *all, const struct ledger *during,
			    uint64_t expected, char ret_reason[LEDGER_REASON_BYTES]);

#endif
