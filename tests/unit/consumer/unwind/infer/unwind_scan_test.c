/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "consumer/unwind/infer/unwind_scan.h"
#include "shared/elf/elf_reader.h"
#include "tests/unit/consumer/unwind/testing/image_testing.h"

static struct unwind_rules rules;
static struct unwind_table t;
static uint32_t functions;

static int setup(void **state)
{
	t = (struct unwind_table){ 0 };
	functions = 0;
	return unwind_rules_init(&rules);
}

static int teardown(void **state)
{
	unwind_table_done(&t);
	unwind_rules_done(&rules);
	return 0;
}

/* Scans `code`, of which byte 0 is where a function is known to begin. */
static void scan(const uint8_t *code, size_t bytes, uint32_t entry)
{
	uint32_t *starts = calloc(1 + UNWIND_SCAN_TARGETS(bytes), sizeof(*starts));
	struct unwind_scan s = {
		.text = code, .bytes = (uint32_t)bytes, .entry = entry, .functions = starts
	};

	assert_non_null(starts);
	s.function_count = 1 + unwind_scan_targets(&s, starts + 1);
	unwind_table_done(&t);
	functions = 0;
	assert_int_equal(unwind_scan_text(&s, &rules, UNWIND_RULES_MAX, &t, &functions), 0);
	assert_int_equal(unwind_table_push(&t, (uint32_t)bytes, UNWIND_RULE_NONE), 0);
	assert_int_equal(unwind_table_finish(&t), 0);
	free(starts);
}

#define SCAN(...)                                                                        \
	scan((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), \
	     UNWIND_SCAN_NONE)

static struct unwind_rule at(uint32_t pc)
{
	return rules.rules[unwind_table_find(&t, pc)];
}

static void sp_is(uint32_t pc, int32_t offset)
{
	assert_int_equal(at(pc).cfa, UNWIND_CFA_SP);
	assert_int_equal(at(pc).cfa_offset, offset);
}

static void none(uint32_t pc)
{
	assert_int_equal(unwind_table_find(&t, pc), UNWIND_RULE_NONE);
}

/* push %rbp; push %rbx; sub $8,%rsp; test; je 1f; add $8; pop; pop; ret; 1: the same */
static void test_function(void **state)
{
	SCAN(0x55, 0x53, 0x48, 0x83, 0xec, 8, 0x85, 0xc0, 0x74, 7, 0x48, 0x83, 0xc4, 8, 0x5b, 0x5d,
	     0xc3, 0x48, 0x83, 0xc4, 8, 0x5b, 0x5d, 0xc3);
	assert_int_equal(functions, 1);
	sp_is(0, 8);
	sp_is(1, 16);
	assert_int_equal(at(1).fp_offset, -16);
	sp_is(2, 24);
	sp_is(6, 32);
	assert_int_equal(UNWIND_SAVED_FP(at(6).saved), UNWIND_FP_CFA);
	sp_is(14, 24);
	sp_is(16, 8);
	assert_int_equal(UNWIND_SAVED_FP(at(16).saved), UNWIND_FP_SAME);
	sp_is(17, 32);
	sp_is(23, 8);
}

/* push %rbp; mov %rsp,%rbp; sub %rax,%rsp; leave; ret: as alloca makes it */
static void test_frame_pointer(void **state)
{
	SCAN(0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4, 0x90, 0xc9, 0xc3);
	sp_is(4, 16);
	assert_int_equal(at(7).cfa, UNWIND_CFA_FP);
	assert_int_equal(at(7).cfa_offset, 16);
	assert_int_equal(at(7).fp_offset, -16);
	sp_is(9, 8);
	assert_int_equal(UNWIND_SAVED_FP(at(9).saved), UNWIND_FP_SAME);
}

/* Nothing is guessed: each of these gets no row at all. */
static void test_refused(void **state)
{
	SCAN(0x50, 0xc3); /* it returns to the pushed address */
	assert_int_equal(functions, 0);
	none(0);
	SCAN(0x74, 1, 0x50, 0x58, 0xc3); /* two ways to one place, two depths */
	none(0);
	SCAN(0x50, 0x06, 0x58, 0xc3); /* no instruction */
	none(0);
	SCAN(0x50, 0xeb, 0x40, 0x58, 0xc3); /* out of the text with the stack as it is not */
	none(0);
	SCAN(0x50, 0x58); /* it runs on beyond the text */
	none(1);
}

/* A function without an exit is marked so: sp comes from elsewhere. */
static void test_lost(void **state)
{
	SCAN(0x48, 0x89, 0xfc, 0x90, 0xc3); /* mov %rdi,%rsp */
	sp_is(0, 8);
	assert_int_equal(at(3).cfa, UNWIND_CFA_UNSUPPORTED);
	SCAN(0x5f, 0x41, 0xff, 0xd1, 0xf4); /* pop %rdi; call *%r9; hlt: a new thread begins */
	assert_int_equal(at(1).cfa, UNWIND_CFA_END);
}

/* call 1f; hlt... 1: ret; and a call that does not come back: call 2f; (another's) 2: hlt */
static void test_calls(void **state)
{
	SCAN(0x50, 0xe8, 2, 0, 0, 0, 0x58, 0xc3, 0xc3);
	assert_int_equal(functions, 2);
	sp_is(1, 16);
	sp_is(6, 16);
	sp_is(8, 8);
	/* 0: push; call 7; 6: ret, that is never reached; 7: hlt */
	SCAN(0x50, 0xe8, 1, 0, 0, 0, 0xc3, 0xf4);
	sp_is(1, 16);
	none(6);
	sp_is(7, 8);
}

static void test_entry(void **state)
{
	static const uint8_t code[] = { 0xc3, 0x31, 0xed, 0x48, 0x83, 0xe4, 0xf0,
					0xe8, 0xf4, 0xff, 0xff, 0xff, 0xf4 };

	scan(code, sizeof(code), 1);
	sp_is(0, 8);
	for (uint32_t pc = 1; pc < sizeof(code); pc++)
		assert_int_equal(at(pc).cfa, UNWIND_CFA_END);
}

/* What ends a signal handler, and the byte before it, where its return address is looked up. */
static void test_signal(void **state)
{
	SCAN(0xc3, 0x90, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5);
	for (uint32_t pc = 1; pc < 11; pc++) {
		assert_int_equal(at(pc).cfa, UNWIND_CFA_SP_MEMORY);
		assert_int_equal(UNWIND_LOW(at(pc).cfa_offset), 160);
		assert_true(at(pc).saved & UNWIND_SAVED_EXACT);
	}
	sp_is(0, 8);
}

/* Bytes in which both tables have a rule, and those in which the rules contradict each other. */
static void compare(const struct unwind_table *cfi, uint64_t *both, uint64_t *apart)
{
	for (uint64_t pc = 0; pc < t.rows[t.row_count - 1].pc; pc++) {
		struct unwind_rule a = rules.rules[unwind_table_find(&t, pc)];
		struct unwind_rule b = rules.rules[unwind_table_find(cfi, cfi->base + pc)];
		bool fp = UNWIND_SAVED_FP(a.saved) == UNWIND_FP_CFA &&
			  UNWIND_SAVED_FP(b.saved) == UNWIND_FP_CFA;

		if (a.cfa != UNWIND_CFA_SP || b.cfa != UNWIND_CFA_SP)
			continue;
		(*both)++;
		*apart += a.cfa_offset != b.cfa_offset || (fp && a.fp_offset != b.fp_offset);
	}
}

/*
 * The C library's text, as if it had no call frame information, against its own: a library as those
 * that this is for. It is split into hot and cold pieces, which nothing but the information ties
 * together: of those some are taken for functions.
 */
static void test_against_libc(void **state)
{
	uint64_t both = 0, apart = 0;
	struct elf_image image;
	struct unwind_table cfi;
	struct elf_reader elf;

	if (image_open("/lib/x86_64-linux-gnu/libc.so.6", &image) < 0)
		skip();
	assert_int_equal(unwind_compile(&image, &rules, &cfi), 0);
	assert_int_equal(elf_reader_open(&image, &elf), 0);
	for (size_t i = 0; i < elf.segment_count; i++) {
		const Elf64_Phdr *p = &elf.segments[i];
		uint8_t *text;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		text = malloc(p->p_filesz);
		assert_non_null(text);
		assert_int_equal(p->p_vaddr, cfi.base);
		assert_int_equal(elf_reader_at(&image, p->p_offset, text, p->p_filesz), 0);
		scan(text, p->p_filesz, UNWIND_SCAN_NONE);
		compare(&cfi, &both, &apart);
		free(text);
	}
	print_message("%u functions, %lu bytes with both, %lu apart\n", functions,
		      (unsigned long)both, (unsigned long)apart);
	assert_true(both > 500000);
	assert_true(apart * 1000 < both);
	unwind_table_done(&cfi);
	elf_reader_done(&elf);
	image_close(&image);
}

UNIT_TESTS(unwind_scan)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_function, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frame_pointer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_entry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_against_libc, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
