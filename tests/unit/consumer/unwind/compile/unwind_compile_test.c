/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "consumer/unwind/cfi/cfi_program.h"
#include "consumer/unwind/compile/unwind_compile.h"
#include "tests/unit/consumer/unwind/testing/cfi_file_testing.h"
#include "tests/unit/consumer/unwind/testing/image_testing.h"

static struct frames f;
static struct unwind_rules rules;
static struct unwind_table t;

static int setup(void **state)
{
	f.bytes = 0;
	t = (struct unwind_table){ 0 };
	return unwind_rules_init(&rules);
}

static int teardown(void **state)
{
	unwind_table_done(&t);
	unwind_rules_done(&rules);
	return 0;
}

static int compile(enum wrap_way way)
{
	struct elf_image image = wrap(f.data, f.bytes, way);
	int r;

	unwind_table_done(&t);
	r = unwind_compile(&image, &rules, &t);
	free((void *)image.memory);
	return r;
}

/* The rule at WRAP_TEXT + `offset`. */
static struct unwind_rule at(uint32_t offset)
{
	return rules.rules[unwind_table_find(&t, WRAP_TEXT + offset)];
}

static void sp_is(uint32_t offset, int32_t cfa_offset)
{
	assert_int_equal(at(offset).cfa, UNWIND_CFA_SP);
	assert_int_equal(at(offset).cfa_offset, cfa_offset);
}

static void none(uint32_t offset)
{
	assert_int_equal(at(offset).cfa, UNWIND_CFA_NONE);
}

static void test_function(void **state)
{
	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT + 0x1000, 0x20, 0x41, 0x0e, 16, 0x4f, 0x0e, 8);
	assert_int_equal(compile(WRAP_BY_HEADER), 0);
	assert_int_equal(t.base, WRAP_TEXT);
	assert_int_equal(t.row_count, 5);
	assert_int_equal(t.counts.entries, 1);
	assert_int_equal(t.counts.rules, 2);
	none(0xfff);
	sp_is(0x1000, 8);
	sp_is(0x1001, 16);
	sp_is(0x100f, 16);
	sp_is(0x1010, 8);
	sp_is(0x101f, 8);
	none(0x1020);
}

/* Narrow gaps are padding, wide ones are marked; overlaps end at the next; the widest of equals. */
static void test_ranges(void **state)
{
	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT + 0x2000, 0x10, 0x0e, 40); /* not sorted */
	FRAMES_FDE(&f, WRAP_TEXT + 0x100, 0x10, 0x0e, 16);
	FRAMES_FDE(&f, WRAP_TEXT + 0x110 + UNWIND_GAP_BYTES - 1, 0x10, 0x0e, 24);
	FRAMES_FDE(&f, WRAP_TEXT + 0x15f + UNWIND_GAP_BYTES, 0x10, 0x0e, 32);
	FRAMES_FDE(&f, WRAP_TEXT + 0x1000, 0x100, 0x0e, 48);
	FRAMES_FDE(&f, WRAP_TEXT + 0x1080, 0x10, 0x0e, 56);
	FRAMES_FDE(&f, WRAP_TEXT + 0x3000, 0x10, 0x0e, 64);
	FRAMES_FDE(&f, WRAP_TEXT + 0x3000, 0x30, 0x0e, 72);
	FRAMES_FDE(&f, WRAP_TEXT + 0x3000, 0x20, 0x0e, 80);
	assert_int_equal(compile(WRAP_BY_HEADER), 0);
	sp_is(0x110, 16);
	sp_is(0x14e, 16);
	sp_is(0x14f, 24);
	sp_is(0x15e, 24);
	none(0x15f);
	none(0x19e);
	sp_is(0x19f, 32);
	sp_is(0x107f, 48);
	sp_is(0x1080, 56);
	none(0x1090); /* the outer one does not come back, as in the kernel's and libgcc's search */
	sp_is(0x2000, 40);
	sp_is(0x302f, 72);
	none(0x3030);
	assert_int_equal(t.counts.lost[CFI_LOSS_DUPLICATE], 2);
	assert_int_equal(t.counts.entries, 7);
}

/* A narrow gap in which the program begins is no padding: musl's start stands behind main. */
static void test_entry_in_gap(void **state)
{
	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT + 0x100, 0x10, 0x0e, 16);
	FRAMES_FDE(&f, WRAP_TEXT + 0x120, 0x10, 0x0e, 24);
	for (uint32_t entry = 0x100; entry < 0x140; entry += 0x10) {
		struct elf_image image = wrap(f.data, f.bytes, WRAP_BY_HEADER);

		((Elf64_Ehdr *)image.memory)->e_entry = WRAP_TEXT + entry;
		unwind_table_done(&t);
		assert_int_equal(unwind_compile(&image, &rules, &t), 0);
		free((void *)image.memory);
		sp_is(0x10f, 16);
		sp_is(0x120, 24);
		if (entry == 0x110)
			none(0x110);
		else
			sp_is(0x110, 16);
	}
}

static void test_passed_over(void **state)
{
	size_t broken;

	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT, 0x10, 0x0e, 16);
	FRAMES_FDE(&f, 0, 0x10, 0x0e, 16); /* code that the linker discarded */
	FRAMES_FDE(&f, WRAP_TEXT + 0x100, 0, 0x0e, 16);
	broken = f.bytes;
	FRAMES_FDE(&f, WRAP_TEXT + 0x200, 0x10, 0x0e, 16);
	memset(f.data + broken + 4, 0x7f, 4); /* a CIE before the section */
	broken = f.bytes;
	FRAMES_FDE(&f, WRAP_TEXT + 0x300, 0x10, 0x0e, 16);
	f.data[broken + 16] = 0x7f;					  /* augmentation */
	FRAMES_FDE(&f, WRAP_TEXT + WRAP_TEXT_BYTES - 8, 0x100, 0x0e, 24); /* beyond the segment */
	assert_int_equal(compile(WRAP_BY_HEADER), 0);
	assert_int_equal(t.counts.entries, 2);
	assert_int_equal(t.counts.lost[CFI_LOSS_NO_TEXT], 1);
	assert_int_equal(t.counts.lost[CFI_LOSS_BAD_CIE], 1);
	assert_int_equal(t.counts.lost[CFI_LOSS_BAD_ENTRY], 1);
	sp_is(WRAP_TEXT_BYTES - 1, 24);
	none(WRAP_TEXT_BYTES);
	none(0x300);
}

static void test_unsupported(void **state)
{
	uint8_t deep[CFI_REMEMBER_MAX + 3];

	memset(deep, 0x0a, sizeof(deep));
	deep[0] = 0x41;
	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT, 0x40, 0x44, 0x0d, 3, 0x44, 0x0d, 7);
	FRAMES_FDE(&f, WRAP_TEXT + 0x40, 0x40, 0x44, 0x3f, 0x0e, 16);
	frames_fde(&f, WRAP_TEXT + 0x80, 0x40, deep, sizeof(deep));
	FRAMES_FDE(&f, WRAP_TEXT + 0xc0, 0x40, 0x07, 16);
	assert_int_equal(compile(WRAP_BY_HEADER), 0);
	sp_is(3, 8);
	assert_int_equal(at(4).cfa, UNWIND_CFA_UNSUPPORTED);
	sp_is(8, 8);
	sp_is(0x43, 8);
	assert_int_equal(at(0x44).cfa, UNWIND_CFA_UNSUPPORTED);
	assert_int_equal(at(0x7f).cfa, UNWIND_CFA_UNSUPPORTED);
	sp_is(0x80, 8);
	assert_int_equal(at(0x81).cfa, UNWIND_CFA_UNSUPPORTED);
	assert_int_equal(at(0xc0).cfa, UNWIND_CFA_END);
	assert_int_equal(t.counts.lost[CFI_LOSS_CFA_REGISTER], 1);
	assert_int_equal(t.counts.lost[CFI_LOSS_BAD_PROGRAM], 1);
	assert_int_equal(t.counts.lost[CFI_LOSS_DEPTH], 1);
	assert_int_equal(t.counts.unsupported_bytes, 4 + 0x3c + 0x3f);
}

static void test_signal(void **state)
{
	frames_cie(&f, true);
	FRAMES_FDE(&f, WRAP_TEXT, 0x10, 0x0e, 16);
	assert_int_equal(compile(WRAP_BY_HEADER), 0);
	assert_int_equal(at(0).saved & UNWIND_SAVED_EXACT, UNWIND_SAVED_EXACT);
}

/* Appends a .debug_frame with one function, at WRAP_TEXT + `offset`. */
static void put_debug(uint64_t offset)
{
	size_t from = f.bytes;

	frames_put(&f, 0, 4);
	frames_put(&f, UINT32_MAX, 4);
	frames_bytes(&f, (const uint8_t[]){ 3, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1 }, 10);
	frames_end(&f, from);
	from = f.bytes;
	frames_put(&f, 0, 4);
	frames_put(&f, 0, 4);
	frames_put(&f, WRAP_TEXT + offset, 8);
	frames_put(&f, 0x10, 8);
	frames_bytes(&f, (const uint8_t[]){ 0x41, 0x0e, 16 }, 3);
	frames_end(&f, from);
}

static void test_debug_frame(void **state)
{
	put_debug(0x10);
	assert_int_equal(compile(WRAP_DEBUG), 0);
	none(0);
	sp_is(0x10, 8);
	sp_is(0x11, 16);
	none(0x20);
}

/* Compiles the frames: the first `eh` bytes as .eh_frame, the rest as .debug_frame, of `method`. */
static int compile_both(size_t eh, uint64_t flags)
{
	struct elf_image image = wrap(f.data, f.bytes, WRAP_BY_HEADER);
	Elf64_Ehdr header;
	int r;

	memcpy(&header, image.memory, sizeof(header));
	wrap_sections((uint8_t *)image.memory, &header, f.bytes, WRAP_DEBUG);
	memcpy((uint8_t *)image.memory, &header, sizeof(header));
	wrapped_section(&image)->sh_offset += eh;
	wrapped_section(&image)->sh_size -= eh;
	wrapped_section(&image)->sh_flags = flags;
	unwind_table_done(&t);
	r = unwind_compile(&image, &rules, &t);
	free((void *)image.memory);
	return r;
}

/*
 * Objects that were compiled without .eh_frame have .debug_frame, beside that of the C library's
 * start: both count, and a .debug_frame that cannot be read takes nothing from the first.
 */
static void test_both_sections(void **state)
{
	size_t eh;

	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT + 0x1000, 0x10, 0x0e, 24);
	frames_put(&f, 0, 4);
	eh = f.bytes;
	put_debug(0x2000);
	put_debug(0x100);
	assert_int_equal(compile_both(eh, 0), 0);
	sp_is(0x101, 16);
	none(0x800);
	sp_is(0x1001, 24);
	none(0x1800);
	sp_is(0x2000, 8);
	sp_is(0x2001, 16);
	assert_int_equal(t.counts.entries, 3);
	assert_int_equal(t.counts.lost[CFI_LOSS_DEBUG_FRAME], 0);
	assert_int_equal(compile_both(eh, SHF_COMPRESSED), 0);
	none(0x101);
	sp_is(0x1001, 24);
	assert_int_equal(t.counts.lost[CFI_LOSS_DEBUG_FRAME], 1);
}

static void test_none(void **state)
{
	struct elf_image image = { .fd = -1, .memory = (const uint8_t *)"no", .bytes = 2 };

	assert_int_equal(unwind_compile(&image, &rules, &t), -ENOEXEC);
	frames_cie(&f, false);
	assert_int_equal(compile(WRAP_BY_HEADER), -ENODATA);
	FRAMES_FDE(&f, 0, 0x10, 0x0e, 16);
	assert_int_equal(compile(WRAP_BY_HEADER), -ENODATA);
	image = wrap(f.data, f.bytes, WRAP_BY_HEADER);
	((Elf64_Ehdr *)image.memory)->e_machine = EM_AARCH64;
	assert_int_equal(unwind_compile(&image, &rules, &t), -ENOTSUP);
	free((void *)image.memory);
	assert_int_equal(rules.count, UNWIND_RULE_END + 1);
}

/* Each row another rule: the file's share of the dictionary ends it, and leaves nothing behind. */
static void test_rules_wall(void **state)
{
	static uint8_t code[4 * (UNWIND_FILE_RULES_MAX + 1)];

	for (size_t i = 0; i <= UNWIND_FILE_RULES_MAX; i++) {
		code[4 * i] = 0x0e;
		code[4 * i + 1] = (uint8_t)(i & 0x7f) | 0x80;
		code[4 * i + 2] = (uint8_t)(i >> 7);
		code[4 * i + 3] = 0x41;
	}
	frames_cie(&f, false);
	frames_fde(&f, WRAP_TEXT, 0x10000, code, sizeof(code) - 4);
	assert_int_equal(compile(WRAP_BY_HEADER), 0);
	assert_int_equal(t.counts.rules, UNWIND_FILE_RULES_MAX);
	unwind_rules_rewind(&rules, UNWIND_RULE_END + 1);
	f.bytes = 0;
	frames_cie(&f, false);
	frames_fde(&f, WRAP_TEXT, 0x10000, code, sizeof(code));
	assert_int_equal(compile(WRAP_BY_HEADER), -ENOSPC);
	assert_int_equal(rules.count, UNWIND_RULE_END + 1);
}

/*
 * Two large CIEs that share a slot of the cache, and FDEs that go from one to the other, each
 * running its CIE again: as they lie in the file, or only by ascending address.
 */
static void test_steps_wall(void **state)
{
	size_t cie_bytes = CFI_ENTRY_MAX / 2, count = 400, bytes = 2 * cie_bytes + count * 24;
	uint8_t *data = calloc(1, bytes + 4);
	struct elf_image image;

	assert_non_null(data);
	frames_cie(&f, false);
	for (size_t i = 0; i < 2; i++) {
		uint32_t length = (uint32_t)cie_bytes - 4;

		memcpy(data + i * cie_bytes, f.data, f.bytes);
		memcpy(data + i * cie_bytes, &length, 4);
	}
	for (int by_address = 0; by_address < 2; by_address++) {
		for (size_t i = 0, at = 2 * cie_bytes; i < count; i++, at += 24) {
			size_t cie = by_address ? i >= count / 2 : i & 1;
			size_t place = by_address ? i % (count / 2) * 2 + cie : i;
			uint32_t text = (uint32_t)(WRAP_TEXT + place * 16);
			uint32_t words[] = { 20, (uint32_t)(at + 4 - cie * cie_bytes),
					     (uint32_t)(text - WRAP_DATA - WRAP_FRAMES - at - 8),
					     16 };

			memcpy(data + at, words, sizeof(words));
		}
		image = wrap(data, bytes + 4, WRAP_BY_HEADER);
		assert_int_equal(unwind_compile(&image, &rules, &t), -ETIME);
		free((void *)image.memory);
	}
	free(data);
}

/* A row for each byte of text, by a program of a few bytes. */
static void test_rows_wall(void **state)
{
	size_t entry = CFI_ENTRY_MAX - 64, count = UNWIND_ROWS_MAX / (entry / 4) + 1;
	uint8_t *data = calloc(count + 1, entry);
	struct elf_image image;

	assert_non_null(data);
	frames_cie(&f, false);
	memcpy(data, f.data, f.bytes);
	for (size_t i = 0, at = f.bytes; i < count; i++, at += entry) {
		uint32_t words[] = { (uint32_t)entry - 4, (uint32_t)at + 4,
				     (uint32_t)(WRAP_TEXT + i * entry - WRAP_DATA - WRAP_FRAMES -
						at - 8),
				     (uint32_t)entry };

		memcpy(data + at, words, sizeof(words));
		for (size_t j = 20; j + 4 < entry; j += 3)
			memcpy(data + at + j, j & 1 ? "\x0e\x08\x41" : "\x0e\x10\x41", 3);
	}
	image = wrap(data, f.bytes + count * entry + 4, WRAP_BY_HEADER);
	((Elf64_Phdr *)(image.memory + sizeof(Elf64_Ehdr)))->p_filesz = UNWIND_SPAN_MAX / 2;
	assert_int_equal(unwind_compile(&image, &rules, &t), -EOVERFLOW);
	assert_int_equal(rules.count, UNWIND_RULE_END + 1);
	free((void *)image.memory);
	free(data);
}

static void test_too_far(void **state)
{
	struct elf_image image;

	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT, 0x10, 0x0e, 16);
	FRAMES_FDE(&f, WRAP_TEXT + UNWIND_SPAN_MAX - 0x10, 0x10, 0x0e, 16);
	image = wrap(f.data, f.bytes, WRAP_BY_HEADER);
	((Elf64_Phdr *)(image.memory + sizeof(Elf64_Ehdr)))->p_filesz = UINT64_MAX / 2;
	assert_int_equal(unwind_compile(&image, &rules, &t), 0);
	assert_int_equal(t.counts.lost[CFI_LOSS_TOO_FAR], 1);
	assert_int_equal(t.counts.entries, 1);
	free((void *)image.memory);
}

/* This very program, and the kernel's vDSO as it lies in memory. */
static void test_real(void **state)
{
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct elf_image image;

	assert_int_equal(image_open("/proc/self/exe", &image), 0);
	assert_int_equal(unwind_compile(&image, &rules, &t), 0);
	assert_true(t.counts.entries > 10);
	image_close(&image);
	unwind_table_done(&t);
	if (!vdso)
		skip();
	image = (struct elf_image){ .fd = -1, .memory = vdso, .bytes = (size_t)getpagesize() };
	assert_int_equal(unwind_compile(&image, &rules, &t), 0);
	assert_true(t.counts.entries >= 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_TESTS(unwind_compile)
{
	const struct CMUnitTest tests[] = {
		TEST(test_function),	 TEST(test_ranges),	   TEST(test_passed_over),
		TEST(test_entry_in_gap), TEST(test_unsupported),   TEST(test_signal),
		TEST(test_debug_frame),	 TEST(test_both_sections), TEST(test_none),
		TEST(test_rules_wall),	 TEST(test_steps_wall),	   TEST(test_rows_wall),
		TEST(test_too_far),	 TEST(test_real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
