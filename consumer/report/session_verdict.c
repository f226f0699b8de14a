/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/session_verdict.h"

#include <inttypes.h>
#include <stdio.h>

#include "consumer/answer/session_facts.h"
#include "consumer/evidence/time/queue_waits.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/* Evidence that covers less than this percentage of the stalled time does not explain the stall. */
#define EXPLAINED_MIN_PCT 25

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

	for (int i = 0; i < PHASE_COUNT_; i++)
		ledger_add(&all, &taken->phase[i]);
	jsonw_object(w, rules_signal_name(s->id));
	ledger_write(&all, w);
	for (int i = 0; i < PHASE_COUNT_; i++)
		write_phase(w, stack_table_phase((enum phase)i), &taken->phase[i]);
	if (taken->expected != UINT64_MAX) {
		jsonw_u64(w, "expected", taken->expected);
	} else {
		jsonw_null(w, "expected");
		jsonw_string(w, "expected_reason", taken->expected_why);
	}
	if (taken->left_out) {
		jsonw_object(w, "left_out");
		jsonw_u64(w, "budget", taken->left_out);
		jsonw_object_end(w);
	}
	jsonw_u64(w, "stacks", taken->stacks.count);
	if (taken->nameless)
		jsonw_u64(w, "nameless", taken->nameless);
	jsonw_object_end(w);
}

/* Writes how many threads or waits the session should have recorded, and how many it recorded. */
static void write_counted(const struct signal *s, struct jsonw *w)
{
	jsonw_object(w, rules_signal_name(s->id));
	ledger_write(s->counted, w);
	jsonw_object_end(w);
}

/* Lets the signal kind write its ledger. Returns whether it did. */
static bool write_own(const struct signal *s, struct jsonw *w)
{
	if (!s->kind || !s->kind->write_ledger || !s->evidence)
		return false;
	jsonw_object(w, rules_signal_name(s->id));
	s->kind->write_ledger(s, w);
	jsonw_object_end(w);
	return true;
}

/* Writes the ledgers of all signals; *ret_all is the sum over the signals that take stacks. */
static void write_ledger(const struct session_result *s, struct ledger *ret_all, struct jsonw *w)
{
	jsonw_object(w, "ledger");
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		const struct signal *signal = s->signals[i];

		if (signal && signal->counted)
			write_counted(signal, w);
		if (!signal || write_own(signal, w) || !signal->taken)
			continue;
		write_account(signal, w);
		for (int p = 0; p < PHASE_COUNT_; p++)
			ledger_add(ret_all, &signal->taken->phase[p]);
	}
	jsonw_object_end(w);
}

/* Returns the verdict and its sentence. */
static enum verdict say_why(char reason[LEDGER_REASON_BYTES], enum verdict verdict,
			    const char *sentence)
{
	snprintf(reason, LEDGER_REASON_BYTES, "%s", sentence);
	return verdict;
}

/*
 * Returns the time that threads waited for the stalled resource in onset and during. Waits for a
 * CPU in during come from the time accounts, which are exact, if there are any. Accounts that began
 * late cover only the end of during: then the time by off-CPU samples counts if it is longer.
 */
static uint64_t find_waited_ns(const struct session_result *s, const struct session_digest *summary)
{
	const struct queue_waits *queue = queue_waits_of(s->signals);
	enum resource resource = s->reason.when.resource;
	uint64_t looked_ns, exact_ns;

	if (resource != RESOURCE_CPU || !queue)
		return session_waits_of(&summary->waits, resource);
	looked_ns = summary->waits.state_ns[WAIT_FOR_CPU];
	exact_ns = queue->pools.all.part_ns[ACCOUNT_QUEUE];
	if (queue->pools.late_ns)
		exact_ns = MAX(exact_ns, looked_ns);
	return session_waits_of(&summary->waits, resource) - looked_ns + exact_ns;
}

/*
 * Returns the time of onset and during that the evidence covers: the CPU time of the stacks, and
 * the waits for the stalled resource.
 */
static uint64_t find_covered_ms(const struct session_result *s,
				const struct session_digest *summary)
{
	uint64_t ns = summary->weight_ns[PHASE_ONSET] + summary->weight_ns[PHASE_DURING];

	if (s->reason.kind == TRIGGER_PRESSURE)
		ns += find_waited_ns(s, summary);
	return ns / NSEC_PER_MSEC;
}

/* Writes which counted items of the signal did not fit into its table. */
static void say_full(const struct signal *s, char reason[LEDGER_REASON_BYTES])
{
	const struct ledger *l = s->counted;

	if (ledger_say_unrecorded(l, s->kind->counts, reason))
		return;
	if (l->lost[DROP_THREADS_FULL])
		snprintf(reason, LEDGER_REASON_BYTES,
			 "%" PRIu64 " of %" PRIu64
			 " %s have no time account: the table of threads was full "
			 "(trocar-loader load --threads)",
			 l->lost[DROP_THREADS_FULL], l->attempted, s->kind->counts);
	else
		snprintf(reason, LEDGER_REASON_BYTES,
			 "%" PRIu64 " of %" PRIu64 " %s did not fit into the %s",
			 ledger_lost_to_full(l), l->attempted, s->kind->counts, s->kind->table);
}

/*
 * Whether evidence is missing because a table of the kernel side was full, or a signal kind lacks
 * some; if so, writes the reason. The last such signal provides the sentence: threads without an
 * account precede the items counted for them.
 */
static bool is_evidence_missing(const struct session_result *s, char reason[LEDGER_REASON_BYTES])
{
	for (int i = SIGNAL_COUNT_; i-- > 0;)
		if (s->signals[i] && s->signals[i]->counted && s->signals[i]->kind &&
		    ledger_lost(s->signals[i]->counted)) {
			say_full(s->signals[i], reason);
			return true;
		}
	for (int i = SIGNAL_COUNT_; i-- > 0;)
		if (s->signals[i] && s->signals[i]->kind && s->signals[i]->kind->lacks &&
		    s->signals[i]->kind->lacks(s->signals[i], reason))
			return true;
	return false;
}

/* A smaller part of the session's time than this is ignored. */
#define FEW_PCT 5

/*
 * Whether more than half of the stacks of one signal are broken; if so, writes the reason. A
 * program that ran nearly all the time has a few waits with stacks that mean little for the
 * session.
 */
static bool are_stacks_broken(const struct session_result *s, const struct session_digest *summary,
			      char reason[LEDGER_REASON_BYTES])
{
	const struct signal *running = signals_of_stacks(s->signals, STACKS_RUNNING);
	uint64_t few_ns = (s->stop_ns - s->start_ns) / 100 * FEW_PCT;

	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		uint64_t broken = summary->samples[i][QUALITY_BROKEN],
			 all = session_digest_samples(summary, (enum signal_bit)i);

		if (broken * 2 <= all ||
		    (s->signals[i] != running && summary->stood_ns[i] < few_ns))
			continue;
		snprintf(reason, LEDGER_REASON_BYTES,
			 "%" PRIu64 " of %" PRIu64 " samples of the signal %s have a broken stack, "
			 "whose outer callers are missing: see stack_quality and advice",
			 broken, all, rules_signal_name((enum signal_bit)i));
		return true;
	}
	return false;
}

/* Returns complete, or partial if a ledger without losses still does not cover the session. */
static enum verdict judge_coverage(const struct session_result *s,
				   const struct session_digest *summary,
				   char reason[LEDGER_REASON_BYTES])
{
	const struct signal *oncpu = signals_of_stacks(s->signals, STACKS_RUNNING);
	uint64_t stalled_ms = session_facts_stalled_ms(s), covered_ms = find_covered_ms(s, summary);

	if (oncpu->partial_reason)
		return say_why(reason, VERDICT_PARTIAL, oncpu->partial_reason);
	if (s->left_out) {
		snprintf(reason, LEDGER_REASON_BYTES,
			 "%" PRIu32
			 " cgroups below this one were not sampled: see the line watches_full",
			 s->left_out);
		return VERDICT_PARTIAL;
	}
	if (is_evidence_missing(s, reason))
		return VERDICT_PARTIAL;
	if (s->pre_limit == PRE_EVICTED)
		return say_why(reason, VERDICT_PARTIAL,
			       "the recorder's memory held less than the requested pre-roll "
			       "(--recorder-kib): see pre_ms");
	if (covered_ms * 100 < stalled_ms * EXPLAINED_MIN_PCT) {
		snprintf(reason, LEDGER_REASON_BYTES,
			 "the evidence covers %" PRIu64 " ms of %" PRIu64
			 " ms of stalls: most of the waits are not in it",
			 covered_ms, stalled_ms);
		return VERDICT_PARTIAL;
	}
	return are_stacks_broken(s, summary, reason) ? VERDICT_PARTIAL : VERDICT_COMPLETE;
}

/*
 * Judges the signals. The session is inconclusive if a signal named by the rule did not run, or if
 * no CPU delivered stacks. A signal that only "auto" chose may be missing.
 */
static enum verdict judge_signals(const struct session_result *s,
				  const struct session_digest *summary, const struct ledger *all,
				  char reason[LEDGER_REASON_BYTES])
{
	const struct signal *oncpu = signals_of_stacks(s->signals, STACKS_RUNNING);
	bool missing = false;
	enum verdict verdict;

	for (int i = 0; i < SIGNAL_COUNT_; i++)
		missing = missing || (s->signals[i] && s->signals[i]->off_reason);
	if (oncpu->off_reason)
		return say_why(reason, VERDICT_INCONCLUSIVE, oncpu->off_reason);
	if (missing && signals_asked(s->rule, &s->reason))
		return say_why(reason, VERDICT_INCONCLUSIVE,
			       "the rule or the request names signals that did not run: see "
			       "session.start");
	verdict = ledger_verdict(all, &oncpu->taken->phase[PHASE_DURING], oncpu->taken->expected,
				 reason);
	return verdict == VERDICT_COMPLETE ? judge_coverage(s, summary, reason) : verdict;
}

static void write_signals(const struct session_result *s, struct jsonw *w)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (s->signals[i] && s->signals[i]->kind && s->signals[i]->kind->write)
			s->signals[i]->kind->write(s->signals[i], w);
}

static void write_explained(const struct session_result *s, const struct session_digest *summary,
			    struct jsonw *w)
{
	uint64_t stalled_ms = session_facts_stalled_ms(s), covered_ms = find_covered_ms(s, summary);

	if (!stalled_ms)
		return;
	jsonw_u64(w, "stalled_ms", stalled_ms);
	jsonw_milli(w, "explained", (int64_t)(MIN(covered_ms, stalled_ms) * 1000 / stalled_ms));
}

enum verdict session_verdict_write(const struct session_result *s,
				   const struct session_digest *summary, struct jsonw *w)
{
	char reason[LEDGER_REASON_BYTES];
	struct ledger all = {};
	enum verdict verdict;

	write_ledger(s, &all, w);
	verdict = judge_signals(s, summary, &all, reason);
	jsonw_string(w, "quality", ledger_verdict_name(verdict));
	jsonw_string(w, "verdict", ledger_verdict_name(verdict));
	if (reason[0])
		jsonw_string(w, "verdict_reason", reason);
	write_explained(s, summary, w);
	write_signals(s, w);
	jsonw_milli(w, "lost_share",
		    all.attempted ? (int64_t)(ledger_lost(&all) * 1000 / all.attempted) : 0);
	return verdict;
}
