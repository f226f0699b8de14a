/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_changed.h: waits that prove nothing by themselves (sleep, condition variables, waits for
 * work) in places that are new against the baseline. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_CHANGED_H
#define TROCAR_CONSUMER_ANSWER_FIND_CHANGED_H

#include "consumer/answer/findings_search.h"

/* Returns the time of these waits; 0 without a baseline. Call before find_changed. */
uint64_t find_changed_ns(const struct findings_search *s);

/* Adds the finding of these waits. */
void find_changed(struct findings_search *s);

#endif
