/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps by the frame pointer: which of them cannot have left a frame out. */
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/types.h>

#define PAGE  4096u
#define TEXTS 4

/* What is in the mappings; the stack is the test's own memory. */
static uint8_t code[TEXTS][PAGE];

static inline long unwind_read(void *to, __u32 bytes, __u64 address)
{
	struct iovec here = { .iov_base = to, .iov_len = bytes };
	struct iovec there = { .iov_base = (void *)(uintptr_t)address, .iov_len = bytes };
	__u64 number = address / PAGE / 16 - 1, offset = address % PAGE;

	if (number < TEXTS && address / PAGE % 16 == 0 && offset + bytes <= PAGE) {
		memcpy(to, code[number] + offset, bytes);
		return 0;
	}
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes ? 0 : -1;
}

#define POOL_OWN_READ
#include "tests/unit/bpf/unwind/unwind_walk_testing.h"

#define LEAF 0x100 /* offsets in a text: where the leaf is */
#define MAIN 0x200 /* the return address of its caller */
#define OLD  0x300 /* another return address */

/* Puts a direct call of `callee` before offset `offset` of text `number`. */
static void put_call(uint32_t number, uint32_t offset, uint64_t callee)
{
	int32_t distance = (int32_t)(callee - at(number, offset));

	code[number][offset - 5] = 0xe8;
	memcpy(code[number] + offset - 4, &distance, sizeof(distance));
}

static uint64_t stack[64];

/*
 * Walks from a leaf with a frame pointer to word `fp` of the stack, and from there to the outermost
 * frame. Returns how the one step was made (taken.followed).
 */
static int step(uint32_t kind, uint32_t fp)
{
	const struct text_row program[] = { { 0, outermost } };
	struct taken t;

	ranges.count = 0;
	add_mapping(UNWIND_KIND_ROWS, program, 1);
	add_mapping(kind, NULL, 0);
	ranges.checks[0] = ranges.checks[1] = mapped_file_there.number;
	stack[fp] = 0;
	stack[fp + 1] = at(0, MAIN);
	assert_int_equal(take(at(1, LEAF), stack, &stack[fp], &t), UNWIND_END_COMPLETE);
	CHECK_FRAMES(&t, at(1, LEAF), at(0, MAIN));
	assert_int_equal(t.followed[0], 0);
	return t.followed[1];
}

static int clear(void **state)
{
	memset(stack, 0, sizeof(stack));
	memset(code, 0xcc, sizeof(code)); /* no instruction shows anything */
	mapped_file_there = (struct mapped_file_found){ 0, UINT64_MAX, 5 };
	return setup(state);
}

/* Nothing between the stack pointer and the frame pointer, and words that are no return address. */
static void test_nothing_between(void **state)
{
	assert_int_equal(step(UNWIND_KIND_FP, 0), 2);
	for (uint32_t i = 0; i < 20; i++)
		stack[i] = i * 0x1111111111ull;
	stack[3] = (uintptr_t)&stack[8];
	stack[4] = at(1, OLD); /* code, behind no call */
	stack[5] = at(3, OLD); /* no code */
	assert_int_equal(step(UNWIND_KIND_FP, 20), 2);
}

/* A return address: a function that keeps no frame pointer may have been called from there. */
static void test_return_address(void **state)
{
	for (uint32_t text = 0; text < 2; text++)
		for (uint32_t i = 0; i < 5; i++) {
			teardown(state);
			clear(state);
			put_call(text, OLD, at(1, LEAF));
			stack[i] = at(text, OLD);
			assert_int_equal(step(UNWIND_KIND_FP, 5), 1);
		}
	/* The last word below the frame, and the frame's own return address. */
	stack[4] = 0;
	stack[5] = at(1, OLD);
	assert_int_equal(step(UNWIND_KIND_FP, 4), 2);
	/* A call that is the last thing in its text. */
	put_call(1, PAGE, at(1, LEAF));
	stack[2] = at(1, PAGE);
	assert_int_equal(step(UNWIND_KIND_FP, 5), 1);
}

/* An address of the stack is no code, unless the stack is executable. */
static void test_executable_stack(void **state)
{
	const struct text_row program[] = { { 0, outermost } };
	uint64_t page = (uintptr_t)stack / PAGE;
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, program, 1);
	add_mapping(UNWIND_KIND_FP, NULL, 0);
	ranges.checks[0] = ranges.checks[1] = mapped_file_there.number;
	stack[4] = (uintptr_t)&stack[40];
	stack[20] = 0;
	stack[21] = at(0, MAIN);
	for (uint32_t executable = 0; executable < 2; executable++) {
		assert_int_equal(take(at(1, LEAF), stack, &stack[20], &t), UNWIND_END_COMPLETE);
		assert_int_equal(t.followed[1], executable ? 1 : 2);
		ranges.checks[ranges.count] = 0;
		ranges.ranges[ranges.count++] = UNWIND_RANGE(page, 2);
	}
}

/* Code above the stack, before any end of it that is known: a coroutine's below libraries. */
static void test_code_above(void **state)
{
	const struct text_row program[] = { { 0, outermost } };
	uint64_t page = (uintptr_t)stack / PAGE;
	struct taken t;

	for (uint32_t away = 2; away < 300; away += 27) {
		ranges.count = 0;
		add_mapping(UNWIND_KIND_ROWS, program, 1);
		add_mapping(UNWIND_KIND_FP, NULL, 0);
		ranges.checks[0] = ranges.checks[1] = mapped_file_there.number;
		ranges.checks[2] = 0;
		ranges.ranges[ranges.count++] = UNWIND_RANGE(page + away, 1);
		stack[4] = (page + away) * PAGE + 64;
		stack[20] = 0;
		stack[21] = at(0, MAIN);
		assert_int_equal(take(at(1, LEAF), stack, &stack[20], &t), UNWIND_END_COMPLETE);
		assert_int_equal(t.followed[1], 1);
	}
}

/* Made code may push a return address and jump, so there each address counts. */
static void test_made_code(void **state)
{
	mapped_file_there.number = 0;
	stack[4] = at(1, OLD);
	assert_int_equal(step(UNWIND_KIND_FP, 20), 1);
}

/*
 * Made code without a frame pointer shows the place of its return address: only an address of code
 * counts.
 */
static void test_by_code(void **state)
{
	static const uint8_t leaf[] = { 0x48, 0x83, 0xc4, 24, 0xc3 }; /* add $24,%rsp; ret */
	const struct text_row program[] = { { 0, outermost } };
	struct taken t;

	mapped_file_there.number = 0;
	add_mapping(UNWIND_KIND_ROWS, program, 1);
	add_mapping(UNWIND_KIND_FP, NULL, 0);
	memcpy(code[1] + LEAF, leaf, sizeof(leaf));
	stack[3] = at(0, MAIN);
	stack[10] = 0;
	stack[11] = at(0, OLD);
	assert_int_equal(take(at(1, LEAF), stack, &stack[10], &t), UNWIND_END_COMPLETE);
	CHECK_FRAMES(&t, at(1, LEAF), at(0, MAIN));
	assert_int_equal(t.followed[1], 2);
	stack[3] = at(3, MAIN); /* no code: the frame pointer is all there is */
	assert_int_equal(take(at(1, LEAF), stack, &stack[10], &t), UNWIND_END_COMPLETE);
	CHECK_FRAMES(&t, at(1, LEAF), at(0, OLD));
}

/* A gap of as many words as are searched, and of one more. */
static void test_bounds(void **state)
{
	static uint64_t large[UNWIND_GAP_WORDS + 8];
	const struct text_row program[] = { { 0, outermost } };
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, program, 1);
	add_mapping(UNWIND_KIND_FP, NULL, 0);
	ranges.checks[0] = ranges.checks[1] = mapped_file_there.number;
	for (uint32_t more = 0; more < 2; more++) {
		uint64_t *fp = large + UNWIND_GAP_WORDS + more;

		large[UNWIND_GAP_WORDS] = 0;
		fp[0] = 0;
		fp[1] = at(0, MAIN);
		assert_int_equal(take(at(1, LEAF), large, fp, &t), UNWIND_END_COMPLETE);
		assert_int_equal(t.followed[1], more ? 1 : 2);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clear, teardown)

UNIT_TESTS(unwind_walk_gap)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_between), TEST(test_return_address), TEST(test_made_code),
		TEST(test_by_code),	    TEST(test_bounds),	       TEST(test_executable_stack),
		TEST(test_code_above),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
