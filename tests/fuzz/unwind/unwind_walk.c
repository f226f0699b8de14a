/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_walk.c: a whole walk of bpf/unwind/unwind_walk.h over any ranges, process table, files,
 * pool, rules, registers and memory, while another thread writes to all of them: the ranges between
 * two steps (a filling), the rest also in the middle of one. A walk is bounded in steps and in
 * look-ups; no frame is reported but the innermost and those that were in a range; frames ascend,
 * but at a signal's; the same input gives the same stack, whatever walks of other fillings are
 * remembered. The tables lie in memory of exactly their size, so that an access beyond one shows.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/abi/unwind_abi.h"
#include "shared/tools/macro.h"

#define SMALL	  16 /* ranges and mappings of the input; the rest repeats or is 0 */
#define FILES	  4
#define RULES	  16
#define ELEMENTS  64
#define CHANGES	  8
#define MEMORY_AT 0x10000u
#define PAGE	  4096u
/*
 * Of one step, reads included: a signal's, the search for return addresses, and the code that is
 * followed, each instruction of which may need two reads, and searched.
 */
#define LOOKUPS (UNWIND_SEARCH_STEPS + 15 + 2 * UNWIND_GAP_WORDS + 2 * 160 + 93)

/* What is written when the clock is there: look-ups and steps advance it. */
struct change {
	__u8 when, what;
	__u16 where;
	__u32 low, high;
};

enum what {
	CHANGE_RANGE,
	CHANGE_COUNT,
	CHANGE_FILL,
	CHANGE_RANGES_END_, /* those above only between two steps */
	CHANGE_MAPPING,
	CHANGE_PUBLISHED,
	CHANGE_FILE,
	CHANGE_RULE,
	CHANGE_ELEMENT,
	CHANGE_MEMORY,
	CHANGE_COUNT_,
};

/* The input begins with this; the memory follows. */
struct input {
	__u64 pc, sp, fp;
	__u32 exact, fp_lost, count;
	__u32 repeat; /* bytes from one copy of the ranges to the next; 0: no copies */
	struct change changes[CHANGES];
	__u64 ranges[SMALL];
	struct unwind_mapping mappings[SMALL];
	struct unwind_file files[FILES];
	struct unwind_rule rules[RULES];
	__u64 elements[ELEMENTS];
};

/* The tables of one run, each an allocation of its own. */
static struct {
	struct change changes[CHANGES];
	struct unwind_ranges *ranges;
	struct unwind_process *process;
	struct unwind_file *files;
	struct unwind_rule *rules;
	__u64 *elements;
	uint8_t *memory;
	size_t memory_bytes;
	unsigned int clock, lookups;
	__u64 sp_before; /* the step */
} run;

/* Other ranges are another filling, of which nothing is known yet. The walk is taken to go by it.
 */
static void forget(void);

static void put(void *to, size_t bytes, size_t at, const struct change *change)
{
	__u64 word = (__u64)change->high << 32 | change->low;

	if (bytes >= sizeof(word))
		memcpy((uint8_t *)to + at % (bytes / sizeof(word)) * sizeof(word), &word,
		       sizeof(word));
}

static void apply(const struct change *change)
{
	switch (change->what % CHANGE_COUNT_) {
	case CHANGE_RANGE:
		forget();
		put(run.ranges->ranges, sizeof(run.ranges->ranges), change->where, change);
		break;
	case CHANGE_COUNT:
		forget();
		run.ranges->count = change->low;
		break;
	case CHANGE_FILL:
		run.ranges->table_generation = change->low;
		break;
	case CHANGE_MAPPING:
		put(run.process->mappings, sizeof(run.process->mappings), change->where, change);
		break;
	case CHANGE_PUBLISHED:
		run.process->published = change->low;
		break;
	case CHANGE_FILE:
		put(run.files, FILES * sizeof(*run.files), change->where, change);
		break;
	case CHANGE_RULE:
		put(run.rules, RULES * sizeof(*run.rules), change->where, change);
		break;
	case CHANGE_ELEMENT:
		put(run.elements, ELEMENTS * sizeof(*run.elements), change->where, change);
		break;
	case CHANGE_MEMORY:
		put(run.memory, run.memory_bytes, change->where, change);
		break;
	default:
		break;
	}
}

static void tick(bool within_step)
{
	run.clock++;
	for (size_t i = 0; i < CHANGES; i++) {
		bool ranges = run.changes[i].what % CHANGE_COUNT_ < CHANGE_RANGES_END_;

		if (run.changes[i].when == 0 || run.clock < run.changes[i].when ||
		    (within_step && ranges))
			continue;
		run.changes[i].when = 0;
		apply(&run.changes[i]);
	}
}

static void look_up(void)
{
	run.lookups++;
	assert(run.lookups <= LOOKUPS);
	tick(true);
}

static inline const __u64 *unwind_element(__u32 index)
{
	look_up();
	return index < ELEMENTS ? &run.elements[index] : NULL;
}

static inline const struct unwind_file *unwind_file_at(__u32 index)
{
	look_up();
	return index < FILES ? &run.files[index] : NULL;
}

static inline const struct unwind_rule *unwind_rule_at(__u32 index)
{
	look_up();
	return index < RULES ? &run.rules[index] : NULL;
}

/* Memory comes in whole pages: after the end of the input there are zeros. */
static inline long unwind_read(void *to, __u32 bytes, __u64 address)
{
	size_t room = (run.memory_bytes + PAGE - 1) / PAGE * PAGE, at = address - MEMORY_AT, there;

	look_up();
	if (address < MEMORY_AT || at > room || bytes > room - at)
		return -1;
	there = at < run.memory_bytes ? MIN(run.memory_bytes - at, (size_t)bytes) : 0;
	memcpy(to, run.memory + MIN(at, run.memory_bytes), there);
	memset((uint8_t *)to + there, 0, bytes - there);
	return 0;
}

#define UNWIND_HOST
#include "tests/unit/consumer/unwind/testing/mapped_file_testing.h"

#include "bpf/unwind/unwind_walk.h"

#include "tests/unit/consumer/unwind/testing/stack_walk_testing.h"

static void forget(void)
{
	taking_cache = (struct unwind_cache){ 0 };
}

/* Asked without the search: whether any range of the table holds it. */
static bool in_range(__u64 pc)
{
	__u32 count = MIN(run.ranges->count & (2 * UNWIND_RANGES - 1), (__u32)UNWIND_RANGES);

	for (__u32 i = 0; i < count; i++) {
		__u64 first = UNWIND_RANGE_PAGE(run.ranges->ranges[i]), page = pc >> 12;

		if (page >= first && page - first < UNWIND_RANGE_PAGES(run.ranges->ranges[i]))
			return true;
	}
	return false;
}

static void *copy(const void *from, size_t bytes)
{
	void *to = malloc(bytes ? bytes : 1);

	if (!to)
		abort();
	if (bytes > 0)
		memcpy(to, from, bytes);
	return to;
}

static void fill(const struct input *in, __u64 number)
{
	run.ranges = calloc(1, sizeof(*run.ranges));
	run.process = calloc(1, sizeof(*run.process));
	if (!run.ranges || !run.process)
		abort();
	run.ranges->table_generation = run.process->published = number;
	run.ranges->count = in->count;
	for (size_t i = 0; i < UNWIND_RANGES && (i < SMALL || in->repeat); i++) {
		run.ranges->ranges[i] =
			in->ranges[i % SMALL] + UNWIND_RANGE(i / SMALL * in->repeat, 0);
		run.process->mappings[i] = in->mappings[i % SMALL];
		run.ranges->checks[i] = in->exact & 0x800 ? in->elements[i % ELEMENTS] : 0;
	}
	mapped_file_there = (struct mapped_file_found){
		.end = in->exact & 0x1000 ? in->elements[1] : 0,
		.number = in->elements[0],
	};
}

/* Where the stacks end, by spare bits of the input: all, some or none of it is known. */
static struct unwind_bounds bounds_of(const struct input *in, size_t bytes)
{
	__u64 end = MEMORY_AT + (bytes + PAGE - 1) / PAGE * PAGE;

	return (struct unwind_bounds){
		.main = in->exact & 0x100 ? end : 0,
		.thread = in->exact & 0x200 ? MEMORY_AT + (in->exact >> 16) / 8 * 8 : 0,
		.alternate = in->exact & 0x400 ? MEMORY_AT : 0,
		.alternate_bytes = in->exact & 0x400 ? (in->fp_lost >> 16) : 0,
	};
}

/* A walk under the filling `number`, with the cache of earlier ones. */
static void take(const struct input *in, __u64 number, const uint8_t *memory, size_t bytes,
		 taking_before before, struct taken *ret)
{
	const struct unwind_frame from = {
		.pc = in->pc,
		.sp = in->sp,
		.fp = in->fp,
		.link = in->exact & 2 ? in->fp : 0,
		.exact = in->exact & 1,
		.fp_lost = in->fp_lost & 1,
		.bounds = bounds_of(in, bytes),
	};

	run.clock = run.lookups = 0;
	memcpy(run.changes, in->changes, sizeof(run.changes));
	fill(in, number);
	run.files = copy(in->files, sizeof(in->files));
	run.rules = copy(in->rules, sizeof(in->rules));
	run.elements = copy(in->elements, sizeof(in->elements));
	run.memory = copy(memory, bytes);
	run.memory_bytes = bytes;
	taking(&from, run.ranges, run.process, before, ret);
	free(run.memory);
	free(run.elements);
	free(run.rules);
	free(run.files);
	free(run.process);
	free(run.ranges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The last step, and the possible reports of the next. */
static void check_step(const struct unwind_walk *w, const struct taken *so_far)
{
	if (so_far->count > 0) {
		/* A leaf's return address may be in a register, and no bytes of it on the stack. */
		assert(w->frame.sp > run.sp_before || w->frame.exact ||
		       (so_far->count == 1 && w->frame.sp == run.sp_before));
		assert(w->frame.sp <= w->frame.top && w->frame.signals <= UNWIND_SIGNALS_MAX);
		assert(w->stop_reason == UNWIND_END_NONE);
		/*
		 * The range was there when the frame was reported: no thread writes to one in a
		 * step.
		 */
		assert(so_far->count == 1 || in_range(so_far->frames[so_far->count - 1]));
	}
	run.lookups = 0;
	tick(false);
	run.sp_before = w->frame.sp;
}

/* The same once more, behind a walk of another filling where each range is walked otherwise. */
static void take_again(const struct input *in, const uint8_t *memory, size_t bytes,
		       struct taken *ret)
{
	struct input other = *in;

	for (size_t i = 0; i < SMALL; i++)
		other.mappings[i] = in->mappings[(i + 1) % SMALL];
	forget();
	take(&other, 2, memory, bytes, check_step, ret);
	take(in, 1, memory, bytes, check_step, ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t head = MIN(bytes, sizeof(struct input));
	struct input in = { 0 };
	struct taken once, again;

	memcpy(&in, data, head);
	forget();
	take(&in, 1, data + head, bytes - head, check_step, &once);
	take_again(&in, data + head, bytes - head, &again);
	assert(once.count > 0 && once.count <= STACK_FRAMES && once.frames[0] == in.pc);
	assert(once.end > UNWIND_END_NONE && once.end < UNWIND_END_COUNT_);
	assert(once.end != UNWIND_END_DEPTH || once.count == STACK_FRAMES);
	assert(once.end != UNWIND_END_SWITCHED || once.count == 1);
	assert(once.count == again.count && once.end == again.end);
	assert(memcmp(once.frames, again.frames, sizeof(once.frames)) == 0);
	return 0;
}
