/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/session_verdict.h"

static void write_phase(struct jsonw *w, const char *key, const struct ledger *l)
{
	jsonw_object(w, key);
	jsonw_u64(w, "attempted", l->attempted);
	jsonw_u64(w, "emitted", l->emitted);
	jsonw_object_end(w);
}

static void write_account(const struct signal *s, struct jsonw *w)
{
	const struct signal_stacks *taken = s->taken;
	struct ledger all = {};

	ledger_add(&all, &taken->phase[PHASE_BEFORE]);
	ledger_add(&all, &taken->phase[PHASE_DURING]);
	jsonw_object(w, rules_signal_name(s->id));
	jsonw_u64(w, "attempted", all.attempted);
	jsonw_u64(w, "emitted", all.emitted);
	jsonw_object(w, "lost");
	for (int i = 0; i < DROP_COUNT_; i++)
		if (all.lost[i])
			jsonw_u64(w, ledger_drop_name((enum drop)i), all.lost[i]);
	jsonw_object_end(w);
	write_phase(w, "before", &taken->phase[PHASE_BEFORE]);
	write_phase(w, "during", &taken->phase[PHASE_DURING]);
	if (taken->expected != UINT64_MAX) {
		jsonw_u64(w, "expected", taken->expected);
	} else {
		jsonw_null(w, "expected");
		jsonw_string(
			w, "expected_reason",
			"the CPU time of this choice of processes is not counted by the kernel");
	}
	jsonw_u64(w, "stacks", taken->stacks.count);
	jsonw_object_end(w);
}

/* Writes the ledgers of all signals that take stacks; *ret_all is their sum. */
static void write_ledger(const struct session_result *s, struct ledger *ret_all, struct jsonw *w)
{
	jsonw_object(w, "ledger");
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		if (!s->signals[i] || !s->signals[i]->taken)
			continue;
		write_account(s->signals[i], w);
		ledger_add(ret_all, &s->signals[i]->taken->phase[PHASE_BEFORE]);
		ledger_add(ret_all, &s->signals[i]->taken->phase[PHASE_DURING]);
	}
	jsonw_object_end(w);
}

/*
 * Judges the signals. A signal that the rule names and that did not run makes the session
 * inconclusive, and so do stacks from no CPU at all. A signal that only "auto" chose does not.
 */
static enum verdict judge_signals(const struct session_result *s, const struct ledger *all,
				  const char **ret_reason)
{
	const struct signal *oncpu = s->signals[SIGNAL_ONCPU];
	bool missing = false;
	enum verdict verdict;

	for (int i = 0; i < SIGNAL_COUNT_; i++)
		missing = missing || (s->signals[i] && s->signals[i]->why);
	if (oncpu->why) {
		*ret_reason = oncpu->why;
		return VERDICT_INCONCLUSIVE;
	}
	if (missing && s->rule && !s->rule->signals_auto) {
		*ret_reason = "the rule names signals that did not run; session.start says why";
		return VERDICT_INCONCLUSIVE;
	}
	verdict = ledger_verdict(all, &oncpu->taken->phase[PHASE_DURING], oncpu->taken->expected,
				 ret_reason);
	if (verdict == VERDICT_COMPLETE && oncpu->partly) {
		*ret_reason = oncpu->partly;
		return VERDICT_PARTIAL;
	}
	if (verdict == VERDICT_COMPLETE && s->pre_limit == PRE_EVICTED) {
		*ret_reason = "the recorder's memory held less than the pre-roll that was asked "
			      "for (--recorder-kib); pre_ms says how much";
		return VERDICT_PARTIAL;
	}
	return verdict;
}

static void write_signals(const struct session_result *s, struct jsonw *w)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (s->signals[i] && s->signals[i]->kind && s->signals[i]->kind->write)
			s->signals[i]->kind->write(s->signals[i], w);
}

void session_verdict_write(const struct session_result *s, struct jsonw *w)
{
	struct ledger all = {};
	enum verdict verdict;
	const char *why;

	write_ledger(s, &all, w);
	verdict = judge_signals(s, &all, &why);
	jsonw_string(w, "verdict", ledger_verdict_name(verdict));
	if (why)
		jsonw_string(w, "verdict_reason", why);
	write_signals(s, w);
	jsonw_milli(w, "lost_share",
		    all.attempted ? (int64_t)(ledger_lost(&all) * 1000 / all.attempted) : 0);
}
