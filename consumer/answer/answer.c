/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/answer.h"

#include "consumer/signals/thresholds.h"
#include "shared/json/jsonw.h"

/* Findings that explain less do not answer why a service stalled. */
#define EXPLAINED_LEAST_PCT 50

static bool is_symptom(const struct trigger_reason *reason)
{
	return trigger_reason_is_stall(reason) || reason->kind == TRIGGER_OOM_KILL;
}

/* Whether the threads waited so long that it would be a finding if its cause were known. */
static bool is_waiting(const struct findings *found)
{
	return found->time_ns[FINDINGS_WAITING] * 100 >=
	       found->time_ns[FINDINGS_SESSION] * THRESHOLD_WAITED_PCT;
}

static enum answer_level level_of(const struct findings *found, unsigned int explained_pct,
				  const struct trigger_reason *reason, bool seen)
{
	const struct finding *first = found && found->count ? &found->items[0] : NULL;
	const char *proof;

	if (!first)
		return is_symptom(reason) || !found || !seen || is_waiting(found) ? ANSWER_NOT_KNOWN
										  : ANSWER_NOTHING;
	if (!first->is_root && explained_pct < EXPLAINED_LEAST_PCT)
		return ANSWER_NOT_KNOWN;
	return findings_level_of(first, &proof) == FINDINGS_CERTAIN ? ANSWER_CERTAIN
								    : ANSWER_LIKELY;
}

struct answer answer_of(const struct findings *found, const struct trigger_reason *reason,
			uint64_t calm_ms, bool seen)
{
	struct answer a = { .calm_ms = calm_ms };

	a.explained_pct = found && found->count ? findings_explained_pct(found) : 0;
	a.level = level_of(found, a.explained_pct, reason, seen);
	return a;
}

void answer_write(const struct answer *a, struct jsonw *w)
{
	static const char *const levels[] = {
		[ANSWER_CERTAIN] = "certain",
		[ANSWER_LIKELY] = "likely",
		[ANSWER_NOT_KNOWN] = "not_known",
		[ANSWER_NOTHING] = "nothing_unusual",
	};

	jsonw_object(w, "answer");
	jsonw_string(w, "level", levels[a->level]);
	jsonw_u64(w, "explained_pct", a->explained_pct);
	jsonw_string(w, "baseline", a->calm_ms ? "before" : "none");
	if (a->calm_ms)
		jsonw_u64(w, "baseline_ms", a->calm_ms);
	jsonw_object_end(w);
}
