/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_changed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "consumer/sampling/looks.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/signals/thresholds.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A place with at most this part of its time in the baseline is a new one. */
#define NEW_PART 10

/*
 * The recorder's passes would have found so many threads in the place if it were not new: so few
 * that found none may be chance.
 */
#define EXPECTED_LEAST 4

/*
 * Sleep, condition variables, waits for work, and waits of no known kind: a service without a fault
 * has them too.
 */
static bool is_harmless(const struct session_wait *row)
{
	return row->idle || row->condition || row->state == ACCOUNT_SLEEP ||
	       row->state == ACCOUNT_OTHER;
}

static bool is_new(const struct findings_search *s, const struct session_wait *row)
{
	const struct session_waits *waits = &s->summary->waits;
	uint64_t passes = waits->calm_ms / (LOOKS_RECORD_EVERY_NS / NSEC_PER_MSEC);
	uint64_t length_ns = waits->during_ms * NSEC_PER_MSEC;

	if (!is_harmless(row) || row->calm_ns * NEW_PART > row->weight_ns ||
	    row->weight_ns * 100 < length_ns * THRESHOLD_UNSURE_PCT)
		return false;
	/* Who asks gets an answer about a service that may be well: work may have ended. */
	if (row->idle && row->state != ACCOUNT_SLEEP &&
	    !trigger_reason_is_stall(&s->session->reason))
		return false;
	return passes * row->weight_ns >= EXPECTED_LEAST * length_ns;
}

/* Sums the new places; *ret_most is the one with the most time, NULL: none. */
static uint64_t sum_new(const struct findings_search *s, const struct session_wait **ret_most)
{
	const struct session_waits *waits = &s->summary->waits;
	uint64_t ns = 0;

	*ret_most = NULL;
	for (size_t i = 0; i < waits->count; i++) {
		const struct session_wait *row = &waits->rows[i];

		if (!is_new(s, row))
			continue;
		ns += row->weight_ns;
		if (!*ret_most || row->weight_ns > (*ret_most)->weight_ns)
			*ret_most = row;
	}
	return ns;
}

uint64_t find_changed_ns(const struct findings_search *s)
{
	const struct session_wait *most;

	return sum_new(s, &most);
}

/* Words for the wait: "slept 18.0 s", ... */
static void say_wait(const struct session_wait *row, char *text, size_t space)
{
	uint64_t ms = row->weight_ns / NSEC_PER_MSEC;

	if (row->state == ACCOUNT_SLEEP)
		snprintf(text, space, "slept for %" PRIu64 " ms", ms);
	else if (row->condition)
		snprintf(text, space, "waited %" PRIu64 " ms for a lock or another thread", ms);
	else if (row->state == ACCOUNT_OTHER)
		snprintf(text, space, "waited %" PRIu64 " ms for something else", ms);
	else
		snprintf(text, space, "waited %" PRIu64 " ms for an answer or for work", ms);
}

void find_changed(struct findings_search *s)
{
	struct finding_evidence e = { .type = "stack", .signal = "offcpu", .key = "wait" };
	const struct session_wait *row;
	uint64_t ns = sum_new(s, &row);
	char says[FINDINGS_SAYS_BYTES], wait[80];
	int n;

	if (!row)
		return;
	say_wait(row, wait, sizeof(wait));
	n = snprintf(says, sizeof(says), "%" PRIu64 " of its threads %s in ", row->threads, wait);
	n += session_waits_say_place(row, says + n, sizeof(says) - (size_t)n);
	if ((size_t)n < sizeof(says))
		snprintf(says + n, sizeof(says) - (size_t)n,
			 ", where %s not wait in the baseline; whom for is not known",
			 row->threads == 1 ? "it did" : "they did");
	snprintf(e.value, sizeof(e.value), "%s", wait_kind_name(row->state));
	findings_search_add(s, FINDING_CHANGED_WAIT, ns, says, &e);
}
