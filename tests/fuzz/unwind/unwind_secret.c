/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_secret.c: two processes that differ in one word of memory, walked by the same tables, have
 * the same report: the same frames, the same end, the same last step, whatever the tables are. The
 * word is any but an address of code, which a walk may report, or of a stack, which it may follow.
 * So nothing that tables compute depends on memory.
 *
 * The input is a row of choices: what stands in each word of the stack, which rule holds at each
 * place of the code, where the registers point and where the stacks end. Each is drawn from words
 * that lead on more often than not, so that most walks are long.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/abi/unwind_abi.h"
#include "shared/tools/macro.h"

#define WORDS	  48
#define WORDS_AT  0x7f0000001000u /* of the memory that can be read; the stack is in the middle */
#define FIRST	  16u		  /* the word that the stack pointer points to */
#define PLACES	  32u		  /* of code, each with a rule of its own */
#define CODE_AT	  0x400000u
#define SIGRETURN (PLACES - 1) /* the place of the return code of signal handlers */
#define RULES_AT  3u

static __u64 stack_words[WORDS];
static struct unwind_rule rules[RULES_AT + PLACES];
static __u64 pool[PLACES + PLACES / 2]; /* rows, then the page index */
static struct unwind_file the_file;
static struct unwind_process process;
static struct unwind_ranges the_ranges;

static const uint8_t sigreturn_code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };

static inline const __u64 *unwind_element(__u32 index)
{
	return index < ARRAY_SIZE(pool) ? &pool[index] : NULL;
}

static inline const struct unwind_file *unwind_file_at(__u32 index)
{
	return index == 0 ? &the_file : NULL;
}

static inline const struct unwind_rule *unwind_rule_at(__u32 index)
{
	return index < ARRAY_SIZE(rules) ? &rules[index] : NULL;
}

static __u64 place_at(__u32 place)
{
	return CODE_AT + place * (__u64)UNWIND_PAGE_BYTES + 8;
}

/* The words, and zeros as code but for the one place that is looked at. */
static inline long unwind_read(void *to, __u32 bytes, __u64 address)
{
	static uint8_t code[PLACES * UNWIND_PAGE_BYTES];

	memcpy(code + (place_at(SIGRETURN) - CODE_AT), sigreturn_code, sizeof(sigreturn_code));
	if (address >= CODE_AT && address - CODE_AT <= sizeof(code) - bytes) {
		memcpy(to, code + (address - CODE_AT), bytes);
		return 0;
	}
	if (address < WORDS_AT || address - WORDS_AT >= sizeof(stack_words))
		return -1;
	memset(to, 0, bytes);
	memcpy(to, (uint8_t *)stack_words + (address - WORDS_AT),
	       MIN((size_t)bytes, sizeof(stack_words) - (address - WORDS_AT)));
	return 0;
}

#define UNWIND_HOST
#include "tests/unit/consumer/unwind/testing/mapped_file_testing.h"

#include "bpf/unwind/unwind_walk.h"

#include "tests/unit/consumer/unwind/testing/stack_walk_testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The choices that are left. */
static struct {
	const uint8_t *next;
	size_t left;
} tape;

/* One of `n`; 0 when the input is at its end. */
static __u32 choose(__u32 n)
{
	if (tape.left == 0)
		return 0;
	tape.left--;
	return *tape.next++ % n;
}

static __u64 word_at(__u32 i)
{
	return WORDS_AT + i * sizeof(__u64);
}

static __u64 choose_word(void)
{
	switch (choose(8)) {
	case 0:
	case 1:
		return word_at(FIRST + choose(WORDS - FIRST));
	case 2:
		return choose(256);
	case 3:
		return choose(2) ? place_at(SIGRETURN) : WORDS_AT >> 32;
	default:
		return place_at(choose(PLACES));
	}
}

static struct unwind_rule choose_rule(void)
{
	static const uint8_t likely[] = { UNWIND_CFA_SP, UNWIND_CFA_SP, UNWIND_CFA_FP,
					  UNWIND_CFA_SP_MEMORY, UNWIND_CFA_FP_MEMORY };
	struct unwind_rule rule = {
		.cfa = choose(16) ? likely[choose(5)] : (uint8_t)choose(9),
		.saved = UNWIND_SAVED(choose(8) ? 0 : choose(8), choose(5)),
		.cfa_offset = (__s32)(1 + choose(8)) * 8,
		.fp_offset = (__s16)((__s32)choose(24) * -8),
	};
	__u32 odd = choose(16);

	if (rule.cfa >= UNWIND_CFA_SP_MEMORY)
		rule.cfa_offset =
			UNWIND_HALVES((__s32)choose(16) * 8 - 32, (__s32)choose(8) * 8 - 16);
	if (UNWIND_SAVED_FP(rule.saved) == UNWIND_FP_SP)
		rule.fp_offset = (__s16)(choose(16) * 8);
	if (odd == 0)
		rule.saved |= UNWIND_SAVED_EXACT;
	else if (odd == 1)
		rule.cfa_offset += (__s32)choose(16) - 8;
	else if (odd == 2)
		rule.cfa_offset = (__s32)(choose(256) << 24 | choose(256) << 4);
	return rule;
}

static struct unwind_bounds choose_bounds(void)
{
	struct unwind_bounds b = {
		.main = choose(2) ? word_at(FIRST + choose(WORDS - FIRST)) : 0,
		.thread = choose(2) ? word_at(choose(WORDS)) : 0,
	};

	if (choose(2)) {
		b.alternate = word_at(FIRST);
		b.alternate_bytes = choose(32) * sizeof(__u64);
	}
	return b;
}

/* Code of PLACES places in one range, a row for each. */
static void make_tables(void)
{
	the_ranges.table_generation = process.published = 1;
	the_ranges.count = 1;
	the_ranges.ranges[0] = UNWIND_RANGE(CODE_AT >> UNWIND_RANGE_SHIFT,
					    PLACES * UNWIND_PAGE_BYTES >> UNWIND_RANGE_SHIFT);
	process.mappings[0] =
		(struct unwind_mapping){ .base = CODE_AT,
					 .kind = choose(4) ? UNWIND_KIND_ROWS : choose(4) };
	the_file.place =
		(struct unwind_place){ .row_count = PLACES, .pages = PLACES, .page_count = PLACES };
	for (__u32 i = 0; i < PLACES; i++) {
		pool[i] = (__u64)(RULES_AT + i) << 32 | i * UNWIND_PAGE_BYTES;
		rules[RULES_AT + i] = choose_rule();
	}
	for (__u32 i = 0; i < PLACES; i += 2)
		pool[PLACES + i / 2] = (__u64)UNWIND_PAGE(i + 1, 1) << 32 | UNWIND_PAGE(i, 1);
}

static bool in_code(__u64 word)
{
	return word - CODE_AT < (__u64)PLACES * UNWIND_PAGE_BYTES;
}

/* Whether a walk from `f` may follow or report the word. */
static bool is_address(const struct unwind_frame *f, __u64 word)
{
	return in_code(word) || word - f->sp <= unwind_stack_top(&f->bounds, f->sp) - f->sp ||
	       unwind_on_known_stack(&f->bounds, word);
}

static void take_with(const struct unwind_frame *from, __u32 place, __u64 secret, struct taken *ret)
{
	stack_words[place] = secret;
	taking_cache = (struct unwind_cache){ 0 };
	taking(from, &the_ranges, &process, NULL, ret);
}

static void compare_at(const struct unwind_frame *from, __u32 place)
{
	__u64 top = unwind_stack_top(&from->bounds, from->sp);
	/*
	 * Numbers, a text, no addresses, addresses as near to the stack as may be, and half of one:
	 * the other half may stand in the next word.
	 */
	const __u64 secrets[] = { 0x64726f7773736170,
				  0,
				  1,
				  UINT64_MAX,
				  1ull << 63,
				  from->sp - 8,
				  from->sp - 64,
				  top + 8,
				  top + 64,
				  word_at(FIRST + 4) << 32 };
	struct taken first, other;

	take_with(from, place, secrets[0], &first);
	for (size_t i = 1; i < ARRAY_SIZE(secrets); i++) {
		if (is_address(from, secrets[i]))
			continue;
		take_with(from, place, secrets[i], &other);
		assert(first.count == other.count && first.end == other.end);
		assert(first.by_pointer == other.by_pointer);
		assert(memcmp(first.frames, other.frames, sizeof(first.frames)) == 0);
		assert(memcmp(first.followed, other.followed, sizeof(first.followed)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct unwind_frame from = { .exact = 1 };

	tape.next = data;
	tape.left = bytes;
	from.pc = place_at(choose(PLACES));
	from.sp = word_at(FIRST);
	from.fp = choose_word();
	from.link = choose(2) ? choose_word() : 0;
	from.bounds = choose_bounds();
	make_tables();
	for (__u32 i = 0; i < WORDS; i++)
		stack_words[i] = choose_word();
	compare_at(&from, FIRST + choose(WORDS - FIRST));
	return 0;
}
