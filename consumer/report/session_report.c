/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/session_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "consumer/answer/session_chains.h"
#include "consumer/answer/session_digest.h"
#include "consumer/answer/session_facts.h"
#include "consumer/answer/session_findings.h"
#include "consumer/answer/session_headline.h"
#include "consumer/evidence/cpu/session_neighbours.h"
#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/evidence/locks/session_locks.h"
#include "consumer/evidence/time/session_calls.h"
#include "consumer/evidence/waits/session_pools.h"
#include "consumer/naming/frame_json.h"
#include "consumer/naming/runtime_merge.h"
#include "consumer/report/session_lines.h"
#include "consumer/report/session_verdict.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/session/line_bytes.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* An output that has written nothing for this long counts as stopped. */
#define STALL_NS (2 * NSEC_PER_SEC)

#define HEADLINE_MAX 2048
#define HEADLINE_MIN 160

/* Bytes for "]", the keys of a split stack, "}" and the newline. */
#define TAIL_BYTES 96

/*
 * Lines are queued in batches: waking the output thread for each line took a quarter of the time.
 */
#define BATCH_BYTES (64u << 10)
/* A batch is at most this part of the queue; a quarter of the queue is kept for the main thread. */
#define BATCH_SHARE 8

/* Whole stacks, not queued yet. */
struct batch {
	char *data;
	size_t bytes, space, limit;
	uint64_t lines;
	uint64_t held[PHASE_COUNT_]; /* samples in it */
};

struct report {
	struct session_result *session;
	const struct signal *signal; /* the signal with the stacks that are being written */
	const struct event_lines *lines;
	const bool *hurry;
	struct event_subject subject;
	struct session_digest summary;
	struct frame_json rendering;
	struct known_wait wait;	       /* the wait of the current stack's threads, if they wait */
	struct jsonw tail;	       /* of one line: the part after its frames */
	struct lock_release *releases; /* owned; of waking threads, by stack number; NULL: none */
	struct lock_name *locks;       /* owned; of the locks; NULL: none */
	size_t head_bytes;	       /* of a stack's first line, which has the longest head */
	struct batch batch;
	uint64_t written, moved_ns;  /* bytes that the output had written; when this last grew */
	struct line_allowance bytes; /* for the lines of stacks */
};

/*
 * Waits until less than three quarters of the queue are used; a quarter is kept for the main
 * thread. Returns false if the output has written nothing for STALL_NS; later calls return at once
 * until it writes again.
 */
static bool wait_for_room(struct report *r)
{
	struct output_queue_stats stats;

	for (;;) {
		bool room;

		output_queue_stats(r->lines->output, &stats);
		room = stats.queued_bytes < stats.queue_bytes / 4 * 3;
		if (room || stats.bytes != r->written) {
			r->written = stats.bytes;
			r->moved_ns = clock_mono_ns();
		}
		if (room)
			return true;
		if (__atomic_load_n(r->hurry, __ATOMIC_RELAXED) ||
		    clock_mono_ns() - r->moved_ns > STALL_NS)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
}

static void lose_samples(struct report *r, enum phase phase, uint64_t samples, enum drop why)
{
	struct ledger *ledger = &r->signal->taken->phase[phase];

	ledger->emitted -= samples;
	ledger->lost[why] += samples;
}

/* Queues the whole batch or nothing; samples that were not queued count as lost in the ledger. */
static void flush_batch(struct report *r)
{
	struct batch *b = &r->batch;
	bool queued;

	if (!b->bytes)
		return;
	queued =
		wait_for_room(r) && output_queue_put(r->lines->output, b->data, b->bytes, b->lines);
	for (int phase = 0; phase < PHASE_COUNT_; phase++) {
		if (!queued)
			lose_samples(r, (enum phase)phase, b->held[phase], DROP_QUEUE_FULL);
		b->held[phase] = 0;
	}
	b->bytes = 0;
	b->lines = 0;
}

/*
 * Reserves space for `more` bytes: within the limit, or beyond it for a single stack that is
 * longer.
 */
static bool reserve_batch(struct report *r, size_t more)
{
	struct batch *b = &r->batch;
	size_t space;
	char *larger;

	if (b->bytes + more > b->limit)
		flush_batch(r);
	if (b->bytes + more <= b->space)
		return true;
	space = MAX(b->limit, more);
	larger = realloc(b->data, space);
	if (!larger)
		return false;
	b->data = larger;
	b->space = space;
	return true;
}

static size_t count_unnamed(const struct report *r, size_t n)
{
	size_t unnamed = 0;

	for (size_t i = 0; i < n; i++)
		unnamed += r->rendering.nameless || !r->rendering.named[i].fn;
	return unnamed;
}

/* Writes the cgroup below the session's in which the stack's samples were taken. */
static void write_cgroup(const struct report *r, const struct stack *stack, struct jsonw *w)
{
	const char *path = stack_table_cgroup(&r->signal->taken->stacks, stack->cgroup_id);

	frame_json_text(w, "in_cgroup", path);
	if (!path)
		jsonw_string(w, "in_cgroup_reason",
			     "the cgroup was gone, or not found, before the line was made");
	jsonw_u64(w, "in_cgroup_id", stack->cgroup_id);
}

/* Writes the wait of the stack's threads; nothing if they run. */
static void write_wait(const struct report *r, const struct stack *stack, struct jsonw *w)
{
	if (stack->wait == WAIT_RUNS)
		return;
	jsonw_string(w, "state", stack->wait == WAIT_FOR_CPU ? "runnable" : "blocked");
	if (stack->wait < WAIT_BLOCKED)
		return;
	jsonw_string(w, "wait", wait_kind_name(r->wait.state));
	jsonw_bool(w, "idle", r->wait.idle);
	if (r->wait.condition)
		jsonw_bool(w, "condition", true);
	if (r->wait.on)
		wait_objects_write(r->wait.on, w);
}

/* Writes the part of a line that comes before its frames. */
static void write_head(const struct report *r, const struct stack *stack, struct jsonw *w, size_t n,
		       bool first)
{
	const char *why;
	size_t unnamed;
	enum quality quality = frame_name_quality(stack, r->rendering.named, n, &why);

	event_line_begin(r->lines, w, "stack", &r->subject);
	jsonw_string(w, "signal", rules_signal_name(r->signal->id));
	jsonw_string(w, "phase", stack_table_phase((enum phase)stack->phase));
	jsonw_u64(w, "pid", stack->tgid);
	jsonw_u64(w, "start_ns", stack->start_ns);
	jsonw_string(w, "comm", stack->comm);
	frame_json_text(w, "exe", stack->exe ? stack->exe->path : NULL);
	if (!stack->exe)
		jsonw_string(w, "exe_reason",
			     stack->flags & SAMPLE_KTHREAD ? "a kernel thread, or in execve or exit"
							   : "its mappings were not read in time");
	if (stack->cgroup_id && stack->cgroup_id != r->session->cgroup_id)
		write_cgroup(r, stack, w);
	if (first) {
		jsonw_u64(w, "threads", stack->threads);
		jsonw_u64(w, "count", stack->count);
		jsonw_u64(w, "weight_ns", stack->weight_ns);
	}
	write_wait(r, stack, w);
	if (r->signal->kind->stacks_of == STACKS_RUNNING)
		session_calls_write(stack, w);
	session_locks_write_stack(stack, w);
	jsonw_string(w, "quality", frame_name_of_quality(quality));
	unnamed = count_unnamed(r, n);
	if (unnamed)
		jsonw_u64(w, "unnamed", unnamed);
	if (why)
		jsonw_string(w, "quality_reason", why);
	if (stack->flags & SAMPLE_RUNTIME && stack->runtime_end == RUNTIME_END_TORN)
		jsonw_bool(w, "torn", true);
	jsonw_array(w, "frames");
}

/* `id`: unique among the stacks of the session. */
static void write_tail(struct jsonw *w, uint64_t id, unsigned int part, unsigned int parts)
{
	jsonw_reset(w);
	jsonw_array_end(w);
	if (parts > 1) {
		jsonw_u64(w, "stack_id", id);
		jsonw_u64(w, "part", part);
		jsonw_u64(w, "parts", parts);
	}
	jsonw_object_end(w);
}

/*
 * Returns how many frames, beginning with `from`, fit after a head of r->head_bytes; at least one.
 */
static size_t count_fitting(const struct report *r, size_t from, size_t n)
{
	size_t start = from ? r->rendering.ends[from - 1] : 1, last = from + 1;
	size_t room = r->lines->max_bytes > r->head_bytes + TAIL_BYTES
			      ? r->lines->max_bytes - r->head_bytes - TAIL_BYTES
			      : 0;

	while (last < n && r->rendering.ends[last] - start < room)
		last++;
	return last - from;
}

static unsigned int count_parts(const struct report *r, size_t n)
{
	unsigned int parts = 0;
	size_t from = 0;

	do {
		parts++;
		from += n ? count_fitting(r, from, n) : 0;
	} while (from < n);
	return parts;
}

/* Appends head, frames and tail as one line. Returns false if it exceeds the line limit. */
static bool put_line(struct report *r, const struct jsonw *head, const char *frames, size_t bytes)
{
	size_t all = head->bytes + bytes + r->tail.bytes + 1;
	struct batch *b = &r->batch;
	char *at = b->data + b->bytes;

	if (jsonw_end(head) < 0 || jsonw_end(&r->tail) < 0 || all > r->lines->max_bytes ||
	    all > b->space - b->bytes)
		return false;
	memcpy(at, head->data, head->bytes);
	at += head->bytes;
	memcpy(at, frames, bytes);
	at += bytes;
	memcpy(at, r->tail.data, r->tail.bytes);
	at[r->tail.bytes] = '\n';
	b->bytes += all;
	b->lines++;
	return true;
}

/*
 * Appends the lines of a stack; `head` is the head of its first line. Returns false if a line is
 * too long.
 */
static bool put_parts(struct report *r, const struct stack *stack, struct jsonw *head, size_t n,
		      unsigned int parts)
{
	size_t from = 0;

	for (unsigned int part = 1; part <= parts; part++) {
		size_t take = n ? count_fitting(r, from, n) : 0;
		/* Frame i's text begins after the comma that ends frame i - 1. */
		size_t start = from ? r->rendering.ends[from - 1] + 1 : 1;

		if (part > 1) {
			jsonw_done(head);
			write_head(r, stack, head, n, false);
		}
		write_tail(&r->tail, (uint64_t)r->signal->id * STACK_TABLE_MAX + stack->number,
			   part, parts);
		if (!put_line(r, head, take ? r->rendering.frames.data + start : "",
			      take ? r->rendering.ends[from + take - 1] - start : 0))
			return false;
		from += take;
	}
	return true;
}

/*
 * Adds a stack to the sums of session.end. A stack of a waking thread adds where it is, and no
 * time.
 */
static void sum_stack(struct report *r, const struct stack *stack, size_t n)
{
	const struct named_frame *named = r->rendering.named;
	const char *why;
	bool wakes = r->signal->kind->stacks_of == STACKS_WAKING;

	if (!wakes && stack->wait == WAIT_RUNS)
		session_digest_add(&r->summary, r->signal->id, stack, named, n);
	else
		session_digest_add_other(&r->summary, r->signal->id, stack, named, n);
	if (wakes && r->releases)
		session_locks_release(stack, named, n, &r->releases[stack->number]);
	if (!wakes && stack->wait != WAIT_RUNS) {
		known_wait_judge(stack, wait_objects_get(&r->signal->taken->objects, stack->on),
				 named, n, &r->wait);
		if (r->wait.event && lock_waits_is_handed_on(lock_waits_of(r->session->signals),
							     stack->tgid, r->wait.on->address))
			r->wait.condition = false;
		session_waits_add(&r->summary.waits, stack, &r->wait);
		pool_places_add(&r->summary.pools, stack, &r->wait,
				frame_name_quality(stack, named, n, &why) == QUALITY_COMPLETE);
		condition_locks_add(&r->summary.conditions, stack, &r->wait);
	}
}

/* Removes a lost stack from the batch; its `parts` lines count as dropped. */
static void drop_stack(struct report *r, const struct stack *stack, size_t bytes, uint64_t lines,
		       unsigned int parts, enum drop why)
{
	r->batch.bytes = bytes;
	r->batch.lines = lines;
	if (why == DROP_QUEUE_FULL)
		output_queue_count_dropped(r->lines->output, parts);
	lose_samples(r, (enum phase)stack->phase, stack->count, why);
}

/* Puts all lines of a stack into the batch, or none. */
static void put_stack(struct report *r, struct stack *stack)
{
	size_t n, before;
	struct jsonw head;
	unsigned int parts;
	uint64_t lines;
	bool whole;

	r->rendering.nameless = line_bytes_is_short(&r->bytes);
	runtime_merge_stack(r->rendering.symbols, stack);
	n = frame_json_stack(&r->rendering, stack);
	sum_stack(r, stack, n);
	write_head(r, stack, &head, n, true);
	r->head_bytes = head.bytes;
	parts = count_parts(r, n);
	whole = reserve_batch(r, r->rendering.frames.bytes + parts * (head.bytes + TAIL_BYTES));
	before = r->batch.bytes;
	lines = r->batch.lines;
	whole = whole && put_parts(r, stack, &head, n, parts);
	if (!whole) {
		drop_stack(r, stack, before, lines, parts, DROP_QUEUE_FULL);
	} else if (!line_bytes_take(&r->bytes, r->batch.bytes - before)) {
		drop_stack(r, stack, before, lines, parts, DROP_LINE_BYTES);
	} else {
		r->batch.held[stack->phase] += stack->count;
		r->signal->taken->nameless += r->rendering.nameless;
	}
	jsonw_done(&head);
}

static int by_weight(const void *a, const void *b)
{
	const struct stack *x = *(struct stack *const *)a, *y = *(struct stack *const *)b;

	if (x->phase != y->phase)
		return x->phase > y->phase ? -1 : 1;
	if (x->weight_ns != y->weight_ns)
		return x->weight_ns < y->weight_ns ? 1 : -1;
	return x->number < y->number ? -1 : 1;
}

/* Returns the space of the headline: where lines are short, it leaves room for the other keys. */
static size_t headline_space(const struct jsonw *w)
{
	size_t used = MIN(w->bytes + SESSION_WAITS_AFTER_BYTES, w->max_bytes);
	size_t left = MAX(w->max_bytes - used, (size_t)HEADLINE_MIN);

	return MIN(left, (size_t)HEADLINE_MAX);
}

static void put_end(struct report *r)
{
	const struct session_result *s = r->session;
	const struct signal *waiting = signals_of_stacks(s->signals, STACKS_WAITING);
	_cleanup_free_ struct findings *found = NULL;
	enum verdict verdict;
	struct answer answer;
	char headline[HEADLINE_MAX];
	bool unknown;
	struct jsonw w;
	size_t bytes;

	event_line_begin(r->lines, &w, "session.end", &r->subject);
	jsonw_u64(&w, "duration_ms", (s->stop_ns - s->start_ns) / NSEC_PER_MSEC);
	session_result_write_stopped(s, &w);
	session_result_write_pre(s, &w);
	verdict = session_verdict_write(s, &r->summary, &w);
	session_digest_sort(&r->summary);
	found = session_findings_find(s, &r->summary, r->releases, r->locks, &unknown);
	answer = answer_of(found, &s->reason, r->summary.waits.calm_ms,
			   waiting && !waiting->off_reason && verdict != VERDICT_INCONCLUSIVE);
	session_headline_write(&r->summary, s, found && found->count ? &found->items[0] : NULL,
			       &answer, headline, headline_space(&w));
	answer_write(&answer, &w);
	jsonw_string(&w, "headline", headline);
	session_findings_write(found, unknown, &w);
	session_waits_write(&r->summary.waits, &w);
	session_cpu_write(&r->summary.cpu, &w);
	session_neighbours_write_cpu(s, &w);
	if (s->has_pressure_end)
		psi_write(&s->pressure_end, &w, "pressure_end");
	held_triggers_write(s->held, &w, "held");
	if (s->oom_kills.count)
		jsonw_u64(&w, "oom_kills", s->oom_kills.count);
	session_result_stacks(s, &bytes);
	jsonw_u64(&w, "memory_bytes", bytes);
	jsonw_u64(&w, "line_bytes", r->bytes.used);
	/* These take the space that is left, so they come last. */
	session_digest_write(&r->summary, &w);
	event_line_end(r->lines, &w);
}

static void report_free(struct report *r)
{
	if (!r)
		return;
	frame_json_done(&r->rendering);
	jsonw_done(&r->tail);
	session_digest_done(&r->summary);
	free(r->releases);
	free(r->locks);
	free(r->batch.data);
	free(r);
}

static struct report *report_new(struct session_result *s, const struct event_lines *lines,
				 struct symbols *symbols, const bool *hurry)
{
	struct report *r = calloc(1, sizeof(*r));
	struct output_queue_stats stats;

	if (!r)
		return NULL;
	if (frame_json_init(&r->rendering, symbols) < 0 || session_digest_init(&r->summary) < 0) {
		report_free(r);
		return NULL;
	}
	r->session = s;
	r->lines = lines;
	r->hurry = hurry;
	r->subject = session_result_subject(s);
	r->bytes.max = LINE_BYTES_SESSION - MIN(LINE_BYTES_SESSION, s->withheld_bytes);
	jsonw_init(&r->tail, TAIL_BYTES);
	output_queue_stats(lines->output, &stats);
	r->batch.limit = MIN((size_t)BATCH_BYTES, stats.queue_bytes / BATCH_SHARE);
	return r;
}

static void put_stacks(struct report *r, const struct signal *signal)
{
	struct stack_table *stacks = &signal->taken->stacks;

	r->signal = signal;
	if (stacks->count)
		qsort(stacks->items, stacks->count, sizeof(struct stack *), by_weight);
	if (signal->kind->stacks_of == STACKS_WAKING)
		r->releases = calloc(stacks->count + 1, sizeof(*r->releases));
	for (size_t i = 0; i < stacks->count; i++)
		if (stacks->items[i]->wait == WAIT_RUNS)
			session_digest_meet(&r->summary, stacks->items[i]);
	/* Skips a stack with samples that were all replaced by better unwinds (offcpu.c). */
	for (size_t i = 0; i < stacks->count; i++)
		if (stacks->items[i]->count)
			put_stack(r, stacks->items[i]);
	flush_batch(r);
	if (signal->kind->stacks_of == STACKS_WAITING)
		session_waits_count_threads(&r->summary.waits, stacks);
}

void session_report_write(struct session_result *s, const struct event_lines *lines,
			  struct symbols *symbols, const bool *hurry)
{
	struct report *r = report_new(s, lines, symbols, hurry);
	size_t bytes;

	if (!r) {
		event_line_error(lines, NULL, "queue_full", "give the agent more memory", NULL,
				 NULL,
				 "no memory to write the session in %s: its %zu stacks are lost",
				 s->cgroup, session_result_stacks(s, &bytes));
		return;
	}
	session_facts_read_disks(s);
	session_pools_scale(s);
	session_waits_set_phases(&r->summary.waits, s);
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (s->signals[i] && s->signals[i]->taken)
			put_stacks(r, s->signals[i]);
	if (lock_waits_of(s->signals))
		condition_locks_mark(&r->summary.conditions, lock_waits_of(s->signals));
	wait_for_room(r);
	session_lines_put(s, &r->summary.waits.places, lines, &r->subject);
	r->locks = lock_names_read(s, symbols);
	session_locks_put(s, lines, &r->subject, r->releases, r->locks);
	session_chains_put(s, &r->summary, r->locks, lines, &r->subject);
	session_calls_put(s, &r->summary.cpu, lines, &r->subject);
	put_end(r);
	s->line_bytes = r->bytes.used;
	report_free(r);
}
