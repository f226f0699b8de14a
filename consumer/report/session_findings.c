/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/session_findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "consumer/report/findings.h"
#include "consumer/report/session_facts.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/signals/call_names.h"
#include "consumer/signals/call_times.h"
#include "consumer/signals/lock_waits.h"
#include "consumer/signals/queue_waits.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Threads that waited for less than this part of the session did not stall. */
#define WAITED_PART 10

/* A holder that waits for this part of its time for one kind of thing passes that on. */
#define CHAIN_PCT 40

struct search {
	const struct session_result *session;
	const struct summary *summary;
	const struct lock_release *releases;
	const struct lock_name *names;
	uint64_t part_ns[ACCOUNT_PARTS_]; /* that count as waiting; 0: they do not */
	struct findings found;
};

static double in_seconds(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

static void add_finding(struct search *s, enum finding_cause cause, uint64_t ns, const char *says,
			const struct finding_evidence *evidence)
{
	struct finding f = { .cause = cause, .ns = ns, .evidence = *evidence };

	snprintf(f.says, sizeof(f.says), "%s", says);
	findings_add(&s->found, &f);
}

/*
 * Returns how much more than when calm threads waited in places of this state: of what is a wait or
 * the lack of work, only the change tells which. Without a calm time it is all of it.
 */
static uint64_t grown_ns(const struct search *s, uint8_t state)
{
	const struct session_waits *waits = &s->summary->waits;
	/* Who asks does so when it is late: the time before is not calm. */
	bool late = !trigger_reason_is_stall(&s->session->reason) &&
		    (state == ACCOUNT_LOCK || state == ACCOUNT_SOCKET);
	uint64_t ns = 0;

	for (size_t i = 0; i < waits->count; i++) {
		const struct session_wait *row = &waits->rows[i];

		if (row->state == state && !row->idle && !row->condition)
			ns += row->weight_ns - (late ? 0 : MIN(row->weight_ns, row->calm_ns));
	}
	return ns;
}

/* Returns what threads waited for locks with a pattern. */
static uint64_t contended_ns(const struct lock_waits *locks)
{
	uint64_t ns = 0;

	for (size_t i = 0; locks && i < locks->count; i++)
		if (locks->items[i].pattern)
			ns += locks->items[i].total_ns;
	return ns;
}

static const struct lock_waits *locks_of(const struct session_result *s)
{
	return s->signals[SIGNAL_LOCK] ? s->signals[SIGNAL_LOCK]->locks : NULL;
}

/* Returns what threads were and did by their accounts, from any signal that has them; NULL: none.
 */
static const struct thread_pools *accounts_of(const struct session_result *s)
{
	const struct signal *pools = s->signals[SIGNAL_POOLS], *runq = s->signals[SIGNAL_RUNQ];

	if (pools && pools->pools)
		return pools->pools;
	return runq && runq->queue ? &runq->queue->pools : NULL;
}

/* Returns the exact time of a part, or, without accounts, what the looks saw of it. */
static uint64_t time_of(const struct search *s, enum account_part part)
{
	const struct thread_pools *accounts = accounts_of(s->session);

	if (accounts)
		return accounts->all.part_ns[part];
	return part == ACCOUNT_RUNNING ? s->summary->weight_ns[PHASE_DURING]
				       : s->summary->waits.state_ns[part];
}

/* Sets what counts as waiting. */
static void sum_waiting(struct search *s)
{
	static const enum account_part sure[] = { ACCOUNT_QUEUE, ACCOUNT_IO, ACCOUNT_MEMORY,
						  ACCOUNT_FAULT };
	static const enum account_part unsure[] = { ACCOUNT_LOCK, ACCOUNT_PIPE, ACCOUNT_SOCKET,
						    ACCOUNT_CHILD };
	uint64_t contended = contended_ns(locks_of(s->session));

	for (size_t i = 0; i < ARRAY_SIZE(sure); i++)
		s->part_ns[sure[i]] = time_of(s, sure[i]);
	for (size_t i = 0; i < ARRAY_SIZE(unsure); i++)
		s->part_ns[unsure[i]] = grown_ns(s, (uint8_t)unsure[i]);
	s->part_ns[ACCOUNT_LOCK] = MAX(s->part_ns[ACCOUNT_LOCK], contended);
	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		s->found.time_ns[FINDINGS_WAITING] += s->part_ns[i];
	s->found.time_ns[FINDINGS_RUNNING] = time_of(s, ACCOUNT_RUNNING);
}

/* Writes where most of a kind of wait was. Returns the evidence's signal of it. */
static void say_place(const struct search *s, enum account_part part, const char *what, char *says)
{
	int n = snprintf(says, FINDINGS_SAYS_BYTES, "its threads waited %.1f s %s",
			 in_seconds(s->part_ns[part]), what);

	if (n > 0 && n < FINDINGS_SAYS_BYTES)
		session_waits_place(&s->summary->waits, (uint8_t)part, says + n,
				    FINDINGS_SAYS_BYTES - (size_t)n);
}

/* The stacks of threads that waited so, where looks found some; else the pools. */
static struct finding_evidence evidence_of(const struct search *s, enum account_part part)
{
	struct finding_evidence e = { .type = "pool" };
	const char *kind = part >= ACCOUNT_IO ? wait_kind_name((uint8_t)part) : NULL;

	if (!kind || !s->summary->waits.state_ns[part])
		return e;
	e = (struct finding_evidence){ .type = "stack", .signal = "offcpu", .key = "wait" };
	snprintf(e.value, sizeof(e.value), "%s", kind);
	return e;
}

/* ---- waits for a CPU; each returns what it explains of `left_ns` */

static uint64_t find_quota(struct search *s, uint64_t left_ns)
{
	const struct finding_evidence e = { "facts", NULL, "source", "cpu", 0 };
	const struct facts_phases *facts = s->session->facts;
	char says[CAUSES_TEXT_BYTES];
	uint64_t us = 0;

	if (!facts || !facts_phases_get(facts, FACTS_DURING, FACT_CPU_THROTTLED_TIME, &us) ||
	    !session_facts_say(s->session, CAUSE_ID_cpu_quota, says))
		return 0;
	left_ns = MIN(left_ns, us * NSEC_PER_USEC);
	add_finding(s, FINDING_CPU_QUOTA, left_ns, says, &e);
	return left_ns;
}

static uint64_t find_neighbour(struct search *s, const struct queue_waits *q, uint64_t left_ns)
{
	struct finding_evidence e = { .type = "neighbour", .signal = "runq" };
	const struct queue_blamed *most = &q->blame.items[0];
	uint64_t ns = MIN(left_ns, queue_waits_others_ns(q));
	char says[FINDINGS_SAYS_BYTES];
	int n = snprintf(says, sizeof(says),
			 "its threads waited %.1f s for CPUs that other cgroups had",
			 in_seconds(ns));

	if (q->blame.count && most->path && strlen(most->path) < sizeof(e.value)) {
		snprintf(says + n, sizeof(says) - (size_t)n, ", %.250s for %.1f s of it",
			 most->path, in_seconds(most->ns));
		e.key = "neighbour";
		snprintf(e.value, sizeof(e.value), "%s", most->path);
	}
	if (q->blame.count)
		add_finding(s, FINDING_CPU_NEIGHBOUR, ns, says, &e);
	return ns;
}

static void find_demand(struct search *s, const struct queue_waits *q, uint64_t left_ns)
{
	const struct finding_evidence e = { .type = "histogram", .signal = "runq" };
	uint64_t behind_ns = q->pools.all.queue.behind_ns[QUEUE_SIBLINGS] + q->blame.own_ns;
	char says[FINDINGS_SAYS_BYTES];

	left_ns = MIN(left_ns, behind_ns);
	snprintf(says, sizeof(says),
		 "its threads waited %.1f s for CPUs that its own other threads had",
		 in_seconds(left_ns));
	add_finding(s, FINDING_CPU_DEMAND, left_ns, says, &e);
}

/* Without the signal runq: by who ticked on the CPUs. */
static void find_by_ticks(struct search *s, uint64_t left_ns)
{
	const struct finding_evidence e = { .type = "neighbour", .signal = "neighbours" };
	char says[CAUSES_TEXT_BYTES];

	if (session_facts_say(s->session, CAUSE_ID_neighbour, says))
		add_finding(s, FINDING_CPU_NEIGHBOUR, left_ns, says, &e);
}

static void find_queue(struct search *s)
{
	const struct signal *signal = s->session->signals[SIGNAL_RUNQ];
	const struct queue_waits *q = signal ? signal->queue : NULL;
	uint64_t left_ns = s->part_ns[ACCOUNT_QUEUE];

	left_ns -= find_quota(s, left_ns);
	if (!q) {
		find_by_ticks(s, left_ns);
		return;
	}
	left_ns -= find_neighbour(s, q, left_ns);
	find_demand(s, q, left_ns);
}

/* ---- waits for locks */

/* Returns the pool of the thread that had the lock, where it is in the session; NULL. */
static const struct thread_pool *pool_of(const struct search *s, const struct lock_waited *l)
{
	const struct thread_pools *accounts = accounts_of(s->session);
	const struct lock_woken *by = &l->woken[0];
	size_t i;

	if (!accounts || !l->n_wakers || !by->tid || by->tgid != l->lock.tgid ||
	    !thread_pools_find(accounts, by->tgid, l->start_ns, by->comm, &i))
		return NULL;
	return &accounts->items[i];
}

/* Says what the holder itself waited for, where it did so for much of its time. */
static void say_chain(const struct search *s, const struct lock_waited *l, char *says, size_t space)
{
	static const struct {
		enum account_part part;
		const char *words;
	} links[] = {
		{ ACCOUNT_QUEUE, "for a CPU" },
		{ ACCOUNT_IO, "for disks and files" },
		{ ACCOUNT_MEMORY, "for memory" },
		{ ACCOUNT_SLEEP, "asleep for a time that it gave" },
		{ ACCOUNT_SOCKET, "on a socket" },
		{ ACCOUNT_PIPE, "in a pipe" },
		{ ACCOUNT_CHILD, "for a process" },
	};
	const struct thread_pool *p = pool_of(s, l);

	for (size_t i = 0; p && p->wall_ns && i < ARRAY_SIZE(links); i++) {
		uint64_t pct = p->part_ns[links[i].part] * 100 / p->wall_ns;

		if (pct < CHAIN_PCT)
			continue;
		if (p->threads == 1)
			snprintf(says, space, "; meanwhile that thread waited %.1f s (%llu %%) %s",
				 in_seconds(p->part_ns[links[i].part]), (unsigned long long)pct,
				 links[i].words);
		else
			snprintf(says, space,
				 "; meanwhile the %llu threads of its name waited "
				 "%llu %% of their time %s",
				 (unsigned long long)p->threads, (unsigned long long)pct,
				 links[i].words);
		return;
	}
}

/* What a pattern is called: its finding, how the waits were, and what the waker did. */
static const struct {
	enum finding_cause cause;
	const char *waits, *did;
} patterns[] = {
	[LOCK_PATTERN_LONG_HOLD] = { FINDING_LOCK_HELD, "each for long", "had" },
	[LOCK_PATTERN_CONVOY] = { FINDING_LOCK_CONVOY, "many times for a short time", "released" },
	[LOCK_PATTERN_HERD] = { FINDING_LOCK_HERD, "woken together and most in vain", "released" },
};

static void find_lock(struct search *s, const struct lock_waited *l, const struct lock_name *name)
{
	struct finding_evidence e = { .type = "lock", .signal = "lock", .pid = l->lock.tgid };
	const struct lock_woken *by = l->n_wakers && l->woken[0].tid ? &l->woken[0] : NULL;
	const char *fn = by && by->stack && s->releases ? s->releases[by->stack - 1].fn : NULL;
	char says[FINDINGS_SAYS_BYTES], lock[256];
	int n;

	if (l->lock.address) {
		e.key = "address";
		snprintf(e.value, sizeof(e.value), "0x%" PRIx64, (uint64_t)l->lock.address);
	}
	session_locks_say(name, lock, sizeof(lock));
	n = snprintf(says, sizeof(says), "%u threads waited %.1f s in all for %s, %s", l->threads,
		     in_seconds(l->total_ns), lock, patterns[l->pattern].waits);
	if (by)
		n += snprintf(says + n, sizeof(says) - (size_t)n, "; %.*s %s it%s%.200s%s",
			      COMM_BYTES, by->comm, patterns[l->pattern].did, fn ? " in " : "",
			      fn ? fn : "", fn ? "()" : "");
	say_chain(s, l, says + n, sizeof(says) - (size_t)n);
	add_finding(s, patterns[l->pattern].cause, l->total_ns, says, &e);
}

static void find_locks(struct search *s)
{
	const struct lock_waits *locks = locks_of(s->session);
	const struct finding_evidence e = evidence_of(s, ACCOUNT_LOCK);
	uint64_t left_ns = s->part_ns[ACCOUNT_LOCK];
	char says[FINDINGS_SAYS_BYTES];

	for (size_t i = 0; locks && i < locks->count; i++)
		if (locks->items[i].pattern && locks->items[i].lock.tgid)
			find_lock(s, &locks->items[i], s->names ? &s->names[i] : NULL);
	left_ns -= MIN(left_ns, contended_ns(locks));
	say_place(s, ACCOUNT_LOCK, "for locks", says);
	add_finding(s, FINDING_LOCK_WAIT, left_ns, says, &e);
}

/* ---- waits for disks, memory and peers */

static bool is_sync(uint32_t call)
{
	static const char *const names[] = { "fsync",  "fdatasync", "sync_file_range",
					     "syncfs", "sync",	    "msync" };
	const char *name = call_names_get(call);

	for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static uint64_t find_sync(struct search *s, uint64_t left_ns)
{
	const struct signal *signal = s->session->signals[SIGNAL_SYSCALL];
	const struct call_times *calls = signal ? signal->calls : NULL;
	struct finding_evidence e = { .type = "syscall", .signal = "syscall", .key = "call" };
	char says[FINDINGS_SAYS_BYTES];
	const struct call_time *most = NULL;
	uint64_t ns = 0, waits = 0;
	int n;

	for (size_t i = 0; calls && i < calls->count; i++) {
		if (!is_sync(calls->items[i].call))
			continue;
		most = most ? most : &calls->items[i];
		ns += calls->items[i].wait_ns;
		waits += calls->items[i].waits + calls->items[i].open;
	}
	if (!most)
		return 0;
	ns = MIN(ns, left_ns);
	snprintf(e.value, sizeof(e.value), "%s", call_names_get(most->call));
	n = snprintf(says, sizeof(says),
		     "its threads waited %.1f s, %llu times, until writes were on disk, most in %s",
		     in_seconds(ns), (unsigned long long)waits, e.value);
	session_waits_place(&s->summary->waits, ACCOUNT_IO, says + n, sizeof(says) - (size_t)n);
	add_finding(s, FINDING_SYNC, ns, says, &e);
	return ns;
}

/* Returns whether a limit explains the rest of what waited for disks. */
static bool find_limit(struct search *s, enum finding_cause cause, enum cause_id id,
		       const char *source, uint64_t ns)
{
	struct finding_evidence e = { .type = "facts", .key = "source" };
	char says[CAUSES_TEXT_BYTES];

	if (!session_facts_say(s->session, id, says))
		return false;
	snprintf(e.value, sizeof(e.value), "%s", source);
	add_finding(s, cause, ns, says, &e);
	return true;
}

static void find_disk(struct search *s)
{
	uint64_t ns = s->part_ns[ACCOUNT_IO];
	const struct finding_evidence e = evidence_of(s, ACCOUNT_IO);
	char says[FINDINGS_SAYS_BYTES];

	if (find_limit(s, FINDING_DISK_LIMIT, CAUSE_ID_disk_limit, "io", ns))
		return;
	ns -= find_sync(s, ns);
	say_place(s, ACCOUNT_IO, "for disks and files", says);
	add_finding(s, FINDING_DISK, ns, says, &e);
}

/* What was thrown out at the limit and is read back makes threads wait for disks too. */
static void find_memory(struct search *s)
{
	const struct finding_evidence e = evidence_of(s, ACCOUNT_MEMORY);
	char says[FINDINGS_SAYS_BYTES];
	bool io = s->session->facts && causes_reads_back(s->session->facts);
	uint64_t io_ns = io ? s->part_ns[ACCOUNT_IO] : 0;

	if (find_limit(s, FINDING_MEMORY_LIMIT, CAUSE_ID_memory_limit, "memory",
		       s->part_ns[ACCOUNT_MEMORY] + io_ns)) {
		s->part_ns[ACCOUNT_IO] -= io_ns;
		return;
	}
	say_place(s, ACCOUNT_MEMORY, "for memory", says);
	add_finding(s, FINDING_MEMORY, s->part_ns[ACCOUNT_MEMORY], says, &e);
}

static void find_peer(struct search *s)
{
	const struct finding_evidence e = evidence_of(s, ACCOUNT_SOCKET);
	char says[FINDINGS_SAYS_BYTES];

	say_place(s, ACCOUNT_SOCKET, "for the other ends of sockets", says);
	add_finding(s, FINDING_PEER, s->part_ns[ACCOUNT_SOCKET], says, &e);
}

/* ---- what ran */

static void find_function(struct search *s)
{
	const struct finding_evidence e = { .type = "stack", .signal = "oncpu" };
	uint64_t ms = (s->session->stop_ns - s->session->start_ns) / NSEC_PER_MSEC;
	char says[FINDINGS_SAYS_BYTES];
	struct function_grown grown;
	uint64_t of_ns;

	if (session_digest_is_few(s->summary) ||
	    !function_growth_find(&s->summary->growth, s->session->pre_ms - s->session->onset_ms,
				  ms, &grown) ||
	    grown.stalled_pct <= grown.calm_pct)
		return;
	of_ns = grown.by_rate ? ms * NSEC_PER_MSEC : s->found.time_ns[FINDINGS_RUNNING];
	snprintf(says, sizeof(says), "%.250s (%.60s) had %u %% of %s, %u %% when calm", grown.fn,
		 grown.comm, grown.stalled_pct, grown.by_rate ? "a CPU" : "its CPU time",
		 grown.calm_pct);
	add_finding(s, FINDING_FUNCTION, of_ns / 100 * (grown.stalled_pct - grown.calm_pct), says,
		    &e);
}

void session_findings_write(const struct session_result *session, const struct summary *summary,
			    const struct lock_release *releases, const struct lock_name *names,
			    bool complete, struct jsonw *w)
{
	const struct signal *const *signals = (const struct signal *const *)session->signals;
	bool knows = signals[SIGNAL_OFFCPU] && !signals[SIGNAL_OFFCPU]->why;
	struct search s = {
		.session = session, .summary = summary, .releases = releases, .names = names
	};

	if (!knows && !accounts_of(session) && !locks_of(session)) {
		jsonw_string(w, "findings_reason",
			     "no signal of the session says how long its threads waited");
		return;
	}
	s.found.certain = complete;
	sum_waiting(&s);
	if (s.found.time_ns[FINDINGS_WAITING] * WAITED_PART >=
	    session->stop_ns - session->start_ns) {
		find_queue(&s);
		find_locks(&s);
		find_memory(&s);
		find_disk(&s);
		find_peer(&s);
	}
	find_function(&s);
	findings_write(&s.found, w);
}
