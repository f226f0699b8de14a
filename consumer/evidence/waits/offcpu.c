/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `offcpu`: stacks of the threads that do not run, by off-CPU samples
 * (consumer/sampling/looks.h). A thread that two sampling passes find in the same wait has waited
 * all the time between them. If a pass finds it in another wait, or running, each gets half of the
 * time since the previous pass. So the weight of a thread's stacks is the time that it waited, and
 * a thread that slept through the whole session weighs exactly as long as the session.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "consumer/evidence/waits/look_coverage.h"
#include "consumer/evidence/waits/offcpu_before.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/process/process_mappings.h"
#include "consumer/sampling/looks.h"
#include "consumer/sampling/other_ends.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/signals/signal_target.h"
#include "consumer/signals/timeline.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#define THREADS_MAX 65536 /* waiting threads that a session follows at a time */

/* Samples that are further apart than 1/LOOKS_MIN of the session show little of shorter waits. */
#define LOOKS_MIN 10

/* A session with this signal waits this long for its last sampling pass. */
#define SETTLE_MS 500

/* A thread and the wait in which the last sampling pass found it. */
struct waiting {
	struct stack *stack; /* NULL: another process's, or no space */
	uint64_t switches;   /* the thread's switches, in this wait */
	uint64_t seen_ns;    /* time of its last sample, or the end of an ended wait's time */
	uint64_t pass;	     /* number of that sampling pass */
	uint64_t weight_ns;  /* of this wait, in `stack` */
	uint64_t looks;	     /* samples of this wait, in `stack` */
	uint64_t asked_ns;   /* since when the peer owes an answer; 0: it owes none */
	struct timeline_pool *pool; /* NULL: none */
	uint8_t part;		    /* enum account_part, of `pool` */
	uint8_t state;		    /* as in struct stack */
	uint8_t why;		    /* reason for a missing stack: enum drop */
	int8_t nice;
	bool filtered; /* of another process: not in the ledger */
	bool over;     /* not found since: the wait is over */
};

struct offcpu {
	struct signal signal;
	struct signal_stacks taken;
	struct offcpu_before before;
	struct idmap threads; /* tid -> struct waiting, owned */
	size_t over;	      /* number of entries in `threads` that are over */
	bool held;
	uint64_t first_pass; /* number of the session's first pass */
	uint64_t last_pass;  /* 0: the session has not ended */
	uint64_t passed;     /* number of the last pass that was made */
	uint64_t before_ns;  /* begin of the previous pass, or of the session */
	uint64_t cut, as_before, cpu_ns, first_ns;
	uint64_t free_ns;   /* part of cpu_ns outside of the budget: the first and the last pass */
	uint64_t attempted; /* in the ledger, at the end of the last pass */
	uint32_t unsought;  /* waits without space in `ends` */
	struct other_ends *ends;  /* borrowed while the session runs; NULL: it seeks none */
	struct end_watcher named; /* of the pass over the other ends */
	bool names;		  /* that pass has not ended */
	struct look_coverage looks;
};

static const char no_pin[] = "the iterator `looks` cannot be read: load again";
static const char no_expectation[] = "threads were never sampled";

static const char unscaled[] = "the signal pools has no exact times of the threads";

static struct offcpu *offcpu_of(struct signal *s)
{
	return (struct offcpu *)s;
}

/*
 * Returns true for a session that is to explain a stall. This includes cpu pressure: samples find
 * the threads that wait for a CPU, with the stack that they will continue with.
 */
static bool is_auto(const struct trigger_reason *reason)
{
	return reason->kind == TRIGGER_OOM_KILL || trigger_reason_asks_why(reason);
}

static void free_threads(struct offcpu *s)
{
	struct waiting *w;
	uint64_t tid;

	idmap_for_each (&s->threads, i, tid, w)
		free(w);
	idmap_done(&s->threads);
}

static void destroy_offcpu(struct signal *signal)
{
	struct offcpu *s = offcpu_of(signal);

	offcpu_before_done(&s->before);
	free_threads(s);
	held_waits_done(&s->looks.held);
	stack_table_done(&s->taken.stacks);
	wait_objects_done(&s->taken.objects);
	free(s);
}

static struct signal *create_offcpu(const struct signal_host *host,
				    const struct signal_target *target)
{
	struct offcpu *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->signal.taken = &s->taken;
	s->signal.settle_ms = SETTLE_MS;
	stack_table_init(&s->taken.stacks, host->stacks);
	wait_objects_init(&s->taken.objects);
	idmap_init(&s->threads, THREADS_MAX);
	s->looks.unscaled = unscaled;
	s->signal.evidence = &s->looks;
	s->taken.expected = UINT64_MAX;
	s->taken.expected_why = no_expectation;
	return &s->signal;
}

static struct ledger *ledger_of(struct offcpu *s)
{
	return &s->taken.phase[PHASE_DURING];
}

/* Returns the part of `ns` (CLOCK_MONOTONIC) that is in the session. */
static uint64_t clip_ns(const struct signal_target *target, uint64_t ns)
{
	ns = MAX(ns, target->start_ns);
	return target->stop_ns ? MIN(ns, target->stop_ns) : ns;
}

/* Counts time that a thread waited for a CPU by its nice value. */
static void note_nice(struct offcpu *s, const struct waiting *w, uint64_t ns)
{
	if (w->state == WAIT_FOR_CPU && w->stack)
		s->looks.queue_ns[w->nice - LOOK_NICE_LEAST] += ns;
}

/* Adds to the wait the time since it was last seen. */
static void give_time(struct offcpu *s, const struct signal_target *target, struct waiting *w,
		      uint64_t ns)
{
	note_nice(s, w, ns);
	timeline_add(target->timeline, w->pool, w->part, w->seen_ns, w->seen_ns + ns);
	w->weight_ns += ns;
	if (w->stack)
		w->stack->weight_ns += ns;
}

/* Returns the entry of a thread, creating it if needed; NULL without space. */
static struct waiting *thread_of(struct offcpu *s, uint32_t tid)
{
	struct waiting *w = idmap_get(&s->threads, tid);

	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	if (w && idmap_put(&s->threads, tid, w) < 0) {
		free(w);
		return NULL;
	}
	if (w) {
		w->why = DROP_LOOK_CUT;
		w->over = true;
		s->over++;
	}
	return w;
}

/* Counts a sample of a thread with its stack, and a wait of `ns` so far; see struct waiting. */
static void put_stack(struct offcpu *s, struct waiting *w, const struct look_seen *seen,
		      uint64_t ns)
{
	struct stack_sample *h = seen->sample;
	const struct process *p = seen->process;
	struct module *exe = p ? process_mappings_at(p, h->time_ns, h->image)->exe : NULL;
	bool empty = !h->kernel_frames && !h->user_frames;

	w->stack = NULL;
	w->weight_ns = ns;
	h->on = wait_objects_add(&s->taken.objects, &seen->record->on);
	w->asked_ns = 0;
	if (wait_objects_is_unanswered(&seen->record->on))
		w->asked_ns = h->time_ns - MIN(h->time_ns, seen->record->on.longest_ns);
	w->why = empty ? DROP_STACK_USER : DROP_MAP_FULL;
	if (empty || stack_table_put(&s->taken.stacks, h, PHASE_DURING, ns, exe, &w->stack) < 0)
		ledger_of(s)->lost[w->why]++;
	else
		ledger_of(s)->emitted++;
}

/*
 * Replaces the stack of a continuing wait by a stack that was unwound better: it takes over the old
 * stack's share of this wait.
 */
static void replace_stack(struct offcpu *s, struct waiting *w, const struct look_seen *seen,
			  uint64_t ns)
{
	uint64_t looks = w->stack ? w->looks : 0;

	if (w->stack) {
		w->stack->weight_ns -= w->weight_ns;
		w->stack->count -= w->looks;
		ns += w->weight_ns;
	}
	put_stack(s, w, seen, ns);
	w->looks = looks + 1;
	if (w->stack) {
		w->stack->count += looks;
	} else {
		ledger_of(s)->emitted -= looks;
		ledger_of(s)->lost[w->why] += looks;
	}
}

/* Whether the thread belongs to the session; if so, counts the attempt. */
static bool take_attempt(struct offcpu *s, const struct signal_target *target, struct waiting *w,
			 const struct stack_sample *h)
{
	enum belonging belonging = signal_target_judge(target, h);

	w->filtered = belonging == BELONGS_NOT;
	if (w->filtered)
		return false;
	ledger_of(s)->attempted++;
	if (belonging == BELONGS_PERHAPS) {
		w->why = DROP_STALE;
		ledger_of(s)->lost[DROP_STALE]++;
	}
	return belonging == BELONGS;
}

/* Takes a thread that is reported with its stack. */
static void take_whole(struct offcpu *s, const struct signal_target *target, struct waiting *w,
		       const struct look_seen *seen, uint64_t now_ns)
{
	uint64_t ns = now_ns - MIN(now_ns, w->over ? s->before_ns : w->seen_ns);
	bool first = s->looks.passes == 0,
	     goes_on = !w->over && w->switches == seen->record->switches;
	bool replaces = goes_on && w->state == seen->sample->wait;

	if (!w->over && !replaces)
		give_time(s, target, w, ns / 2);
	if (w->over)
		s->over--;
	w->over = false;
	w->switches = seen->record->switches;
	w->state = seen->sample->wait;
	w->nice = (int8_t)MAX(MIN(seen->record->nice, LOOK_NICE_MOST), LOOK_NICE_LEAST);
	w->pool = NULL;
	if (!take_attempt(s, target, w, seen->sample)) {
		w->stack = NULL;
		return;
	}
	w->part = timeline_part(seen->sample->wait, &seen->record->on);
	w->pool = timeline_pool(target->timeline, seen->sample);
	timeline_add(target->timeline, w->pool, w->part,
		     now_ns - (replaces || first ? ns : ns - ns / 2), now_ns);
	if (replaces) {
		replace_stack(s, w, seen, ns);
		note_nice(s, w, ns);
		return;
	}
	put_stack(s, w, seen, first ? ns : ns - ns / 2);
	note_nice(s, w, first ? ns : ns - ns / 2);
	w->looks = 1;
}

/*
 * Takes a thread that is unchanged since its last report. This also continues a wait that seemed
 * over: a runnable thread that moved to the reader's CPU is left out of one pass (waits_for_reader,
 * bpf/waits/looks.bpf.c).
 */
static void take_as_before(struct offcpu *s, const struct signal_target *target, struct waiting *w,
			   uint64_t now_ns)
{
	if (w->filtered)
		return;
	ledger_of(s)->attempted++;
	s->as_before++;
	if (w->over) {
		w->over = false;
		s->over--;
	}
	give_time(s, target, w, now_ns - MIN(now_ns, w->seen_ns));
	if (!w->stack) {
		ledger_of(s)->lost[w->why]++;
		return;
	}
	ledger_of(s)->emitted++;
	w->stack->count++;
	w->looks++;
	if (w->asked_ns)
		wait_objects_lasts(&s->taken.objects, w->stack->on,
				   now_ns - MIN(now_ns, w->asked_ns));
}

static bool is_mine(const struct offcpu *s, const struct look_pass *pass)
{
	return s->held && pass->number >= s->first_pass &&
	       (!s->last_pass || pass->number <= s->last_pass);
}

static void take_look(struct signal *signal, const struct signal_target *target,
		      const struct look_pass *pass, const struct look_seen *seen)
{
	struct offcpu *s = offcpu_of(signal);
	uint64_t now_ns = clip_ns(target, seen->head->time_ns);
	struct waiting *w;

	if (!is_mine(s, pass))
		return;
	if (s->looks.passes == 0)
		offcpu_before_found(&s->before, seen);
	w = thread_of(s, seen->head->tid);
	if (!w) {
		ledger_of(s)->attempted++;
		ledger_of(s)->lost[DROP_MAP_FULL]++;
		return;
	}
	if (seen->record)
		take_whole(s, target, w, seen, now_ns);
	else
		take_as_before(s, target, w, now_ns);
	w->seen_ns = now_ns;
	w->pass = pass->number;
}

/* Frees the entries of threads without a wait once they are the majority. */
static void sweep_threads(struct offcpu *s)
{
	struct idmap kept;
	struct waiting *w;
	uint64_t tid;

	if (s->over * 2 <= s->threads.count)
		return;
	idmap_init(&kept, THREADS_MAX);
	idmap_for_each (&s->threads, i, tid, w)
		if (w->over || idmap_put(&kept, tid, w) < 0)
			free(w);
	idmap_done(&s->threads);
	s->threads = kept;
	s->over = 0;
}

/*
 * Ends the waits of threads that a complete pass did not report: they run, or have ended. If the
 * pass was cut short, they may still wait: then the sample counts as lost.
 */
static void end_waits(struct offcpu *s, const struct signal_target *target,
		      const struct look_pass *pass)
{
	uint64_t now_ns = clip_ns(target, pass->began_ns), tid;
	struct waiting *w;

	idmap_for_each (&s->threads, i, tid, w) {
		if (w->over || w->pass == pass->number)
			continue;
		if (!pass->cut) {
			uint64_t half_ns = (now_ns - MIN(now_ns, w->seen_ns)) / 2;

			give_time(s, target, w, half_ns);
			w->seen_ns += half_ns;
			w->over = true;
			s->over++;
		} else if (!w->filtered) {
			ledger_of(s)->attempted++;
			ledger_of(s)->lost[DROP_LOOK_CUT]++;
		}
	}
	sweep_threads(s);
}

/*
 * Records the samples that the budget left out before a pass: per skipped pass, as many samples as
 * this pass took.
 */
static void note_skipped(struct offcpu *s, const struct look_pass *pass)
{
	uint64_t found = ledger_of(s)->attempted - s->attempted;

	if (s->looks.passes) {
		s->looks.skipped += pass->skipped;
		s->looks.left_out += pass->skipped * found;
	}
	s->attempted += found;
}

static struct offcpu *offcpu_of_watcher(struct end_watcher *w)
{
	return (struct offcpu *)((char *)w - offsetof(struct offcpu, named));
}

static void name_ends(struct end_watcher *w, bool failed)
{
	struct offcpu *s = offcpu_of_watcher(w);

	s->looks.search.failed = failed;
	if (!failed)
		other_ends_name(s->ends, &s->taken.objects, &s->looks.search);
	s->names = false;
}

/* Seeks the processes at the other ends of the waits, if there are such waits. */
static void seek_ends(struct offcpu *s)
{
	s->looks.search.sought = s->ends ? other_ends_count(&s->taken.objects) : 0;
	if (!s->looks.search.sought)
		return;
	s->named.passed = name_ends;
	s->names = true;
	other_ends_ask(s->ends, &s->named);
}

static void take_pass(struct signal *signal, const struct signal_target *target,
		      const struct look_pass *pass)
{
	struct offcpu *s = offcpu_of(signal);
	uint64_t now_ns = clip_ns(target, pass->began_ns);

	if (!is_mine(s, pass))
		return;
	end_waits(s, target, pass);
	timeline_look(target->timeline, now_ns);
	if (s->looks.passes == 0) {
		s->first_ns = now_ns - target->start_ns;
		offcpu_before_passed(&s->before, pass->cut);
	}
	note_skipped(s, pass);
	s->looks.passes++;
	s->passed = pass->number;
	s->cut += pass->cut;
	s->cpu_ns += pass->cpu_ns;
	if (s->looks.passes == 1 || pass->number == s->last_pass)
		s->free_ns += pass->cpu_ns;
	s->looks.longest_ns = MAX(s->looks.longest_ns, now_ns - MIN(now_ns, s->before_ns));
	s->before_ns = now_ns;
	if (pass->number == s->last_pass)
		seek_ends(s);
}

static void begin_offcpu(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct offcpu *s = offcpu_of(signal);

	if (!looks_is_there(host->looks)) {
		signal->off_reason = no_pin;
		return;
	}
	host->pins->slots[target->slot].looked = 1;
	s->held = true;
	s->looks.permille = host->looks->permille;
	s->before_ns = target->start_ns;
	s->ends = host->other_ends;
	s->unsought = host->pins->slots[target->slot].unsought;
	if (s->ends)
		other_ends_hold(s->ends);
	s->first_pass = looks_hold(host->looks);
	offcpu_before_begin(&s->before, host, target, &s->taken);
}

static void end_offcpu(struct signal *signal, const struct signal_host *host,
		       const struct signal_target *target)
{
	struct offcpu *s = offcpu_of(signal);

	if (!s->held)
		return;
	s->looks.session_ns = target->stop_ns - target->start_ns;
	s->last_pass = looks_ask_last(host->looks); /* see list_held */
	looks_drop(host->looks);
}

static bool is_settled(const struct signal *signal)
{
	const struct offcpu *s = (const struct offcpu *)signal;

	return !s->held || (s->passed >= s->last_pass && !s->names);
}

/*
 * Lists the threads that still wait for a lock with a known holder. Each was found in the same wait
 * by the pass before the last one, so none of them ran while the last one read the holders: a
 * circle of them is a deadlock.
 */
static void list_held(struct offcpu *s)
{
	struct waiting *w;
	uint64_t tid;

	idmap_for_each (&s->threads, i, tid, w) {
		const struct look_on *on =
			w->over || !w->stack || w->looks < 2 || w->pass != s->last_pass
				? NULL
				: wait_objects_get(&s->taken.objects, w->stack->on);

		/* The holder of a file's lock is a process. */
		if (on && wait_objects_is_lock(on) && on->peer_pid && on->state != LOOK_LOCK_FILE)
			held_waits_add(&s->looks.held,
				       &(struct held_wait){ .stack = w->stack,
							    .address = on->kind == LOOK_ON_FUTEX
									       ? on->address
									       : 0,
							    .ns = w->weight_ns,
							    .tid = (uint32_t)tid,
							    .holder = on->peer_pid });
	}
}

static void close_offcpu(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct offcpu *s = offcpu_of(signal);
	struct slot *slot = &host->pins->slots[target->slot];

	if (!s->held)
		return;
	s->unsought = slot->epoch == target->epoch ? slot->unsought - s->unsought : 0;
	if (slot->epoch == target->epoch)
		slot->looked = 0;
	if (s->ends) {
		other_ends_forget(s->ends, &s->named);
		other_ends_drop(s->ends);
	}
	s->ends = NULL;
	/* The last sampling pass did not end in time. */
	if (s->passed < s->last_pass)
		end_waits(s, target, &(struct look_pass){ .number = s->last_pass, .cut = true });
	/* No pass was made at all. */
	offcpu_before_passed(&s->before, true);
	if (s->looks.passes)
		s->taken.expected = ledger_of(s)->attempted + s->looks.left_out;
	s->taken.left_out = s->looks.left_out;
	s->looks.calm_ns = s->before.calm_ns;
	s->looks.calm_passes = s->before.calm_passes;
	signal_target_name_cgroups(&s->taken.stacks, host, target);
	list_held(s);
	free_threads(s);
}

static void write_start(const struct signal *signal, struct jsonw *w)
{
	if (signal->off_reason)
		return;
	jsonw_object(w, "looks");
	jsonw_u64(w, "every_ms", LOOKS_EVERY_NS / NSEC_PER_MSEC);
	jsonw_milli(w, "budget_pct",
		    (int64_t)((const struct offcpu *)signal)->looks.permille * 100);
	jsonw_object_end(w);
}

/* Writes how many other ends of waits were named, and why some may lack a name. */
static void write_search(const struct end_search *s, bool has_no_space, struct jsonw *w)
{
	char reason[96] = "";

	if (!s->sought)
		return;
	jsonw_object(w, "other_ends");
	jsonw_u64(w, "sought", s->sought);
	jsonw_u64(w, "named", s->named);
	if (s->failed)
		snprintf(reason, sizeof(reason), "the iterator `other_ends` cannot be read");
	else if (!s->ended)
		snprintf(reason, sizeof(reason), "the search did not end within %d ms", SETTLE_MS);
	else if (has_no_space)
		snprintf(reason, sizeof(reason), "the table `ends` had no space for some");
	else if (s->left_out)
		snprintf(reason, sizeof(reason),
			 "the search has limits, and left %" PRIu32 " descriptors out",
			 s->left_out);
	if (*reason)
		jsonw_string(w, "reason", reason);
	jsonw_object_end(w);
}

static void write_offcpu(const struct signal *signal, struct jsonw *w)
{
	const struct offcpu *s = (const struct offcpu *)signal;
	uint64_t due = s->looks.session_ns / LOOKS_EVERY_NS + 1;

	if (signal->off_reason)
		return;
	jsonw_object(w, "looks");
	jsonw_u64(w, "passes", s->looks.passes);
	jsonw_u64(w, "skipped", s->looks.skipped);
	jsonw_u64(w, "late", due - MIN(due, s->looks.passes + s->looks.skipped));
	jsonw_u64(w, "cut", s->cut);
	jsonw_u64(w, "as_before", s->as_before);
	jsonw_u64(w, "first_ms", s->first_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "longest_gap_ms", s->looks.longest_ns / NSEC_PER_MSEC);
	jsonw_milli(w, "cpu_ms", (int64_t)(s->cpu_ns / 1000));
	jsonw_milli(w, "free_cpu_ms", (int64_t)(s->free_ns / 1000));
	offcpu_before_write(&s->before, w);
	if (s->looks.unscaled)
		jsonw_string(w, "unscaled", s->looks.unscaled);
	else
		wait_scale_write(&s->looks.scale, w);
	if (s->taken.objects.left_out)
		jsonw_u64(w, "on_left_out", s->taken.objects.left_out);
	write_search(&s->looks.search, s->unsought != 0, w);
	jsonw_object_end(w);
}

/* Whether the budget made passes further apart than 1/LOOKS_MIN of the session. */
static bool lacks_looks(const struct signal *signal, char reason[LEDGER_REASON_BYTES])
{
	const struct look_coverage *l = signal->evidence;

	if (!l->skipped || l->longest_ns * LOOKS_MIN <= l->session_ns)
		return false;
	snprintf(reason, LEDGER_REASON_BYTES,
		 "off-CPU samples were up to %llu ms apart in %llu ms, so shorter waits are found "
		 "by chance: the budget (--looks-permille %" PRIu64 ") skipped %" PRIu64
		 " of %" PRIu64 " sampling passes",
		 (unsigned long long)(l->longest_ns / NSEC_PER_MSEC),
		 (unsigned long long)(l->session_ns / NSEC_PER_MSEC), l->permille, l->skipped,
		 l->skipped + l->passes);
	return true;
}

const struct signal_kind offcpu_kind = {
	.id = SIGNAL_OFFCPU,
	.stacks_of = STACKS_WAITING,
	.auto_why = "auto: waits of threads explain what the stacks of running threads do not show",
	.is_auto = is_auto,
	.create = create_offcpu,
	.destroy = destroy_offcpu,
	.begin = begin_offcpu,
	.look = take_look,
	.passed = take_pass,
	.end = end_offcpu,
	.is_settled = is_settled,
	.close = close_offcpu,
	.write_start = write_start,
	.write = write_offcpu,
	.lacks = lacks_looks,
};
