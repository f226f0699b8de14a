/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "consumer/unwind/compile/unwind_compile.h"
#include "consumer/unwind/infer/unwind_scan.h"
#include "tests/unit/consumer/unwind/testing/cfi_file_testing.h"

/*
 * 0: xor %ebp,%ebp; call 16; hlt. 16: code with information, of any content. 32: sub $24,%rsp; call
 * 48; add $24,%rsp; ret. 48: ret.
 */
static const uint8_t text[64] = {
	[0] = 0x31, 0xed, 0xe8, 9,    0,	   0,	 0,    0xf4, [16] = 0xe8, 11,
	0,	    0,	  0,	0xc3, [32] = 0x48, 0x83, 0xec, 24,   0xe8,	  7,
	0,	    0,	  0,	0x48, 0x83,	   0xc4, 24,   0xc3, [48] = 0xc3,
};

static struct unwind_rules rules;
static struct unwind_table t;

/* A file with that text, of which bytes 16 to 31 have information; its entry point is byte 0. */
static int compile(size_t entry, uint64_t text_bytes)
{
	static struct frames f;
	struct elf_image image;
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	uint8_t *file;
	int r;

	f.bytes = 0;
	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT + 16, 16, 0x45, 0x0e, 0x40);
	frames_put(&f, 0, 4);
	image = wrap(f.data, f.bytes, WRAP_BY_HEADER);
	file = realloc((void *)image.memory, image.bytes + text_bytes);
	if (!file)
		abort();
	memset(file + image.bytes, 0xf4, text_bytes);
	memcpy(file + image.bytes, text, sizeof(text));
	memcpy(&header, file, sizeof(header));
	header.e_entry = WRAP_TEXT + entry;
	memcpy(file, &header, sizeof(header));
	memcpy(&segment, file + header.e_phoff, sizeof(segment));
	segment.p_offset = image.bytes;
	segment.p_filesz = text_bytes;
	memcpy(file + header.e_phoff, &segment, sizeof(segment));
	image.memory = file;
	image.bytes += text_bytes;
	unwind_table_done(&t);
	r = unwind_compile(&image, &rules, &t);
	free(file);
	return r;
}

static int setup(void **state)
{
	return unwind_rules_init(&rules);
}

static int teardown(void **state)
{
	unwind_table_done(&t);
	unwind_rules_done(&rules);
	return 0;
}

static struct unwind_rule at(uint32_t offset)
{
	return rules.rules[unwind_table_find(&t, WRAP_TEXT + offset)];
}

/* Startup code is the end, code with information keeps it, code without is followed. */
static void test_filled(void **state)
{
	assert_int_equal(compile(0, sizeof(text)), 0);
	assert_int_equal(at(6).cfa, UNWIND_CFA_END);
	assert_int_equal(at(16).cfa_offset, 8);
	assert_int_equal(at(21).cfa_offset, 0x40);
	assert_int_equal(at(32).cfa_offset, 8); /* called from code with information: a candidate */
	assert_int_equal(at(40).cfa, UNWIND_CFA_SP);
	assert_int_equal(at(48).cfa_offset, 8);
	assert_int_equal(t.rows[t.row_count - 1].rule, UNWIND_RULE_NONE);
	assert_true(t.counts.followed >= 2);
}

/* Where the entry point means nothing, a gap stays one: a shared library, or no entry point. */
static void test_left_alone(void **state)
{
	assert_int_equal(compile(16, sizeof(text)), 0);
	assert_int_equal(unwind_table_find(&t, WRAP_TEXT), UNWIND_RULE_NONE);
	assert_int_equal(compile(32, sizeof(text)), 0);
	assert_int_equal(unwind_table_find(&t, WRAP_TEXT + 32), UNWIND_RULE_NONE);
	assert_int_equal(compile(1u << 20, sizeof(text)), 0);
	assert_int_equal(t.counts.followed, 0);
}

static void test_wall(void **state)
{
	assert_int_equal(compile(0, UNWIND_SCAN_MAX + 16), 0);
	assert_int_equal(at(6).cfa, UNWIND_CFA_END);
	assert_int_equal(compile(0, UNWIND_SCAN_MAX + 17), 0);
	assert_int_equal(unwind_table_find(&t, WRAP_TEXT), UNWIND_RULE_NONE);
}

UNIT_TESTS(unwind_gaps)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_filled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wall, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
