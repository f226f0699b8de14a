/* SPDX-License-Identifier: BSD-2-Clause */
/* budget.h: how many milliseconds of an hour a rule has captured. Main thread only. */
#ifndef TROCAR_CONSUMER_RULES_BUDGET_H
#define TROCAR_CONSUMER_RULES_BUDGET_H

#include <stdint.h>

/* What a rule has spent; kept across sets for rules of the same name. */
struct budget {
	uint32_t minute[60]; /* captured ms in each of the last 60 minutes, a ring */
	uint64_t at_minute;  /* which minute minute[at % 60] is */
};

/* Captured milliseconds within the last hour. */
uint64_t budget_spent_ms(struct budget *b, uint64_t now_ns);
void budget_spend(struct budget *b, uint64_t now_ns, uint32_t ms);

#endif
