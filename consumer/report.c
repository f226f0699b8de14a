/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "consumer/naming.h"
#include "consumer/summary.h"
#include "shared/clock.h"
#include "shared/macro.h"

/* Longest function name, path and such in a frame: a line must hold at least one frame. */
#define TEXT_MAX 512

/* An output that has not moved for this long is taken as stopped. */
#define STALL_NS (2 * NSEC_PER_SEC)

/* For "]", the keys of a split stack and "}". */
#define TAIL_BYTES 96

struct report {
	struct session *session;
	const struct lines *lines;
	struct symbols *symbols;
	const bool *hurry;
	struct line_subject subject;
	struct summary summary;
	struct jsonw frames;	     /* text of all frames of one stack */
	size_t ends[HIT_FRAMES_MAX]; /* end of each frame's text in it */
	size_t head_bytes;	     /* of a stack's first line, the longest head */
	struct named_frame named[HIT_FRAMES_MAX];
};

/* Leaves a quarter of the queue to the main thread. False when the output does not move. */
static bool wait_for_room(const struct report *r)
{
	struct output_stats stats;
	uint64_t moved_ns = clock_mono_ns(), written = 0;

	for (;;) {
		output_stats(r->lines->output, &stats);
		if (stats.queued_bytes < stats.queue_bytes / 4 * 3)
			return true;
		if (stats.bytes != written) {
			written = stats.bytes;
			moved_ns = clock_mono_ns();
		}
		if (__atomic_load_n(r->hurry, __ATOMIC_RELAXED) ||
		    clock_mono_ns() - moved_ns > STALL_NS)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
	if (text)
		jsonw_string_n(w, key, text, strnlen(text, TEXT_MAX));
	else
		jsonw_null(w, key);
}

static void write_frame(struct jsonw *w, const struct named_frame *f)
{
	jsonw_object(w, NULL);
	put_text(w, "fn", f->fn);
	if (!f->fn)
		jsonw_string(w, "why", f->why ? f->why : "unknown");
	put_text(w, "module", f->module);
	if (f->build_id_bytes)
		jsonw_hex(w, "build_id", f->build_id, MIN(f->build_id_bytes, (uint8_t)20));
	if (f->has_offset)
		jsonw_u64(w, "offset", f->offset);
	jsonw_string(w, "kind", f->kind);
	jsonw_object_end(w);
}

/* Names all frames and renders each as JSON, once, however many lines they will take. */
static size_t render(struct report *r, const struct stack *stack)
{
	size_t n = MIN((size_t)stack->kernel_frames + stack->user_frames, (size_t)HIT_FRAMES_MAX);

	jsonw_reset(&r->frames);
	jsonw_array(&r->frames, NULL);
	for (size_t i = 0; i < n; i++) {
		naming_frame(r->symbols, stack, i, &r->named[i]);
		write_frame(&r->frames, &r->named[i]);
		r->ends[i] = r->frames.bytes;
	}
	return jsonw_end(&r->frames) < 0 ? 0 : n;
}

static void write_head(const struct report *r, const struct stack *stack, struct jsonw *w, size_t n,
		       bool first)
{
	const char *why;
	enum quality quality = naming_quality(stack, n ? &r->named[n - 1] : NULL, &why);

	line_begin(r->lines, w, "stack", &r->subject);
	jsonw_string(w, "signal", signal_name(SIGNAL_ONCPU));
	jsonw_string(w, "phase", stack->phase == PHASE_DURING ? "during" : "before");
	jsonw_u64(w, "pid", stack->tgid);
	jsonw_u64(w, "start_ns", stack->start_ns);
	jsonw_string(w, "comm", stack->comm);
	put_text(w, "exe", stack->exe ? stack->exe->path : NULL);
	if (!stack->exe)
		jsonw_string(w, "exe_reason",
			     stack->flags & SAMPLE_KTHREAD ? "kernel thread"
							   : "its mappings were not read in time");
	if (first) {
		jsonw_u64(w, "threads", stack->threads);
		jsonw_u64(w, "count", stack->count);
		jsonw_u64(w, "weight_ns", stack->weight_ns);
	}
	jsonw_string(w, "quality", quality_name(quality));
	if (why)
		jsonw_string(w, "quality_reason", why);
}

/* How many frames from `from` on fit behind a head of that many bytes; at least one. */
static size_t fit(const struct report *r, size_t from, size_t n)
{
	size_t start = from ? r->ends[from - 1] : 1, last = from + 1;
	size_t room = r->lines->max_bytes > r->head_bytes + TAIL_BYTES
			      ? r->lines->max_bytes - r->head_bytes - TAIL_BYTES
			      : 0;

	while (last < n && r->ends[last] - start < room)
		last++;
	return last - from;
}

static bool put_part(struct report *r, const struct stack *stack, size_t n, size_t *from,
		     unsigned int part, unsigned int parts)
{
	size_t start, take;
	struct jsonw w;

	write_head(r, stack, &w, n, part == 1);
	take = n ? fit(r, *from, n) : 0;
	/* The text of frame i begins behind the comma that ends frame i - 1. */
	start = *from ? r->ends[*from - 1] + 1 : 1;
	jsonw_array(&w, "frames");
	if (take)
		jsonw_raw(&w, NULL, r->frames.data + start, r->ends[*from + take - 1] - start);
	jsonw_array_end(&w);
	if (parts > 1) {
		jsonw_u64(&w, "stack_id", stack->number);
		jsonw_u64(&w, "part", part);
		jsonw_u64(&w, "parts", parts);
	}
	*from += take;
	return line_end(r->lines, &w);
}

static unsigned int count_parts(struct report *r, const struct stack *stack, size_t n)
{
	unsigned int parts = 0;
	size_t from = 0;
	struct jsonw w;

	write_head(r, stack, &w, n, true);
	r->head_bytes = w.bytes;
	jsonw_done(&w);
	do {
		parts++;
		from += n ? fit(r, from, n) : 0;
	} while (from < n);
	return parts;
}

static void put_stack(struct report *r, const struct stack *stack)
{
	struct ledger *ledger = &r->session->phase[stack->phase];
	size_t n = render(r, stack), from = 0;
	unsigned int parts;
	bool whole = true;

	summary_add(&r->summary, stack, r->named, n);
	parts = count_parts(r, stack, n);
	if (!wait_for_room(r))
		whole = false;
	for (unsigned int part = 1; whole && part <= parts; part++)
		whole = put_part(r, stack, n, &from, part, parts);
	if (!whole) {
		ledger->emitted -= stack->count;
		ledger->lost[DROP_QUEUE_FULL] += stack->count;
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct stack *x = *(struct stack *const *)a, *y = *(struct stack *const *)b;

	if (x->phase != y->phase)
		return x->phase == PHASE_DURING ? -1 : 1;
	if (x->weight_ns != y->weight_ns)
		return x->weight_ns < y->weight_ns ? 1 : -1;
	return x->number < y->number ? -1 : 1;
}

static void write_phase(struct jsonw *w, const char *key, const struct ledger *l)
{
	jsonw_object(w, key);
	jsonw_u64(w, "attempted", l->attempted);
	jsonw_u64(w, "emitted", l->emitted);
	jsonw_object_end(w);
}

static void write_ledger(const struct session *s, const struct ledger *all, struct jsonw *w)
{
	jsonw_object(w, "ledger");
	jsonw_object(w, signal_name(SIGNAL_ONCPU));
	jsonw_u64(w, "attempted", all->attempted);
	jsonw_u64(w, "emitted", all->emitted);
	jsonw_object(w, "lost");
	for (int i = 0; i < DROP_COUNT_; i++)
		if (all->lost[i])
			jsonw_u64(w, ledger_drop_name((enum drop)i), all->lost[i]);
	jsonw_object_end(w);
	write_phase(w, "before", &s->phase[PHASE_BEFORE]);
	write_phase(w, "during", &s->phase[PHASE_DURING]);
	if (s->expected != UINT64_MAX) {
		jsonw_u64(w, "expected", s->expected);
	} else {
		jsonw_null(w, "expected");
		jsonw_string(
			w, "expected_reason",
			"the CPU time of this choice of processes is not counted by the kernel");
	}
	jsonw_u64(w, "stacks", s->stacks.count);
	jsonw_object_end(w);
	jsonw_object_end(w);
}

static enum verdict judge(const struct session *s, const struct ledger *all,
			  const char **ret_reason)
{
	if (s->rule && !s->rule->signals_auto && s->rule->signals & ~(1u << SIGNAL_ONCPU)) {
		*ret_reason = "the rule asks for signals that this version cannot sample";
		return VERDICT_INCONCLUSIVE;
	}
	return ledger_verdict(all, &s->phase[PHASE_DURING], s->expected, ret_reason);
}

static void put_end(struct report *r)
{
	struct session *s = r->session;
	struct ledger all = {};
	enum verdict verdict;
	char headline[1024];
	const char *why;
	struct jsonw w;

	ledger_add(&all, &s->phase[PHASE_BEFORE]);
	ledger_add(&all, &s->phase[PHASE_DURING]);
	verdict = judge(s, &all, &why);
	line_begin(r->lines, &w, "session.end", &r->subject);
	jsonw_u64(&w, "duration_ms", (s->stop_ns - s->start_ns) / NSEC_PER_MSEC);
	jsonw_u64(&w, "pre_ms", s->pre_ms);
	write_ledger(s, &all, &w);
	jsonw_string(&w, "verdict", verdict_name(verdict));
	if (why)
		jsonw_string(&w, "verdict_reason", why);
	jsonw_milli(&w, "lost_share",
		    all.attempted ? (int64_t)(ledger_lost(&all) * 1000 / all.attempted) : 0);
	summary_sort(&r->summary);
	summary_headline(&r->summary, s, headline, sizeof(headline));
	jsonw_string(&w, "headline", headline);
	if (s->has_pressure_end)
		psi_write(&s->pressure_end, &w, "pressure_end");
	jsonw_u64(&w, "memory_bytes", s->stacks.bytes);
	/* What takes the room that is left comes last. */
	summary_write(&r->summary, &w);
	line_end(r->lines, &w);
}

void report_session(struct session *s, const struct lines *lines, struct symbols *symbols,
		    const bool *hurry)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r || summary_init(&r->summary) < 0) {
		free(r);
		line_error(lines, NULL, "queue_full", "give the agent more memory", NULL, NULL,
			   "no memory to write the session in %s: its %zu stacks are lost",
			   s->cgroup, s->stacks.count);
		return;
	}
	r->session = s;
	r->lines = lines;
	r->symbols = symbols;
	r->hurry = hurry;
	r->subject = (struct line_subject){
		.rule = s->rule,
		.generation = s->set ? s->set->generation : 0,
		.cgroup = s->cgroup,
		.cgroup_id = s->cgroup_id,
		.session = s->id,
	};
	jsonw_init(&r->frames, 2u << 20);
	if (s->stacks.count)
		qsort(s->stacks.items, s->stacks.count, sizeof(struct stack *), by_weight);
	for (size_t i = 0; i < s->stacks.count; i++)
		put_stack(r, s->stacks.items[i]);
	wait_for_room(r);
	put_end(r);
	jsonw_done(&r->frames);
	summary_done(&r->summary);
	free(r);
}
