/* SPDX-License-Identifier: BSD-2-Clause */
/* facts_testing.h: readings that a test makes up. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_FACTS_FACTS_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_FACTS_FACTS_TESTING_H

#include <string.h>

#include "consumer/facts/facts_phases.h"
#include "shared/tools/macro.h"

static inline void facts_testing_set(struct facts *f, enum fact fact, uint64_t value)
{
	f->value[fact] = value;
	f->has |= 1ULL << fact;
}

/* Adds the content of a file as if it had been read `ms` after the begin. */
static inline void facts_testing_read(struct facts_phases *p, enum facts_moment moment, uint64_t ms,
				      enum facts_file file, const char *text)
{
	p->has[moment] = true;
	p->at[moment].time_ns = ms * NSEC_PER_MSEC;
	facts_parse(&p->at[moment], file, text, strlen(text));
}

#endif
