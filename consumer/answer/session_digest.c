/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/session_digest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/naming/module_advice.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#define TEXT_MAX 256 /* of a name in session.end */

/* Bytes of session.end after the rows. */
#define TAIL_BYTES 64

static const char other[] = "(other)";

/* Why a stack taken by frame pointers is short when its process has an unwind table by now. */
static const char before_table[] = "before_table";

int session_digest_init(struct session_digest *s)
{
	*s = (struct session_digest){};
	pool_places_init(&s->pools);
	condition_locks_init(&s->conditions);
	idmap_init(&s->walked, SUMMARY_PROCESSES);
	s->functions.rows = calloc(SUMMARY_KEYS, sizeof(*s->functions.rows));
	s->modules.rows = calloc(SUMMARY_KEYS, sizeof(*s->modules.rows));
	s->broken.rows = calloc(SUMMARY_KEYS, sizeof(*s->broken.rows));
	if (s->functions.rows && s->modules.rows && s->broken.rows &&
	    session_waits_init(&s->waits) == 0 && function_growth_init(&s->growth) == 0)
		return 0;
	session_digest_done(s);
	return -ENOMEM;
}

void session_digest_done(struct session_digest *s)
{
	free(s->functions.rows);
	free(s->modules.rows);
	free(s->broken.rows);
	idmap_done(&s->walked);
	chains_done(&s->chains);
	session_waits_done(&s->waits);
	function_growth_done(&s->growth);
	pool_places_done(&s->pools);
	condition_locks_done(&s->conditions);
	*s = (struct session_digest){};
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return (hash ^ 0xff) * 0x100000001b3ULL;
}

/* Returns the row of the pair, or the free row for it. Open addressing over SUMMARY_KEYS rows. */
static struct tally_row *find_row(const struct tally *t, const char *name, const char *detail,
				  uint64_t *ret_hash)
{
	/* 0 marks a free row */
	uint64_t hash = hash_text(hash_text(0xcbf29ce484222325ULL, name), detail) | 1;
	size_t i = hash % SUMMARY_KEYS;

	while (t->rows[i].hash && t->rows[i].hash != hash)
		i = (i + 1) % SUMMARY_KEYS;
	*ret_hash = hash;
	return &t->rows[i];
}

/*
 * Adds weight to the row of the pair. When the table is three quarters full, new pairs share one
 * row; known pairs keep theirs. Returns the row.
 */
static struct tally_row *tally_add(struct tally *t, const char *name, const char *detail,
				   uint64_t weight)
{
	uint64_t hash;
	struct tally_row *row = find_row(t, name, detail, &hash);

	if (!row->hash && t->count >= SUMMARY_KEYS / 4 * 3) {
		name = other;
		detail = NULL;
		row = find_row(t, name, detail, &hash);
	}
	if (!row->hash) {
		*row = (struct tally_row){ .name = name, .detail = detail, .hash = hash };
		t->count++;
	}
	row->weight += weight;
	t->total += weight;
	return row;
}

/* Returns a hash of the stack's process, never 0. Two processes in 2^63 share a hash. */
static uint64_t hash_process(const struct stack *stack)
{
	return ((stack->start_ns ^ (uint64_t)stack->tgid << 40) * 0x9e3779b97f4a7c15ULL) | 1;
}

void session_digest_meet(struct session_digest *s, const struct stack *stack)
{
	uint64_t process = hash_process(stack);

	/* Beyond SUMMARY_PROCESSES a process counts as one without a table. */
	if (stack->flags & SAMPLE_UNWOUND && !idmap_get(&s->walked, process))
		idmap_put(&s->walked, process, s);
}

/*
 * Returns a word for why a broken stack ended, or NULL if it was taken by frame pointers and the
 * process has no table.
 */
static const char *find_reason(const struct session_digest *s, const struct stack *stack,
			       enum unwind_end end)
{
	if (end == UNWIND_END_UNPROVED || stack->flags & SAMPLE_UNWOUND)
		return unwind_end_word(end);
	return idmap_get(&s->walked, hash_process(stack)) ? before_table : NULL;
}

/* Returns whether the walk by a table reached one of the frames by the frame pointer. */
static bool is_followed(const struct stack *stack, size_t n)
{
	for (size_t i = stack->kernel_frames + 1u; i < n; i++)
		if (stack_sample_followed(&stack->frames[i]))
			return true;
	return false;
}

/* Adds the frames of a language runtime, and how the walk over them ended. */
static void add_runtime(struct session_digest *s, const struct stack *stack,
			const struct named_frame *frames, size_t n)
{
	if (!(stack->flags & SAMPLE_RUNTIME))
		return;
	s->runtime_ends[stack->runtime_end] += stack->count;
	for (size_t i = stack->kernel_frames; i < n; i++) {
		if (!frame_name_is_runtime(&frames[i]))
			continue;
		s->runtime_frames += stack->count;
		s->runtime_unnamed += frames[i].fn ? 0 : stack->count;
	}
}

/*
 * Returns the index of the frame that a sample counts for: the innermost function of the
 * application, if a language runtime interprets it, else the innermost user frame, else the
 * innermost kernel frame.
 */
static size_t find_self(const struct stack *stack, const struct named_frame *frames, size_t n)
{
	for (size_t i = stack->kernel_frames; stack->flags & SAMPLE_RUNTIME && i < n; i++)
		if (frame_name_is_runtime(&frames[i]) && frames[i].fn)
			return i;
	return stack->user_frames ? stack->kernel_frames : 0;
}

/* Adds the quality of the stack, and its frames without a name. */
static void add_quality(struct session_digest *s, enum signal_bit signal, const struct stack *stack,
			const struct named_frame *frames, size_t n)
{
	const struct named_frame *root = frame_name_root(frames, n);
	const char *why;
	enum quality quality = frame_name_quality(stack, frames, n, &why);
	bool broken = frame_name_native_quality(stack, frames, n, &why) == QUALITY_BROKEN;
	size_t gap = broken ? frame_name_gap(stack, frames, n) : 0;
	enum unwind_end end = gap ? UNWIND_END_UNPROVED : frame_name_end(stack, frames, n);

	s->samples[signal][quality] += stack->count;
	s->stood_ns[signal] += stack->weight_ns;
	s->frames += n * stack->count;
	add_runtime(s, stack, frames, n);
	for (size_t i = 0; i < n; i++)
		if (!frames[i].fn && !frame_name_is_runtime(&frames[i]))
			tally_add(&s->modules, frames[i].module, frames[i].reason, stack->count);
	if (stack->flags & SAMPLE_UNWOUND)
		s->ends[end] += stack->count;
	else if (stack->user_frames)
		s->by_pointers += stack->count;
	if (stack->flags & SAMPLE_UNWOUND && is_followed(stack, n))
		s->followed += stack->count;
	/* If a caller may be missing, the code below the gap keeps no frame pointer. */
	if (gap)
		root = &frames[gap - 1];
	if (broken && stack->user_frames && root && root->module)
		tally_add(&s->broken, root->module, find_reason(s, stack, end), stack->count)
			->rowless = frame_name_rowless(stack, root);
}

void session_digest_add(struct session_digest *s, enum signal_bit signal, const struct stack *stack,
			const struct named_frame *frames, size_t n)
{
	size_t self = find_self(stack, frames, n);

	add_quality(s, signal, stack, frames, n);
	function_growth_add(&s->growth, stack, frames, n);
	session_cpu_add(&s->cpu, stack, frames, n);
	garbage_add(&s->garbage, stack, frames, n);
	s->count[stack->phase] += stack->count;
	s->weight_ns[stack->phase] += stack->weight_ns;
	if (n && stack->phase == PHASE_DURING)
		tally_add(&s->functions, frames[self].fn, frames[self].module, stack->weight_ns);
}

void session_digest_add_other(struct session_digest *s, enum signal_bit signal,
			      const struct stack *stack, const struct named_frame *frames, size_t n)
{
	add_quality(s, signal, stack, frames, n);
}

uint64_t session_digest_samples(const struct session_digest *s, enum signal_bit signal)
{
	uint64_t all = 0;

	for (int i = 0; i < QUALITY_COUNT_; i++)
		all += s->samples[signal][i];
	return all;
}

static int compare_weight(const void *a, const void *b)
{
	const struct tally_row *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int64_t share_milli(uint64_t part, uint64_t all)
{
	return all ? (int64_t)(part * 1000 / all) : 0;
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
	if (text)
		jsonw_string_n(w, key, text, strnlen(text, TEXT_MAX));
	else
		jsonw_null(w, key);
}

void session_digest_sort(struct session_digest *s)
{
	qsort(s->functions.rows, SUMMARY_KEYS, sizeof(*s->functions.rows), compare_weight);
	qsort(s->modules.rows, SUMMARY_KEYS, sizeof(*s->modules.rows), compare_weight);
	qsort(s->broken.rows, SUMMARY_KEYS, sizeof(*s->broken.rows), compare_weight);
}

static void write_function(const struct tally *t, const struct tally_row *row, struct jsonw *w)
{
	jsonw_object(w, NULL);
	put_text(w, "fn", row->name);
	put_text(w, "module", row->detail);
	jsonw_milli(w, "share", share_milli(row->weight, t->total));
	jsonw_object_end(w);
}

static void write_module(const struct tally *t, const struct tally_row *row, struct jsonw *w)
{
	jsonw_object(w, NULL);
	put_text(w, "module", row->name);
	jsonw_u64(w, "frames", row->weight);
	jsonw_string(w, "why", row->detail ? row->detail : "unknown");
	jsonw_object_end(w);
}

static void write_broken(const struct tally *t, const struct tally_row *row, struct jsonw *w)
{
	jsonw_object(w, NULL);
	put_text(w, "module", row->name);
	jsonw_u64(w, "samples", row->weight);
	if (row->detail)
		jsonw_string(w, "reason", row->detail);
	jsonw_object_end(w);
}

/* Writes the heaviest rows, as many as fit with keep_bytes left below the writer's limit. */
static void write_rows(const struct tally *t, size_t max, size_t keep_bytes,
		       void (*write)(const struct tally *t, const struct tally_row *row,
				     struct jsonw *w),
		       struct jsonw *w)
{
	for (size_t i = 0; i < MIN(t->count, max); i++) {
		struct jsonw_mark mark = jsonw_mark(w);

		write(t, &t->rows[i], w);
		if (!w->error && w->bytes + keep_bytes <= w->max_bytes)
			continue;
		jsonw_rewind(w, mark);
		break;
	}
}

/* Returns whether frame pointers would help the stacks that ended in this row. */
static bool wants_pointers(const struct tally_row *broken)
{
	return !broken->detail ||
	       !strcmp(broken->detail, unwind_end_word(UNWIND_END_NO_POINTERS)) ||
	       !strcmp(broken->detail, unwind_end_word(UNWIND_END_UNPROVED));
}

/* Returns the module's row among the heaviest rows in which stacks ended, or NULL. */
static const struct tally_row *find_ended(const struct session_digest *s, const char *module)
{
	for (size_t i = 0; i < MIN(s->broken.count, (size_t)SUMMARY_MODULES); i++)
		if (wants_pointers(&s->broken.rows[i]) &&
		    strcmp(s->broken.rows[i].name, module) == 0)
			return &s->broken.rows[i];
	return NULL;
}

static bool is_unnamed(const struct session_digest *s, const char *module)
{
	for (size_t i = 0; i < MIN(s->modules.count, (size_t)SUMMARY_MODULES); i++)
		if (s->modules.rows[i].name && strcmp(s->modules.rows[i].name, module) == 0)
			return true;
	return false;
}

/* Appends the sentence if there is space. Returns the number of sentences written. */
static size_t put_sentence(struct jsonw *w, const char *text)
{
	struct jsonw_mark mark = jsonw_mark(w);

	jsonw_string(w, NULL, text);
	if (!w->error && w->bytes + TAIL_BYTES <= w->max_bytes)
		return 1;
	jsonw_rewind(w, mark);
	return 0;
}

/*
 * Appends module_advice's sentence about a module, if any. `ended` is the module's row if stacks
 * ended in it. Returns the number of sentences written.
 */
static size_t put_advice(struct jsonw *w, const char *module, const char *why,
			 const struct tally_row *ended)
{
	char text[SUMMARY_ADVICE_BYTES];

	if (!module ||
	    !module_advice(module, why, ended != NULL, ended ? ended->rowless : NULL, text))
		return 0;
	return put_sentence(w, text);
}

/*
 * Writes advice in this order: first, that a process has too many mappings, which is no module's
 * fault; then the heaviest modules without names; then the heaviest modules that only broke stacks.
 */
static void write_advice(const struct session_digest *s, struct jsonw *w)
{
	size_t wrote = 0;

	jsonw_array(w, "advice");
	if (s->ends[UNWIND_END_NO_PLACE])
		wrote += put_sentence(w, SUMMARY_NO_PLACE);
	for (size_t i = 0; i < MIN(s->modules.count, (size_t)SUMMARY_MODULES); i++) {
		const struct tally_row *row = &s->modules.rows[i];

		if (wrote < SUMMARY_ADVICE)
			wrote += put_advice(w, row->name, row->detail,
					    row->name ? find_ended(s, row->name) : NULL);
	}
	for (size_t i = 0; i < MIN(s->broken.count, (size_t)SUMMARY_MODULES); i++) {
		const char *module = s->broken.rows[i].name;

		if (wrote < SUMMARY_ADVICE && wants_pointers(&s->broken.rows[i]) &&
		    !is_unnamed(s, module))
			wrote += put_advice(w, module, NULL, &s->broken.rows[i]);
	}
	jsonw_array_end(w);
}

/* Writes the stack quality of each signal. */
static void write_by_signal(const struct session_digest *s, struct jsonw *w)
{
	jsonw_object(w, "by_signal");
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		if (!session_digest_samples(s, (enum signal_bit)i))
			continue;
		jsonw_object(w, rules_signal_name((enum signal_bit)i));
		for (int k = 0; k < QUALITY_COUNT_; k++)
			jsonw_u64(w, frame_name_of_quality((enum quality)k), s->samples[i][k]);
		jsonw_object_end(w);
	}
	jsonw_object_end(w);
}

/* Writes how complete the frames of language runtimes are; nothing if there are none. */
static void write_runtime(const struct session_digest *s, struct jsonw *w)
{
	static const char *const words[] = {
#define RUNTIME_END(id, word, help) word,
#include "shared/abi/runtime_ends.def"
#undef RUNTIME_END
	};
	uint64_t samples = 0;

	for (int i = 0; i < RUNTIME_ENDS_; i++)
		samples += s->runtime_ends[i];
	if (!samples)
		return;
	jsonw_object(w, "runtime");
	jsonw_u64(w, "samples", samples);
	for (int i = 0; i < RUNTIME_ENDS_; i++)
		jsonw_u64_nonzero(w, words[i], s->runtime_ends[i]);
	jsonw_u64(w, "frames", s->runtime_frames);
	jsonw_u64(w, "unnamed", s->runtime_unnamed);
	jsonw_object_end(w);
}

static void write_quality(const struct session_digest *s, struct jsonw *w)
{
	jsonw_object(w, "stack_quality");
	for (int i = 0; i < QUALITY_COUNT_; i++) {
		uint64_t samples = 0;

		for (int k = 0; k < SIGNAL_COUNT_; k++)
			samples += s->samples[k][i];
		jsonw_u64(w, frame_name_of_quality((enum quality)i), samples);
	}
	write_by_signal(s, w);
	jsonw_milli(w, "unnamed_share", share_milli(s->modules.total, s->frames));
	jsonw_u64(w, "by_frame_pointers", s->by_pointers);
	jsonw_u64(w, "partly_by_frame_pointers", s->followed);
	jsonw_object(w, "unwound");
	for (int i = UNWIND_END_NONE + 1; i < UNWIND_END_COUNT_; i++)
		if (s->ends[i])
			jsonw_u64(w, unwind_end_word((enum unwind_end)i), s->ends[i]);
	jsonw_object_end(w);
	write_runtime(s, w);
	jsonw_object_end(w);
}

bool session_digest_is_few(const struct session_digest *s)
{
	return s->count[PHASE_DURING] && s->count[PHASE_DURING] < SUMMARY_FEW;
}

void session_digest_write(const struct session_digest *s, struct jsonw *w)
{
	size_t room;

	write_quality(s, w);
	if (session_digest_is_few(s))
		jsonw_u64(w, "few_samples", s->count[PHASE_DURING]);
	room = w->max_bytes - MIN(w->bytes, w->max_bytes);
	jsonw_array(w, "top");
	/*
	 * Functions may take half of the space that is left, each list of modules half of the rest.
	 */
	write_rows(&s->functions, SUMMARY_TOP, room / 2, write_function, w);
	jsonw_array_end(w);
	jsonw_array(w, "modules_unnamed");
	write_rows(&s->modules, SUMMARY_MODULES, room / 4, write_module, w);
	jsonw_array_end(w);
	jsonw_array(w, "modules_broken");
	write_rows(&s->broken, SUMMARY_MODULES, room / 6, write_broken, w);
	jsonw_array_end(w);
	write_advice(s, w);
}

/* A row without a name combines many functions. */
const struct tally_row *session_digest_top(const struct session_digest *s)
{
	if (!s->functions.count)
		return NULL;
	for (size_t i = 0; i < s->functions.count; i++)
		if (s->functions.rows[i].name && s->functions.rows[i].name != other)
			return &s->functions.rows[i];
	return &s->functions.rows[0];
}
