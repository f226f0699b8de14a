/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_step.c: bpf/unwind/unwind.h over any tables, rules, registers and memory: what a consumer
 * that was taken over can write. A walk ends; where it does the frame is as before; frames ascend,
 * but at a signal's; nothing outside the given memory is used.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/abi/unwind_abi.h"
#include "shared/tools/macro.h"

#define RULES	  16
#define ELEMENTS  64
#define MEMORY_AT 0x10000u
#define PAGE	  4096u
#define FRAMES	  127

/* The input begins with this; the memory follows. */
struct input {
	__u64 pc, sp, fp, base;
	__u32 exact, fp_lost, by_fp, pad;
	struct unwind_place place;
	struct unwind_rule rules[RULES];
	__u64 elements[ELEMENTS];
};

static struct input in;
static const uint8_t *memory;
static size_t memory_bytes;

static const __u64 *unwind_element(__u32 index)
{
	return index < ELEMENTS ? &in.elements[index] : NULL;
}

static const struct unwind_rule *unwind_rule_at(__u32 index)
{
	return index < RULES ? &in.rules[index] : NULL;
}

/* Memory comes in whole pages: after the end of the input there are zeros. */
static long unwind_read(void *to, __u32 bytes, __u64 address)
{
	size_t room = (memory_bytes + PAGE - 1) / PAGE * PAGE, at = address - MEMORY_AT, there;

	if (address < MEMORY_AT || at > room || bytes > room - at)
		return -1;
	there = at < memory_bytes ? MIN(memory_bytes - at, (size_t)bytes) : 0;
	memcpy(to, memory + MIN(at, memory_bytes), there);
	memset((uint8_t *)to + there, 0, bytes - there);
	return 0;
}

#define UNWIND_HOST
#include "bpf/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Whether the search's answer is a row's of the pool, or none. */
static void check_search(__u64 pc)
{
	__u32 rule = unwind_search(&in.place, pc);
	bool found = rule == UNWIND_RULE_NONE;

	for (size_t i = 0; i < ELEMENTS && !found; i++)
		found = (__u16)(in.elements[i] >> 32) == rule;
	assert(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct unwind_frame f, before;
	enum unwind_end end = UNWIND_END_NONE;

	in = (struct input){ 0 };
	memcpy(&in, data, bytes < sizeof(in) ? bytes : sizeof(in));
	memory = bytes > sizeof(in) ? data + sizeof(in) : data;
	memory_bytes = bytes > sizeof(in) ? bytes - sizeof(in) : 0;
	f = (struct unwind_frame){ .pc = in.pc,
				   .sp = in.sp,
				   .fp = in.fp,
				   .link = in.exact & 2 ? in.fp : 0,
				   .exact = in.exact & 1,
				   .fp_lost = in.fp_lost & 1,
				   .bounds = { .main = in.pad & 1 ? in.sp + (in.pad >> 8) : 0,
					       .alternate = in.pad & 2 ? in.sp : 0,
					       .alternate_bytes = in.pad & 2 ? 256 : 0 } };
	unwind_begin(&f);
	for (int i = 0; i < FRAMES && end == UNWIND_END_NONE; i++) {
		before = f;
		check_search(f.pc - in.base);
		end = in.by_fp >> (i & 31) & 1 ? unwind_step_fp(&f)
					       : unwind_step(&f, &in.place, in.base);
		assert(end < UNWIND_END_COUNT_);
		if (end != UNWIND_END_NONE)
			assert(memcmp(&f, &before, offsetof(struct unwind_frame, stack)) == 0);
		else
			assert(f.sp > before.sp || f.signals > before.signals ||
			       (before.link && f.sp == before.sp));
		assert(f.sp <= f.top && f.signals <= UNWIND_SIGNALS_MAX);
	}
	return 0;
}
