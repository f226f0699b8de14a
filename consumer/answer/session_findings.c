/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/session_findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/answer/chain_links.h"
#include "consumer/answer/find_changed.h"
#include "consumer/answer/find_deadlock.h"
#include "consumer/answer/find_disks.h"
#include "consumer/answer/find_facts.h"
#include "consumer/answer/find_locks.h"
#include "consumer/answer/find_memory.h"
#include "consumer/answer/find_pools.h"
#include "consumer/answer/find_sockets.h"
#include "consumer/answer/follow_peers.h"
#include "consumer/answer/session_facts.h"
#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/evidence/sockets/session_sockets.h"
#include "consumer/evidence/time/queue_waits.h"
#include "consumer/evidence/waits/look_coverage.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "consumer/signals/thresholds.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static uint64_t share_pct(uint64_t part_ns, uint64_t of_ns)
{
	return of_ns ? part_ns * 100 / of_ns : 0;
}

/*
 * Whether threads wait often and briefly on the row's lock: pools of a runtime without condition
 * variables hand over their work this way.
 */
static bool is_short(const struct findings_search *s, const struct session_wait *row)
{
	const struct lock_waits *locks = lock_waits_of(s->session->signals);

	for (size_t i = 0; locks && row->on && row->on->address && i < locks->count; i++) {
		const struct lock_waited *l = &locks->items[i];

		if (l->lock.tgid && l->lock.address == row->on->address)
			return l->total_ns <= l->waits * THRESHOLD_SHORT_WAIT_MS * NSEC_PER_MSEC;
	}
	return false;
}

/*
 * Whether a question has had no answer since before the trigger. One from before the pre-roll may
 * be a question that waits for an event, which a service without a fault has too. Pressure is about
 * another resource: then a thread in recv(2) may be a worker that asks a queue for its next job.
 */
static bool is_owed(const struct findings_search *s, const struct session_wait *row)
{
	uint64_t length_ns = s->session->stop_ns - s->session->start_ns;
	uint64_t recorded_ns = s->session->pre_ms * NSEC_PER_MSEC + length_ns;

	if (row->on && !wait_objects_is_asked(row->on) &&
	    s->session->reason.kind == TRIGGER_PRESSURE)
		return false;
	return row->on && wait_objects_is_unanswered(row->on) && row->on->longest_ns >= length_ns &&
	       row->on->longest_ns < recorded_ns;
}

/* Whether waits for children have no baseline: then only the activity of the children counts. */
static bool is_by_structure(const struct findings_search *s)
{
	return !trigger_reason_is_stall(&s->session->reason) && !s->summary->waits.calm_ms;
}

/*
 * Returns how much longer than in the baseline threads waited in places of this state: only the
 * change distinguishes a wait from a lack of work. Without a baseline it returns all of the time.
 */
static uint64_t grown_ns(const struct findings_search *s, uint8_t state)
{
	const struct session_waits *waits = &s->summary->waits;
	bool asked = !trigger_reason_is_stall(&s->session->reason);
	/* A request is late: the time before it is no baseline. */
	bool late = asked && (state == ACCOUNT_LOCK || state == ACCOUNT_SOCKET);
	const struct wait_place *place;
	uint64_t ns = 0;

	if (state == ACCOUNT_CHILD && is_by_structure(s))
		return follow_peers_child(s, &place);
	for (size_t i = 0; i < waits->count; i++) {
		const struct session_wait *row = &waits->rows[i];

		if (row->state == state && !row->idle && !row->condition)
			ns += (late && !is_short(s, row)) || is_owed(s, row) ||
					      (asked && row->on && wait_objects_is_held_up(row->on))
				      ? row->weight_ns
				      : row->weight_ns - MIN(row->weight_ns, row->calm_ns);
	}
	return ns;
}

/* Returns the exact time of a part or, without accounts, the time by off-CPU samples. */
static uint64_t time_of(const struct findings_search *s, enum account_part part)
{
	const struct thread_pools *accounts = findings_search_accounts(s->session);

	if (accounts)
		return accounts->all.part_ns[part];
	return part == ACCOUNT_RUNNING ? s->summary->weight_ns[PHASE_DURING]
				       : s->summary->waits.state_ns[part];
}

/* Sets the parts that count as waiting. */
static void sum_waiting(struct findings_search *s)
{
	static const enum account_part sure[] = { ACCOUNT_QUEUE, ACCOUNT_IO, ACCOUNT_MEMORY,
						  ACCOUNT_FAULT };
	static const enum account_part halts[] = { ACCOUNT_STOPPED, ACCOUNT_TRACED,
						   ACCOUNT_FROZEN };
	static const enum account_part unsure[] = { ACCOUNT_LOCK, ACCOUNT_PIPE, ACCOUNT_SOCKET,
						    ACCOUNT_CHILD };
	uint64_t contended = find_locks_contended_ns(s->session);
	uint64_t length_ns = s->session->stop_ns - s->session->start_ns;

	for (size_t i = 0; i < ARRAY_SIZE(sure); i++)
		s->part_ns[sure[i]] = time_of(s, sure[i]);
	/*
	 * The freezer of v1 wakes no sleeper: the accounts keep the earlier wait of such a thread.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(halts); i++)
		s->part_ns[halts[i]] =
			MAX(time_of(s, halts[i]), s->summary->waits.state_ns[halts[i]]);
	for (size_t i = 0; i < ARRAY_SIZE(unsure); i++) {
		uint64_t ns = grown_ns(s, (uint8_t)unsure[i]);

		s->part_ns[unsure[i]] = ns * 100 < length_ns * THRESHOLD_UNSURE_PCT ? 0 : ns;
	}
	s->part_ns[ACCOUNT_LOCK] = MAX(s->part_ns[ACCOUNT_LOCK], contended);
	s->part_ns[ACCOUNT_LOCK] = MAX(s->part_ns[ACCOUNT_LOCK], find_deadlock_ns(s->session));
	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		s->found.time_ns[FINDINGS_WAITING] += s->part_ns[i];
	s->found.time_ns[FINDINGS_WAITING] += find_changed_ns(s);
	s->found.time_ns[FINDINGS_RUNNING] = time_of(s, ACCOUNT_RUNNING);
}

/* ---- waits for a CPU; each returns its part of `left_ns` */

/*
 * Adds a finding of `ns` of the direct waits for a CPU, with its part of the waits for threads that
 * waited for a CPU.
 */
static void add_queue(struct findings_search *s, enum finding_cause cause, uint64_t ns,
		      const char *says, const struct finding_evidence *evidence)
{
	uint64_t passed_ns = s->passed_ns[ACCOUNT_QUEUE];
	uint64_t own_ns = s->part_ns[ACCOUNT_QUEUE] - passed_ns, more_ns = 0;
	char text[FINDINGS_SAYS_BYTES];
	int n = snprintf(text, sizeof(text), "%s", says);

	if (own_ns)
		more_ns = (uint64_t)((double)passed_ns * (double)ns / (double)own_ns);
	if (more_ns >= 100 * NSEC_PER_MSEC && n > 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n,
			 "; others waited %.1f s for locks and threads that waited so",
			 findings_search_seconds(more_ns));
	findings_search_add(s, cause, ns + more_ns, text, evidence);
}

/*
 * Returns the nice value at which the threads waited most for a CPU, if half of these waits were at
 * positive ones; else 0.
 */
static int find_nice(const struct findings_search *s)
{
	const struct look_coverage *looks = look_coverage_of(s->session->signals);
	uint64_t all_ns = 0, niced_ns = 0, most_ns = 0;
	int nice = 0;

	for (int i = 0; looks && i < LOOK_NICES; i++) {
		all_ns += looks->queue_ns[i];
		if (i <= -LOOK_NICE_LEAST)
			continue;
		niced_ns += looks->queue_ns[i];
		if (looks->queue_ns[i] > most_ns) {
			most_ns = looks->queue_ns[i];
			nice = i + LOOK_NICE_LEAST;
		}
	}
	return niced_ns * 2 >= all_ns ? nice : 0;
}

/*
 * Adds that other cgroups had the CPUs, and the own nice value where it is positive. Whether it
 * counts depends on the other side's and on the CPU controller, so it is no cause of its own.
 */
static void add_behind_others(struct findings_search *s, uint64_t ns, const char *says,
			      const struct finding_evidence *evidence)
{
	char text[FINDINGS_SAYS_BYTES];
	int nice = find_nice(s);

	snprintf(text, sizeof(text), "%s", says);
	if (nice)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "; its threads run at nice %d, a low priority among the threads of one "
			 "CPU cgroup",
			 nice);
	add_queue(s, FINDING_CPU_NEIGHBOUR, ns, text, evidence);
}

static uint64_t find_quota(struct findings_search *s, uint64_t left_ns)
{
	const struct finding_evidence e = { "facts", NULL, "source", "cpu", 0 };
	const struct facts_phases *facts = s->session->facts;
	char says[CAUSES_TEXT_BYTES];
	uint64_t us = 0;

	if (!facts || !facts_phases_get(facts, FACTS_DURING, FACT_CPU_THROTTLED_TIME, &us) ||
	    !session_facts_say(s->session, CAUSE_ID_cpu_quota, says))
		return 0;
	left_ns = MIN(left_ns, us * NSEC_PER_USEC);
	add_queue(s, FINDING_CPU_QUOTA, left_ns, says, &e);
	return left_ns;
}

static uint64_t find_neighbour(struct findings_search *s, const struct queue_waits *q,
			       uint64_t left_ns)
{
	struct finding_evidence e = { .type = "neighbour", .signal = "runq" };
	const struct queue_blamed *most = q->blame.items;
	uint64_t ns = MIN(left_ns, queue_waits_others_ns(q));
	char says[FINDINGS_SAYS_BYTES], who[NEIGHBOUR_SAYS_BYTES];
	int n = snprintf(says, sizeof(says),
			 "its threads waited %.1f s for CPUs that other cgroups had",
			 findings_search_seconds(ns));

	if (q->blame.count && most->row.path && strlen(most->row.path) < sizeof(e.value)) {
		neighbour_rows_say(&most->row, who);
		snprintf(says + n, sizeof(says) - (size_t)n, ", %s for %.1f s of it", who,
			 findings_search_seconds(most->ns));
		e.key = "neighbour";
		snprintf(e.value, sizeof(e.value), "%s", most->row.path);
	}
	if (q->blame.count)
		add_behind_others(s, ns, says, &e);
	return ns;
}

/* Appends the function with much of the CPU time of the service. */
static void say_busiest(const struct findings_search *s, char says[FINDINGS_SAYS_BYTES])
{
	const struct tally_row *top = session_digest_top(s->summary);
	uint64_t pct = top ? share_pct(top->weight, s->summary->functions.total) : 0;
	size_t n = strlen(says);

	if (top && top->name && !session_digest_is_few(s->summary) && pct >= THRESHOLD_GREW_PCT)
		snprintf(says + n, FINDINGS_SAYS_BYTES - n,
			 "; %" PRIu64 " %% of its CPU time was in %.250s", pct, top->name);
}

/*
 * Threads of this very cgroup had the CPUs. If the session covers only some of its processes, these
 * threads need not be the session's own: the kernel side counts by cgroup.
 */
static void find_demand(struct findings_search *s, const struct queue_waits *q, uint64_t left_ns)
{
	const struct finding_evidence e = { .type = "histogram", .signal = "runq" };
	bool own = !s->session->by_process, alone = !own && q->pools.all.threads == 1;
	char says[FINDINGS_SAYS_BYTES], whose[300] = "its own other threads had";

	left_ns = MIN(left_ns, queue_waits_own_ns(q));
	if (!own)
		snprintf(whose, sizeof(whose), "%s of %.220s had%s",
			 alone ? "other processes" : "threads", s->session->cgroup,
			 alone ? "" : ", its own or those of other processes");
	snprintf(says, sizeof(says), "its threads waited %.1f s for CPUs that %s",
		 findings_search_seconds(left_ns), whose);
	if (own)
		say_busiest(s, says);
	add_queue(s, alone ? FINDING_CPU_NEIGHBOUR : FINDING_CPU_DEMAND, left_ns, says, &e);
}

/* Without the signal runq, uses the ticks of the CPUs. */
static void find_by_ticks(struct findings_search *s, uint64_t left_ns)
{
	const struct finding_evidence e = { .type = "neighbour", .signal = "neighbours" };
	char says[CAUSES_TEXT_BYTES];

	if (!session_facts_say(s->session, CAUSE_ID_neighbour, says))
		return;
	add_behind_others(s, left_ns, says, &e);
	findings_search_level(s, FINDING_CPU_NEIGHBOUR, FINDINGS_LIKELY, FINDINGS_BY_TICKS);
}

static void find_queue(struct findings_search *s)
{
	const struct queue_waits *q = queue_waits_of(s->session->signals);
	uint64_t left_ns = s->part_ns[ACCOUNT_QUEUE] - s->passed_ns[ACCOUNT_QUEUE];

	left_ns -= find_quota(s, left_ns);
	if (!q) {
		find_by_ticks(s, left_ns);
		return;
	}
	left_ns -= find_neighbour(s, q, left_ns);
	find_demand(s, q, left_ns);
}

/* ---- waits for others */

/*
 * Writes how long threads waited for a pipe or child, and where. Returns the awaited object, or
 * NULL.
 */
static const struct look_on *say_behind(const struct findings_search *s, enum account_part part,
					const char *what, char says[FINDINGS_SAYS_BYTES])
{
	const struct session_wait *top = session_waits_top(&s->summary->waits, (uint8_t)part);
	const struct wait_place *place = NULL;
	int n;

	if (part == ACCOUNT_CHILD && is_by_structure(s))
		follow_peers_child(s, &place);
	if (!place) {
		findings_search_say_place(s, part, what, says);
		return top ? top->on : NULL;
	}
	n = snprintf(says, FINDINGS_SAYS_BYTES, "its threads waited %.1f s %s",
		     findings_search_seconds(s->part_ns[part]), what);
	wait_place_say(place, says + n, FINDINGS_SAYS_BYTES - (size_t)n);
	return place->on;
}

/* Waits for data in pipes, and for processes to end. */
static void find_behind(struct findings_search *s)
{
	static const struct {
		enum account_part part;
		uint8_t state;
		const char *what;
	} kinds[] = { { ACCOUNT_PIPE, WAIT_BLOCKED + WAIT_PIPE, "in pipes" },
		      { ACCOUNT_CHILD, WAIT_BLOCKED + WAIT_CHILD, "for other processes to end" } };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct finding_evidence e = findings_search_evidence(s, kinds[i].part);
		enum finding_cause cause = i ? FINDING_PROCESS : FINDING_PIPE;
		char says[FINDINGS_SAYS_BYTES];
		const struct look_on *on = say_behind(s, kinds[i].part, kinds[i].what, says);

		follow_peers_add(s, cause, s->part_ns[kinds[i].part], says, &e,
				 chain_links_find(&s->summary->chains, kinds[i].state, NULL), 1,
				 "; in the meantime ", on);
		if (on && wait_objects_has_process(on))
			findings_search_level(s, cause, FINDINGS_CERTAIN,
					      "the kernel names the other process");
	}
}

/* Writes which process stopped most of the threads in this state, if it is known. */
static void say_stopper(const struct session_waits *waits, enum account_part state, char *text,
			size_t space)
{
	const struct session_wait *most = NULL;

	for (size_t i = 0; i < waits->count; i++)
		if (waits->rows[i].state == state && waits->rows[i].on &&
		    (!most || waits->rows[i].weight_ns > most->weight_ns))
			most = &waits->rows[i];
	if (most)
		wait_objects_say(most->on, text, space);
}

/* Threads halted from outside: no wait of their own holds them up. */
static void find_halts(struct findings_search *s)
{
	static const struct {
		enum account_part part;
		enum finding_cause cause;
		const char *what;
	} halts[] = {
		{ ACCOUNT_STOPPED, FINDING_STOPPED,
		  "stopped by a signal (SIGSTOP or a similar one)" },
		{ ACCOUNT_TRACED, FINDING_TRACED, "stopped by a tracer" },
		{ ACCOUNT_FROZEN, FINDING_FROZEN, "frozen with their cgroup (cgroup.freeze)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(halts); i++) {
		const struct finding_evidence e = findings_search_evidence(s, halts[i].part);
		uint64_t ns = s->part_ns[halts[i].part];
		char says[FINDINGS_SAYS_BYTES];
		int n = snprintf(says, sizeof(says), "its threads were %s for %.1f s",
				 halts[i].what, findings_search_seconds(ns));

		say_stopper(&s->summary->waits, halts[i].part, says + n, sizeof(says) - (size_t)n);
		findings_search_add(s, halts[i].cause, ns, says, &e);
	}
}

/* ---- CPU time */

/*
 * Returns the garbage collection time if it is much of the CPU time, and twice its share in the
 * baseline or most of the time; else 0.
 */
static uint64_t find_garbage(struct findings_search *s)
{
	const struct session_digest *sum = s->summary;
	const struct finding_evidence e = { .type = "stack", .signal = "oncpu" };
	uint64_t ns = garbage_ns(&sum->garbage, PHASE_DURING);
	uint64_t length_ns = s->session->stop_ns - s->session->start_ns;
	uint64_t pct = share_pct(ns, sum->weight_ns[PHASE_DURING]);
	uint64_t calm_pct =
		share_pct(garbage_ns(&sum->garbage, PHASE_BEFORE), sum->weight_ns[PHASE_BEFORE]);
	const char *runtime, *name = garbage_most(&sum->garbage, &runtime);
	char says[FINDINGS_SAYS_BYTES], calm[48] = "";

	if (session_digest_is_few(sum) || ns * 100 < length_ns * THRESHOLD_GREW_PCT ||
	    pct < THRESHOLD_GARBAGE_PCT || (pct < THRESHOLD_MOST_PCT && calm_pct * 2 > pct))
		return 0;
	if (sum->count[PHASE_BEFORE])
		snprintf(calm, sizeof(calm), ", %" PRIu64 " %% in the baseline", calm_pct);
	snprintf(says, sizeof(says),
		 "the garbage collector of %s had %" PRIu64
		 " %% of its CPU time%s, most of it in %s",
		 runtime, pct, calm, name);
	findings_search_add(s, FINDING_GARBAGE, ns, says, &e);
	return ns;
}

/*
 * Whether a share of the CPU time is a finding of a request, whatever it was before: it is not
 * known since when the service has been slow.
 */
static bool is_absolute(const struct findings_search *s, uint64_t pct)
{
	uint64_t ns = s->found.time_ns[FINDINGS_RUNNING] / 100 * pct;

	return s->session->reason.kind == TRIGGER_REQUEST && pct >= THRESHOLD_MOST_PCT &&
	       share_pct(ns, s->found.time_ns[FINDINGS_SESSION]) >= THRESHOLD_MOST_PCT;
}

static void add_function(struct findings_search *s, uint64_t ns, const char *says)
{
	const struct finding_evidence e = { .type = "stack", .signal = "oncpu" };

	if (share_pct(ns, s->found.time_ns[FINDINGS_SESSION]) >= THRESHOLD_GREW_PCT)
		findings_search_add(s, FINDING_FUNCTION, ns, says, &e);
}

/* A function that had most of the CPU time, where none has clearly grown. */
static void find_busiest(struct findings_search *s)
{
	const struct tally_row *top = session_digest_top(s->summary);
	uint64_t pct = top ? share_pct(top->weight, s->summary->functions.total) : 0;
	char says[FINDINGS_SAYS_BYTES];

	if (!top || !top->name || frame_name_is_library(top->detail) || !is_absolute(s, pct))
		return;
	snprintf(says, sizeof(says), "%.250s had %" PRIu64 " %% of its CPU time itself%s",
		 top->name, pct,
		 s->summary->count[PHASE_BEFORE] >= FUNCTION_GROWTH_SAMPLES
			 ? ", without a clear change against the baseline"
			 : "");
	add_function(s, s->found.time_ns[FINDINGS_RUNNING] / 100 * pct, says);
}

static void find_function(struct findings_search *s, uint64_t garbage_ns)
{
	uint64_t ms = (s->session->stop_ns - s->session->start_ns) / NSEC_PER_MSEC;
	uint64_t running_ns = s->found.time_ns[FINDINGS_RUNNING], ns;
	char says[FINDINGS_SAYS_BYTES];
	struct function_grown grown;

	if (session_digest_is_few(s->summary) || garbage_ns * 2 > running_ns)
		return;
	if (!function_growth_find(&s->summary->growth, s->session->pre_ms - s->session->onset_ms,
				  ms, &grown) ||
	    grown.stalled_pct <= grown.calm_pct || grown.by_chance) {
		find_busiest(s);
		return;
	}
	ns = (grown.by_rate ? ms * NSEC_PER_MSEC : running_ns) / 100 *
	     (grown.stalled_pct - grown.calm_pct);
	if (is_absolute(s, grown.share_pct))
		ns = running_ns / 100 * grown.share_pct;
	if (ns <= garbage_ns)
		return;
	snprintf(says, sizeof(says), "%.250s (%.60s) had %u %% of %s, %u %% in the baseline",
		 grown.fn, grown.comm, grown.stalled_pct, grown.by_rate ? "a CPU" : "its CPU time",
		 grown.calm_pct);
	add_function(s, ns, says);
}

/*
 * Makes running code the root if nothing else explains more than it does together with the waits
 * `behind` it.
 */
static void make_root(struct findings_search *s, struct finding *running,
		      const enum finding_cause *behind, size_t n)
{
	uint64_t ns = 0, others_ns = 0;

	for (size_t i = 0; i < s->found.count; i++) {
		const struct finding *f = &s->found.items[i];
		bool is_behind = f == running;

		for (size_t k = 0; k < n; k++)
			is_behind = is_behind || f->cause == behind[k];
		if (is_behind)
			ns += f->ns;
		else
			others_ns = MAX(others_ns, f->ns);
	}
	running->is_root = ns > others_ns;
}

/*
 * A collector that has most of the CPU time makes threads wait for CPUs and for the locks of its
 * own threads. A function that has most of a CPU keeps its thread from queues that it should empty.
 */
static void find_running_root(struct findings_search *s)
{
	static const enum finding_cause of_garbage[] = { FINDING_CPU_DEMAND, FINDING_LOCK_CONVOY,
							 FINDING_LOCK_HERD, FINDING_CHANGED_WAIT };
	static const enum finding_cause of_function[] = { FINDING_ACCEPT_QUEUE,
							  FINDING_SLOW_READER };
	struct finding *garbage = findings_get(&s->found, FINDING_GARBAGE);
	struct finding *function = findings_get(&s->found, FINDING_FUNCTION);

	if (garbage &&
	    share_pct(garbage->ns, s->summary->weight_ns[PHASE_DURING]) >= THRESHOLD_MOST_PCT)
		make_root(s, garbage, of_garbage, ARRAY_SIZE(of_garbage));
	if (function &&
	    (findings_get(&s->found, FINDING_ACCEPT_QUEUE) ||
	     findings_get(&s->found, FINDING_SLOW_READER)) &&
	    share_pct(function->ns, s->found.time_ns[FINDINGS_SESSION]) >= THRESHOLD_MOST_PCT)
		make_root(s, function, of_function, ARRAY_SIZE(of_function));
}

/* Attributes waits for other threads to the waits of those threads, link by link. */
static void pass_waits(struct findings_search *s)
{
	static const enum account_part parts[] = { ACCOUNT_PIPE, ACCOUNT_SOCKET, ACCOUNT_CHILD };

	find_locks_pass(s);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		findings_search_pass(s, parts[i], s->part_ns[parts[i]], NULL);
}

/* Returns whether the cgroup was still at its limit of processes at the end. */
static bool is_at_pids_limit(const struct facts_phases *facts)
{
	enum facts_since since;
	uint64_t limit, count;

	limit = facts_phases_limit(facts, FACT_PIDS_MAX, &since);
	return limit != FACTS_NO_LIMIT &&
	       facts_phases_get(facts, FACTS_DURING, FACT_PIDS_CURRENT, &count) && count >= limit;
}

/*
 * A fork that fails makes no thread wait: the state lasts for the session where the limit was
 * reached and still is.
 */
static void find_pids(struct findings_search *s)
{
	const struct finding_evidence e = { "facts", NULL, "source", "pids", 0 };
	char says[CAUSES_TEXT_BYTES];

	if (session_facts_say(s->session, CAUSE_ID_pids_limit, says) &&
	    is_at_pids_limit(s->session->facts))
		findings_search_add(s, FINDING_PIDS_LIMIT, s->found.time_ns[FINDINGS_SESSION], says,
				    &e);
}

/* Searches for all causes. */
static void find_all(struct findings_search *s)
{
	uint64_t length_ns = s->session->stop_ns - s->session->start_ns;

	sum_waiting(s);
	find_disks_errors(s);
	if (s->found.time_ns[FINDINGS_WAITING] * 100 >= length_ns * THRESHOLD_WAITED_PCT) {
		pass_waits(s);
		find_queue(s);
		find_deadlock(s);
		find_locks(s);
		find_memory(s);
		find_disks(s);
		find_sockets_peer(s);
		find_behind(s);
		find_halts(s);
		find_changed(s);
	}
	find_function(s, find_garbage(s));
	find_pools_starved(s);
	find_sockets_clients(s);
	find_pids(s);
	find_running_root(s);
}

struct findings *session_findings_find(const struct session_result *session,
				       const struct session_digest *summary,
				       const struct lock_release *releases,
				       const struct lock_name *names, bool *ret_unknown)
{
	const struct signal *waiting = signals_of_stacks(session->signals, STACKS_WAITING);
	bool knows = waiting && !waiting->off_reason;
	struct findings_search s = {
		.session = session, .summary = summary, .releases = releases, .names = names
	};
	bool measured = knows || findings_search_accounts(session) ||
			lock_waits_of(session->signals) || socket_peers_of(session->signals);
	struct findings *found;

	s.found.time_ns[FINDINGS_SESSION] = session->stop_ns - session->start_ns;
	if (measured)
		find_all(&s);
	find_facts(&s, measured);
	*ret_unknown = !measured && !s.found.count;
	found = *ret_unknown ? NULL : malloc(sizeof(*found));
	if (!found)
		return NULL;
	*found = s.found;
	findings_sort(found);
	return found;
}

void session_findings_write(const struct findings *found, bool unknown, struct jsonw *w)
{
	if (found)
		findings_write(found, w);
	else
		jsonw_string(w, "findings_reason",
			     unknown ? "no signal of the session measured how long its threads "
				       "waited"
				     : "there was no memory for them");
}
