/* SPDX-License-Identifier: BSD-2-Clause */
/* budget.h: counts the milliseconds that a rule has captured in the last hour. Main thread only. */
#ifndef TROCAR_CONSUMER_RULES_BUDGET_H
#define TROCAR_CONSUMER_RULES_BUDGET_H

#include <stdint.h>

/* The captured time of a rule. A rule of the same name in a new set keeps it. */
struct budget {
	uint32_t minute[60]; /* captured ms in each of the last 60 minutes, a ring */
	uint64_t at_minute;  /* number of the newest minute, stored at index % 60 */
};

/* Returns the milliseconds of the hour before `at_ns`, which is now or later. */
uint64_t budget_spent_ms(const struct budget *b, uint64_t at_ns);
void budget_spend(struct budget *b, uint64_t now_ns, uint32_t ms);

/* Takes back the part of `ms` that was spent at `spent_ns` and not used. */
void budget_return(struct budget *b, uint64_t spent_ns, uint32_t ms);

#endif
