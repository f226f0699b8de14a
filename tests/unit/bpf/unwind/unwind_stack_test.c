/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_stack_test.c: bpf/unwind/unwind_stack.h on the host: what it reads, how often, and where
 * it ends.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include <linux/types.h>

#define AT	   0x7f0000000000ull
#define BYTES	   (3 * 4096u)
#define WORD_AT(i) (AT + 8ull * (i))

/* Word i is 1000 + i; the second page can be missing. */
static uint64_t memory[BYTES / 8];
static bool missing;
static uint32_t reads;

static long unwind_read(void *to, __u32 bytes, __u64 address)
{
	__u64 at = address - AT;

	reads++;
	if (at >= BYTES || bytes > BYTES - at)
		return -1;
	if (missing && at < 8192 && at + bytes > 4096)
		return -1;
	memcpy(to, (const uint8_t *)memory + at, bytes);
	return 0;
}

#define UNWIND_HOST
#include "bpf/unwind/unwind_stack.h"

static int setup(void **state)
{
	for (size_t i = 0; i < BYTES / 8; i++)
		memory[i] = 1000 + i;
	missing = false;
	reads = 0;
	return 0;
}

static void expect(struct unwind_stack *s, uint64_t word, uint32_t reads_by_then)
{
	__u64 got = 0;

	assert_int_equal(unwind_stack_word(s, WORD_AT(word), &got), 0);
	assert_int_equal(got, 1000 + word);
	assert_int_equal(reads, reads_by_then);
}

/* Upwards from a return address, with the registers that are saved below it. */
static void test_one_read_serves(void **state)
{
	struct unwind_stack s = { 0 };

	expect(&s, 100, 1);
	for (uint64_t i = 93; i < 93 + UNWIND_STACK_WORDS; i++)
		expect(&s, i, 1);
	expect(&s, 93 + UNWIND_STACK_WORDS, 2);
	expect(&s, 92 + UNWIND_STACK_WORDS, 2);
	expect(&s, 100, 3); /* back again, as on another stack */
}

static void test_every_word(void **state)
{
	struct unwind_stack s = { 0 };
	__u64 got;

	for (uint64_t i = 0; i < BYTES / 8; i++) {
		assert_int_equal(unwind_stack_word(&s, WORD_AT(i), &got), 0);
		assert_int_equal(got, 1000 + i);
	}
	for (uint64_t i = BYTES / 8; i-- > 0;) {
		assert_int_equal(unwind_stack_word(&s, WORD_AT(i), &got), 0);
		assert_int_equal(got, 1000 + i);
	}
}

/* Missing words beyond the page leave the present ones intact. */
static void test_pages(void **state)
{
	struct unwind_stack s = { 0 };
	__u64 got = 7;

	missing = true;
	expect(&s, 511, 1); /* the last word of its page */
	assert_int_equal(unwind_stack_word(&s, WORD_AT(512), &got), -1);
	assert_int_equal(got, 7);
	expect(&s, 1024, 3); /* the first word of its page */
	assert_int_equal(unwind_stack_word(&s, WORD_AT(1023), &got), -1);
	expect(&s, 1024, 5); /* a read that failed has left nothing behind */
	assert_int_equal(unwind_stack_word(&s, AT + BYTES, &got), -1);
	assert_int_equal(unwind_stack_word(&s, AT - 8, &got), -1);
	assert_int_equal(unwind_stack_word(&s, 0, &got), -1);
	assert_int_equal(unwind_stack_word(&s, UINT64_MAX - 7, &got), -1);
}

/* An address that is no word's is not read: a word of two halves is none of the process's. */
static void test_unaligned(void **state)
{
	struct unwind_stack s = { 0 };
	__u64 got = 7;

	expect(&s, 10, 1);
	for (uint64_t off = 1; off < 8; off++)
		assert_int_equal(unwind_stack_word(&s, WORD_AT(10) + off, &got), -1);
	assert_int_equal(got, 7);
}

UNIT_TESTS(unwind_stack)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_one_read_serves, setup),
		cmocka_unit_test_setup(test_every_word, setup),
		cmocka_unit_test_setup(test_pages, setup),
		cmocka_unit_test_setup(test_unaligned, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
