/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that are followed to their return: the facts about their frame. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/runner/unit.h"

#include "shared/tools/macro.h"

#include "tests/unit/consumer/unwind/testing/unwind_memory_testing.h"

#define UNWIND_HOST
#include "bpf/unwind/unwind_code.h"

#define PAGE 4096u

static uint8_t *text; /* a range of one page, a page behind it, and one that cannot be read */

/* A frame of the tests: the code that follows it, and where its registers are. */
struct at {
	uint32_t pc;	 /* offset in `text` */
	int64_t pointer; /* bytes from the stack pointer to the frame pointer's target */
	bool leaf, file;
};

static struct unwind_code c;
static struct unwind_code_cache *cache, kept;
static uint64_t key;

static int follow(struct at f, const uint8_t *code, size_t bytes)
{
	const struct unwind_frame frame = { .pc = (uintptr_t)text + f.pc,
					    .sp = 0x10000,
					    .fp = 0x10000 + (uint64_t)f.pointer,
					    .exact = f.leaf };

	memcpy(text + f.pc, code, bytes);
	c.made = !f.file;
	return unwind_code_follow(&c, &frame, UNWIND_RANGE((uintptr_t)text / PAGE, 1), cache, key);
}

#define FOLLOW(f, ...) \
	follow(f, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

#define ADD(n)	   0x48, 0x83, 0xc4, n
#define SUB(n)	   0x48, 0x83, 0xec, n
#define PUSH_RBP   0x55
#define POP_RBP	   0x5d
#define SET_RBP	   0x48, 0x89, 0xe5
#define RET	   0xc3
#define CALL	   0xe8, 0, 0, 0, 0
#define LEAVE	   0xc9
#define NOP	   0x90
#define STOP	   0xcc
#define JUMP(n)	   0xeb, (uint8_t)(n)
#define BRANCH(n)  0x74, (uint8_t)(n)
#define READ_BELOW 0x48, 0x8b, 0x45, 0xf8 /* mov -8(%rbp),%rax */
#define READ_ABOVE 0x48, 0x8b, 0x45, 0x10
#define LOSE_RBP   0x31, 0xed /* xor %ebp,%ebp */

static int clear(void **state)
{
	memset(text, STOP, 2 * PAGE);
	c = (struct unwind_code){ .left = UNWIND_CODE_ALL };
	kept = (struct unwind_code_cache){};
	cache = NULL;
	key = 1;
	return 0;
}

/* The function uses the pointer as its own. */
static void test_own_pointer(void **state)
{
	const struct at f = { .pc = 64, .pointer = 48 };

	assert_int_equal(FOLLOW(f, READ_BELOW, STOP), UNWIND_CODE_BY_POINTER);
	/* Java's interpreter goes on so behind a call: mov -0x10(%rbp),%rsp. */
	assert_int_equal(FOLLOW(f, 0x48, 0x8b, 0x65, 0xf0, STOP), UNWIND_CODE_BY_POINTER);
	assert_int_equal(FOLLOW(f, CALL, LEAVE, RET), UNWIND_CODE_BY_POINTER);
	assert_int_equal(FOLLOW(f, 0x48, 0x89, 0xec, POP_RBP, RET), UNWIND_CODE_BY_POINTER);
	assert_int_equal(FOLLOW(f, 0x48, 0x8d, 0x65, 0xf0, 0x5b, POP_RBP, RET),
			 UNWIND_CODE_BY_POINTER);
	assert_int_equal(FOLLOW(f, ADD(48), POP_RBP, RET), UNWIND_CODE_BY_POINTER);
	assert_int_equal(FOLLOW(f, CALL, JUMP(2), STOP, STOP, ADD(48), POP_RBP, RET),
			 UNWIND_CODE_BY_POINTER);
}

/* It does not: it reads above it, or the word below is no longer the frame's pointer. */
static void test_not_its_own(void **state)
{
	const struct at f = { .pc = 64, .pointer = 48 };

	assert_int_equal(FOLLOW(f, READ_ABOVE, STOP), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, LOSE_RBP, READ_BELOW, LEAVE, RET), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, PUSH_RBP, SET_RBP, READ_BELOW, STOP), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, CALL, READ_BELOW, STOP), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, 0xff, 0xe0), UNWIND_CODE_UNKNOWN);
}

/* The stack pointer shows it, for any frame pointer. */
static void test_by_stack(void **state)
{
	const struct at f = { .pc = 64, .pointer = 1000 };

	assert_int_equal(FOLLOW(f, ADD(24), 0x5b, RET), UNWIND_CODE_BY_STACK);
	assert_int_equal(c.proved, 1);
	assert_int_equal(c.now.sp, 32);
	assert_int_equal(c.now.fp_is, UNWIND_CODE_FP_OWN);
	assert_int_equal(FOLLOW(f, BRANCH(20), LOSE_RBP, ADD(16), POP_RBP, RET),
			 UNWIND_CODE_BY_STACK);
	assert_int_equal(c.now.sp, 24);
	assert_int_equal(c.now.fp_is, UNWIND_CODE_FP_AT);
	assert_int_equal(c.now.fp, 16);
	assert_int_equal(FOLLOW(f, LOSE_RBP, ADD(16), RET), UNWIND_CODE_BY_STACK);
	assert_int_equal(c.now.fp_is, UNWIND_CODE_FP_LOST);
	assert_int_equal(FOLLOW(f, ADD(8), 0xc2, 0x10, 0), UNWIND_CODE_BY_STACK);
	assert_int_equal(c.insn.value, 16);
}

/* Where a leaf stands in the code that makes a frame, and in the code that removes it. */
static void test_leaf(void **state)
{
	const struct at f = { .pc = 64, .pointer = 1000, .leaf = true };

	assert_int_equal(FOLLOW(f, PUSH_RBP, SET_RBP, SUB(32), READ_BELOW, LEAVE, RET),
			 UNWIND_CODE_BY_STACK);
	assert_int_equal(c.now.sp, 0);
	assert_int_equal(c.now.fp_is, UNWIND_CODE_FP_OWN);
	assert_int_equal(FOLLOW(f, SET_RBP, SUB(32), LEAVE, RET), UNWIND_CODE_BY_STACK);
	assert_int_equal(c.now.sp, 8);
	assert_int_equal(c.now.fp, 0);
	assert_int_equal(FOLLOW(f, RET), UNWIND_CODE_BY_STACK);
	assert_int_equal(c.now.sp, 0);
}

/* A call that never returns has another function behind it, whole or in part. */
static void test_behind_the_end(void **state)
{
	struct at f = { .pc = 64, .pointer = 1000 };

	assert_int_equal(FOLLOW(f, PUSH_RBP, SUB(16), ADD(16), POP_RBP, RET), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, CALL, 0x53, 0x5b, RET), UNWIND_CODE_UNKNOWN);
	f.leaf = true;
	assert_int_equal(FOLLOW(f, CALL, 0x53, 0x5b, RET), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, CALL, ADD(24), RET), UNWIND_CODE_BY_STACK);
	f.file = true;
	assert_int_equal(FOLLOW(f, CALL, ADD(24), RET), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, JUMP(1), STOP, ADD(24), RET), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, ADD(24), RET), UNWIND_CODE_BY_STACK);
}

/* A loop is passed; code that is put aside leads back, and a dead end goes on at a loop. */
static void test_jumps(void **state)
{
	const struct at f = { .pc = 64, .pointer = 40 };

	assert_int_equal(FOLLOW(f, NOP, BRANCH(4), JUMP(-5), ADD(40), POP_RBP, RET),
			 UNWIND_CODE_BY_POINTER);
	assert_int_equal(FOLLOW(f, JUMP(6), ADD(40), POP_RBP, RET, CALL, JUMP(-13)),
			 UNWIND_CODE_BY_POINTER);
	clear(state);
	memcpy(text + 20, (const uint8_t[]){ ADD(40), POP_RBP, RET }, 6);
	assert_int_equal(FOLLOW(f, JUMP(20 - 66), STOP), UNWIND_CODE_BY_POINTER);
	assert_int_equal(FOLLOW(f, JUMP(-2), JUMP(-2), JUMP(-2)), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, BRANCH(1), STOP, ADD(40), POP_RBP, RET), UNWIND_CODE_BY_POINTER);
	assert_int_equal(FOLLOW(f, BRANCH(1), STOP, BRANCH(1), STOP, ADD(40), POP_RBP, RET),
			 UNWIND_CODE_UNKNOWN);
}

/* No code is read outside of the range, and an instruction cut by a page's end is not decoded. */
static void test_bounds(void **state)
{
	const struct at f = { .pc = PAGE - 6, .pointer = 40 };

	assert_int_equal(FOLLOW(f, ADD(40), POP_RBP, RET), UNWIND_CODE_BY_POINTER);
	memcpy(text + PAGE + 8, (const uint8_t[]){ ADD(40), POP_RBP, RET }, 6);
	assert_int_equal(FOLLOW(f, NOP, NOP, NOP, NOP, NOP, NOP), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, 0xe9, 9, 0, 0, 0, NOP), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, NOP, NOP, ADD(40)), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, NOP, NOP, NOP, 0x48, 0x83, 0xc4), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, 0xe9, 0, 0, 0, 0x10), UNWIND_CODE_UNKNOWN);
	assert_int_equal(FOLLOW(f, 0xe9, 0, 0, 0, 0xf0), UNWIND_CODE_UNKNOWN);
}

/* A walk follows so many instructions. */
static void test_budget(void **state)
{
	const struct at f = { .pc = 64, .pointer = 40 };
	uint8_t code[UNWIND_CODE_INSNS + 8];

	memset(code, NOP, sizeof(code));
	memcpy(code + UNWIND_CODE_INSNS - 3, (const uint8_t[]){ ADD(40), POP_RBP, RET }, 6);
	assert_int_equal(follow(f, code, sizeof(code)), UNWIND_CODE_BY_POINTER);
	assert_int_equal(c.left, UNWIND_CODE_ALL - UNWIND_CODE_INSNS);
	c.left = UNWIND_CODE_INSNS - 1;
	assert_int_equal(follow(f, code, sizeof(code)), UNWIND_CODE_UNKNOWN);
	assert_int_equal(c.left, 0);
	assert_int_equal(FOLLOW(f, LEAVE), UNWIND_CODE_UNKNOWN);
}

/* For a function without an end, or with one that is too far, its beginning. */
static void test_beginning(void **state)
{
	struct at f = { .pc = 3000, .pointer = 48 };
	static const uint8_t begins[] = { NOP, PUSH_RBP, SET_RBP, SUB(48) };
	static const uint8_t ends[] = { NOP, LEAVE, RET, NOP };

	for (uint32_t at = 1; at < 2900; at += 13) {
		memset(text, NOP, PAGE);
		memcpy(text + at, begins, sizeof(begins));
		c.left = UNWIND_CODE_ALL;
		f.pointer = 48;
		assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_BY_POINTER);
		if (at > 600 || at < 400) /* the way from there is too long to be followed */
			assert_int_equal(c.proved, at > 600);
		f.pointer = 64;
		assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_UNKNOWN);
		f.pointer = 48;
		f.file = true;
		assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_UNKNOWN);
		f.file = false;
		c.left = 1 + UNWIND_CODE_BACK_COST * ((3000 - 3 - at - 9) / UNWIND_CODE_BACK);
		assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_UNKNOWN);
		c.left = UNWIND_CODE_ALL;
		memcpy(text + at + 9, ends, sizeof(ends));
		assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_UNKNOWN);
	}
}

/* The same without a frame pointer: the room shows the place of the return address. */
static void test_room(void **state)
{
	const struct at f = { .pc = 3000, .pointer = -5 };
	static const uint8_t small[] = { NOP, PUSH_RBP, SUB(0x60) };
	static const uint8_t large[] = { NOP, PUSH_RBP, 0x48, 0x81, 0xec, 0, 2, 0, 0 };
	static const uint8_t ends[] = { POP_RBP, RET };

	memset(text, NOP, PAGE);
	memcpy(text + 2000, small, sizeof(small));
	assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_BY_STACK);
	assert_int_equal(c.proved, 1);
	assert_int_equal(c.now.sp, 0x68);
	assert_int_equal(c.now.fp, 0x60);
	assert_int_equal(c.now.fp_is, UNWIND_CODE_FP_AT);
	memcpy(text + 2900, large, sizeof(large));
	c.left = UNWIND_CODE_ALL;
	assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_BY_STACK);
	assert_int_equal(c.now.sp, 0x208);
	memcpy(text + 2950, ends, sizeof(ends));
	c.left = UNWIND_CODE_ALL;
	assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_UNKNOWN);
}

/* Follows twice, and returns the work of the second. */
static uint32_t again(struct at f, const uint8_t *code, size_t bytes)
{
	struct unwind_code first;
	int answer;
	uint32_t left;

	c.left = UNWIND_CODE_ALL;
	answer = follow(f, code, bytes);
	first = c;
	left = c.left;
	c.now = (struct unwind_code_state){ .sp = 3, .fp = 5, .fp_is = UNWIND_CODE_FP_LEVEL };
	c.proved = 7;
	assert_int_equal(follow(f, code, bytes), answer);
	if (answer != UNWIND_CODE_UNKNOWN)
		assert_int_equal(c.proved, first.proved);
	if (answer == UNWIND_CODE_BY_STACK) {
		assert_int_equal(c.now.sp, first.now.sp);
		assert_int_equal(c.now.fp_is, first.now.fp_is);
		if (c.now.fp_is == UNWIND_CODE_FP_AT)
			assert_int_equal(c.now.fp, first.now.fp);
		assert_int_equal(c.insn.value, first.insn.value);
	}
	return left - c.left;
}

#define AGAIN(f, ...) \
	again(f, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* A frame's findings are kept, those of a leaf apart from those of a caller at its address. */
static void test_kept(void **state)
{
	const struct at f = { .pc = 3000, .pointer = 48 };
	const struct at leaf = { .pc = 3000, .pointer = 48, .leaf = true };

	assert_int_equal(AGAIN(f, ADD(24), 0x5b, RET), 3);
	cache = &kept;
	assert_int_equal(AGAIN(f, ADD(24), 0x5b, RET), 0);
	assert_int_equal(AGAIN(f, ADD(8), 0xc2, 0x10, 0), 0);
	assert_int_equal(AGAIN(f, LOSE_RBP, ADD(16), RET), 0);
	assert_int_equal(AGAIN(f, ADD(16), POP_RBP, RET), 0);
	assert_int_equal(AGAIN(f, ADD(48), POP_RBP, RET), 0);
	assert_int_equal(AGAIN(f, READ_BELOW, STOP), 0);
	assert_int_equal(AGAIN(f, STOP), 0);
	assert_int_equal(AGAIN(leaf, ADD(24), 0x5b, RET), 0);
	assert_int_equal(AGAIN(leaf, PUSH_RBP, SET_RBP, LEAVE, RET), 0);
	assert_int_equal(c.now.sp, 0);
	assert_int_equal(AGAIN(f, PUSH_RBP, SET_RBP, LEAVE, RET), 0);
	memcpy(text + 2900, (const uint8_t[]){ NOP, PUSH_RBP, SUB(0x60), NOP, NOP }, 8);
	memset(text + 2908, NOP, 92);
	kept = (struct unwind_code_cache){};
	assert_int_equal(AGAIN(f, STOP), 0);
	assert_int_equal(c.now.sp, 0x68);
	assert_int_equal(c.proved, 1);
}

/* The kept findings depend neither on the frame pointer nor on another frame's. */
static void test_kept_of_any_frame(void **state)
{
	struct at f = { .pc = 3000, .pointer = 48 };

	cache = &kept;
	assert_int_equal(FOLLOW(f, ADD(48), POP_RBP, RET), UNWIND_CODE_BY_POINTER);
	f.pointer = 64;
	assert_int_equal(FOLLOW(f, ADD(48), POP_RBP, RET), UNWIND_CODE_BY_STACK);
	assert_int_equal(c.now.fp, 48);
	memset(text + 2900, NOP, 100);
	memcpy(text + 2900, (const uint8_t[]){ NOP, PUSH_RBP, SET_RBP, SUB(48) }, 9);
	f.pointer = 48;
	assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_BY_POINTER);
	f.pointer = 64;
	assert_int_equal(FOLLOW(f, STOP), UNWIND_CODE_UNKNOWN);
}

/* Other code at the address, another range, another table: it is searched for again. */
static void test_kept_no_longer(void **state)
{
	const struct at f = { .pc = 64, .pointer = 48 };

	cache = &kept;
	assert_int_equal(FOLLOW(f, ADD(48), POP_RBP, RET), UNWIND_CODE_BY_POINTER);
	for (uint32_t i = 0; i < UNWIND_INSN_BYTES; i++) {
		uint32_t left = c.left;

		assert_int_equal(FOLLOW(f, ADD(48), POP_RBP, RET), UNWIND_CODE_BY_POINTER);
		assert_int_equal(c.left, left);
		text[64 + i] ^= 0x80;
		unwind_code_follow(&c,
				   &(struct unwind_frame){ .pc = (uintptr_t)text + 64,
							   .sp = 0x10000,
							   .fp = 0x10030 },
				   UNWIND_RANGE((uintptr_t)text / PAGE, 1), cache, key);
		assert_int_not_equal(c.left, left);
		text[64 + i] ^= 0x80;
		FOLLOW(f, ADD(48), POP_RBP, RET);
		c.left = UNWIND_CODE_ALL;
	}
	key = 2;
	assert_int_equal(FOLLOW(f, ADD(48), POP_RBP, RET), UNWIND_CODE_BY_POINTER);
	assert_int_equal(c.left, UNWIND_CODE_ALL - 3);
}

/* What a walk had no instructions left for is no answer, unless it had nearly all. */
static void test_kept_whole(void **state)
{
	const struct at f = { .pc = 64, .pointer = 48 };
	const struct at far = { .pc = 3000, .pointer = 48 };
	const struct at leaf = { .pc = 3000, .pointer = 48, .leaf = true };

	cache = &kept;
	c.left = 2;
	assert_int_equal(FOLLOW(f, ADD(48), POP_RBP, RET), UNWIND_CODE_UNKNOWN);
	c.left = UNWIND_CODE_ALL;
	assert_int_equal(FOLLOW(f, ADD(48), POP_RBP, RET), UNWIND_CODE_BY_POINTER);
	memset(text, NOP, 2 * PAGE);
	memcpy(text + 500, (const uint8_t[]){ PUSH_RBP, SET_RBP, SUB(48) }, 8);
	for (uint32_t left = UNWIND_CODE_ALL / 2 - 1; left <= UNWIND_CODE_ALL / 2; left++) {
		c.left = left;
		assert_int_equal(FOLLOW(far, NOP), UNWIND_CODE_BY_POINTER);
		assert_int_equal(c.proved, 0);
		assert_int_equal(c.left, 0);
		c.left = left;
		assert_int_equal(FOLLOW(far, NOP), UNWIND_CODE_BY_POINTER);
		assert_int_equal(c.proved, 0);
		assert_int_equal(c.left, left < UNWIND_CODE_ALL / 2 ? 0 : left);
	}
	c.left = UNWIND_CODE_ALL;
	FOLLOW(leaf, NOP);
	assert_int_equal(c.left, UNWIND_CODE_ALL / 2);
}

/* A beginning proves nothing when another function may stand between it and the frame. */
static void test_other_between(void **state)
{
	const struct at f = { .pc = 3000, .pointer = 0x60 };
	static const uint8_t framed[] = { NOP, PUSH_RBP, SET_RBP, SUB(0x60) };
	static const uint8_t frameless[] = { NOP, PUSH_RBP, SUB(0x60) };
	/* Java's ends ask for a safepoint between pop and ret; others jump to a place far away. */
	static const uint8_t ends[][20] = {
		{ ADD(0x60), POP_RBP, 0x49, 0x3b, 0xa7, 0x40, 3, 0, 0, 0x0f, 0x87, 0, 0, 0, 0,
		  RET },
		{ ADD(0x60), POP_RBP, JUMP(4), NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP,
		  NOP },
		{ 0xe9, 0, 0, 0, 0x10, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP,
		  NOP },
		{ 0x0f, 0x0b, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP,
		  NOP },
		{ 0x53, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP, NOP,
		  NOP },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(ends); i++) {
		memset(text, NOP, PAGE);
		memcpy(text + 2500, i % 2 ? framed : frameless,
		       i % 2 ? sizeof(framed) : sizeof(frameless));
		memcpy(text + 2600, ends[i / 2], sizeof(ends[0]));
		if (text[2619] == 0)
			text[2619] = NOP;
		if (text[2618] == 0)
			text[2618] = NOP;
		c.left = UNWIND_CODE_ALL;
		FOLLOW(f, STOP);
		assert_int_equal(c.proved, 0);
	}
}

/*
 * A function may return in its middle: where a branch of it leads behind the return, with its
 * frame, that is still the function.
 */
static void test_behind_a_return(void **state)
{
	struct at f = { .pc = 3000, .pointer = 0x60 };
	static const uint8_t framed[] = { NOP, PUSH_RBP, SET_RBP, SUB(0x60) };
	static const uint8_t frameless[] = { NOP, PUSH_RBP, SUB(0x60) };
	static const uint8_t end[] = { ADD(0x60), POP_RBP, RET };
	/* jz to an offset from the branch's end: to before the frame, to behind it, before the end.
	 */
	static const struct {
		int32_t distance;
		bool pops, framed, frameless; /* whether each is proved */
	} branches[] = { { 200, false, true, true },
			 { 700, false, true, false },
			 { 20, false, false, false },
			 { 700, true, false, false },
			 { 1 << 20, false, false, false } };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(branches); i++) {
		uint8_t branch[6] = { 0x0f, 0x84 };
		bool is_framed = i % 2;

		memset(text, NOP, PAGE);
		memcpy(text + 2500, is_framed ? framed : frameless,
		       is_framed ? sizeof(framed) : sizeof(frameless));
		memcpy(branch + 2, &branches[i / 2].distance, 4);
		if (branches[i / 2].pops)
			memcpy(text + 2515, (const uint8_t[]){ ADD(0x60), POP_RBP }, 5);
		memcpy(text + 2520, branch, sizeof(branch));
		memcpy(text + 2600, end, sizeof(end));
		c.left = UNWIND_CODE_ALL;
		FOLLOW(f, STOP);
		assert_int_equal(c.proved,
				 is_framed ? branches[i / 2].framed : branches[i / 2].frameless);
	}
}

static int map_text(void **state)
{
	text = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (text == MAP_FAILED)
		return -1;
	return mprotect(text + 2 * PAGE, PAGE, PROT_NONE);
}

static int unmap_text(void **state)
{
	return munmap(text, 3 * PAGE);
}

#define TEST(name) cmocka_unit_test_setup(name, clear)

UNIT_TESTS(unwind_code)
{
	const struct CMUnitTest tests[] = {
		TEST(test_own_pointer),
		TEST(test_not_its_own),
		TEST(test_by_stack),
		TEST(test_leaf),
		TEST(test_behind_the_end),
		TEST(test_jumps),
		TEST(test_bounds),
		TEST(test_budget),
		TEST(test_beginning),
		TEST(test_room),
		TEST(test_other_between),
		TEST(test_kept),
		TEST(test_kept_of_any_frame),
		TEST(test_kept_no_longer),
		TEST(test_kept_whole),
		TEST(test_behind_a_return),
	};

	return cmocka_run_group_tests(tests, map_text, unmap_text);
}
