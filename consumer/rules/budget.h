/* SPDX-License-Identifier: BSD-2-Clause */
/* budget.h: counts how many milliseconds a rule has captured in the last hour. Main thread only. */
#ifndef TROCAR_CONSUMER_RULES_BUDGET_H
#define TROCAR_CONSUMER_RULES_BUDGET_H

#include <stdint.h>

/* What a rule has captured. Rules of the same name keep it when a new set is applied. */
struct budget {
	uint32_t minute[60]; /* captured ms in each of the last 60 minutes, a ring */
	uint64_t at_minute;  /* number of the newest minute, its place is at % 60 */
};

/* Returns the milliseconds of the hour before `at_ns`, which is now or later. */
uint64_t budget_spent_ms(const struct budget *b, uint64_t at_ns);
void budget_spend(struct budget *b, uint64_t now_ns, uint32_t ms);

/* Returns the part that was spent at `spent_ns` and not used. */
void budget_return(struct budget *b, uint64_t spent_ns, uint32_t ms);

#endif
