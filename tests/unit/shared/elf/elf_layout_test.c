/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>

#include "shared/elf/elf_layout.h"
#include "tests/unit/shared/elf/elf_testing.h"

/* A debug file's segments lie where they lay in the program, and so do its functions. */
static void test_debug_file(void **state)
{
	struct elf_image whole = elf_testing_open(elf_testing_folder, "split.whole");
	struct elf_image debug = elf_testing_open(elf_testing_folder, "split.debug");
	const struct elf_symbols_options options = { .split = true };
	_cleanup_(elf_reader_done) struct elf_reader there = { 0 }, here = { 0 };
	struct elf_symbols *s;
	size_t code = 0;

	assert_int_equal(elf_reader_open(&whole, &there), 0);
	assert_int_equal(elf_reader_open(&debug, &here), 0);
	assert_int_equal(elf_layout_restore(&here), 0);
	assert_int_equal(here.segment_count, there.segment_count);
	for (size_t i = 0; i < here.segment_count; i++) {
		if (here.segments[i].p_type != PT_LOAD || !(here.segments[i].p_flags & PF_X))
			continue;
		assert_int_equal(here.segments[i].p_offset, there.segments[i].p_offset);
		assert_int_equal(here.segments[i].p_filesz, there.segments[i].p_filesz);
		code++;
	}
	assert_true(code > 0);
	assert_int_equal(elf_symbols_read(&debug, &options, &s), 0);
	elf_testing_has_all(s, "split.whole");
	elf_symbols_free(s);
	close(whole.fd);
	close(debug.fd);
}

/* Behind writable data that is not all in the file nothing is known. */
static void test_behind_data(void **state)
{
	Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_memsz = 4096, .p_align = 4096 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_vaddr = 8192,
		  .p_memsz = 4096,
		  .p_align = 4096 },
	};
	struct elf_reader e = { .segments = segments, .segment_count = ARRAY_SIZE(segments) };
	uint64_t address;

	assert_int_equal(elf_layout_restore(&e), -ENODATA);
	assert_false(elf_reader_address(&e, 0, &address));
	segments[0].p_flags = PF_R;
	assert_int_equal(elf_layout_restore(&e), 0);
	assert_true(elf_reader_address(&e, 4096 + 5, &address));
	assert_int_equal(address, 8192 + 5);
}

/* Numbers that wrap around give offsets that hold nothing, and no more. */
static void test_lies(void **state)
{
	Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = UINT64_MAX - 7, .p_align = 8 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_vaddr = 3,
		  .p_memsz = UINT64_MAX,
		  .p_align = UINT64_MAX },
	};
	struct elf_reader e = { .segments = segments, .segment_count = ARRAY_SIZE(segments) };
	uint64_t address;

	assert_int_equal(elf_layout_restore(&e), 0);
	assert_false(elf_reader_address(&e, segments[1].p_offset - 1, &address));
}

UNIT_TESTS(elf_layout)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_file),
		cmocka_unit_test(test_behind_data),
		cmocka_unit_test(test_lies),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
