/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_changed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	uint64_t length_ns = waits->during_ms * NSEC_PER_MSEC;

	if (!is_harmless(row) || row->calm_ns * NEW_PART > row->weight_ns ||
	    row->weight_ns * 100 < length_ns * THRESHOLD_UNSURE_PCT)
		return false;
	/* A request may be about a service that is well: work may have ended. */
	if (row->idle && row->state != ACCOUNT_SLEEP &&
	    !trigger_reason_is_stall(&s->session->reason))
		return false;
	return waits->calm_ms && waits->calm_passes * row->weight_ns >= EXPECTED_LEAST * length_ns;
}

/* The new places together. */
struct new_places {
	const struct session_wait *most; /* the one with the most time; NULL: none */
	uint64_t ns;
	size_t count;
};

static struct new_places sum_new(const struct findings_search *s)
{
	const struct session_waits *waits = &s->summary->waits;
	struct new_places sum = {};

	for (size_t i = 0; i < waits->count; i++) {
		const struct session_wait *row = &waits->rows[i];

		if (!is_new(s, row))
			continue;
		sum.ns += row->weight_ns;
		sum.count++;
		if (!sum.most || row->weight_ns > sum.most->weight_ns)
			sum.most = row;
	}
	return sum;
}

uint64_t find_changed_ns(const struct findings_search *s)
{
	return sum_new(s).ns;
}

/* Words for the wait: "slept for 18000 ms", ... */
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
	const struct new_places sum = sum_new(s);
	const struct session_wait *row = sum.most;
	char says[FINDINGS_SAYS_BYTES], wait[80], others[96] = "";
	int n;

	if (!row)
		return;
	say_wait(row, wait, sizeof(wait));
	n = snprintf(says, sizeof(says), "%" PRIu64 " of its threads %s in ", row->threads, wait);
	n += session_waits_say_place(row, says + n, sizeof(says) - (size_t)n);
	if (sum.count > 1)
		snprintf(others, sizeof(others), ", and in %zu more such places %.1f s",
			 sum.count - 1, findings_search_seconds(sum.ns - row->weight_ns));
	if ((size_t)n < sizeof(says))
		snprintf(says + n, sizeof(says) - (size_t)n,
			 ", where the baseline has %s of their time%s; what they wait for is not "
			 "known",
			 row->calm_ns ? "at most a tenth" : "none", others);
	snprintf(e.value, sizeof(e.value), "%s", wait_kind_name(row->state));
	findings_search_add(s, FINDING_CHANGED_WAIT, sum.ns, says, &e);
}
