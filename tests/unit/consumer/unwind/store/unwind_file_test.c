/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a file's rows apply: the dynamic loader's view of this very process. */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "consumer/symbols/vdso.h"
#include "consumer/unwind/store/unwind_file.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/consumer/unwind/testing/image_testing.h"

/* The bias of the module that holds an address, by the dynamic loader. */
struct question {
	uint64_t address, bias;
	bool known;
};

static int answer(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct question *q = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || q->address < (start & ~4095ULL) ||
		    q->address >= start + p->p_memsz)
			continue;
		q->bias = info->dlpi_addr;
		q->known = true;
	}
	return 0;
}

/* All executable mappings of files. */
static void test_bias(void **state)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	char line[600], mode[5], path[300];
	unsigned long start, end, offset;
	size_t seen = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		struct unwind_layout layout;
		struct elf_image image;
		struct question q;
		uint64_t bias;

		/* NOLINTNEXTLINE(cert-err34-c): the kernel writes no number that does not fit */
		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %299s", &start, &end, mode, &offset,
			   path) != 5 ||
		    mode[2] != 'x' || path[0] != '/')
			continue;
		assert_int_equal(image_open(path, &image), 0);
		assert_int_equal(unwind_file_layout(&image, &layout), 0);
		assert_int_equal(unwind_file_bias(&layout, start, offset, &bias), 0);
		q = (struct question){ .address = start };
		dl_iterate_phdr(answer, &q);
		assert_true(q.known);
		assert_int_equal(bias, q.bias);
		assert_int_equal(unwind_file_bias(&layout, start, 1ULL << 40, &bias), -ENOENT);
		image_close(&image);
		seen++;
	}
	assert_true(seen >= 2);
}

/*
 * lld writes executable segments one behind the other, without a gap: the last page of the first is
 * the first page of the second, and is mapped twice.
 */
static void test_shared_page(void **state)
{
	struct unwind_layout layout = {
		.count = 2,
		.segments = { { .offset = 0x1000, .bytes = 0x1800, .bias = 0x10000 },
			      { .offset = 0x2000, .bytes = 0x1800, .bias = 0x20000 } },
	};
	uint64_t bias;

	assert_int_equal(unwind_file_bias(&layout, 0x7f0000011000, 0x1000, &bias), 0);
	assert_int_equal(bias, 0x7f0000000000);
	assert_int_equal(unwind_file_bias(&layout, 0x7f0000022000, 0x2000, &bias), 0);
	assert_int_equal(bias, 0x7f0000000000);
	/* A second mapping of a segment, after a part with changed protection. */
	assert_int_equal(unwind_file_bias(&layout, 0x7f0000023000, 0x3000, &bias), 0);
	assert_int_equal(bias, 0x7f0000000000);
	/* Both begin in one page: only the addresses of a program that is not moved can show it. */
	layout.segments[1].offset = 0x1000;
	assert_int_equal(unwind_file_bias(&layout, 0x7f0000011000, 0x1000, &bias), -ENOTUNIQ);
	layout.fixed = true;
	assert_int_equal(unwind_file_bias(&layout, 0x11000, 0x1000, &bias), 0);
	assert_int_equal(bias, 0);
	assert_int_equal(unwind_file_bias(&layout, 0x21000, 0x1000, &bias), 0);
	assert_int_equal(bias, 0);
	assert_int_equal(unwind_file_bias(&layout, 0x31000, 0x1000, &bias), -ENOENT);
}

static void test_vdso(void **state)
{
	struct unwind_layout layout;
	struct elf_image image;
	uint64_t bias;

	if (vdso_image(&image) < 0)
		skip();
	assert_int_equal(unwind_file_layout(&image, &layout), 0);
	assert_int_equal(unwind_file_bias(&layout, 0x7000, 0, &bias), 0);
	assert_int_equal(bias, 0x7000);
}

static void test_refused(void **state)
{
	Elf32_Ehdr narrow = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, 1 },
			      .e_type = ET_DYN,
			      .e_machine = EM_386,
			      .e_version = 1,
			      .e_ehsize = sizeof(narrow),
			      .e_phentsize = sizeof(Elf32_Phdr) };
	struct elf_image image = { .fd = -1,
				   .memory = (const uint8_t *)&narrow,
				   .bytes = sizeof(narrow) };
	struct unwind_layout layout;

	assert_int_equal(unwind_file_layout(&image, &layout), -ENOTSUP);
	narrow.e_ident[0] = 0;
	assert_int_equal(unwind_file_layout(&image, &layout), -ENOEXEC);
}

/* What exceeds a limit is no file that may not be read. */
static void test_limits_have_words(void **state)
{
	static const int too_large[] = { -EFBIG, -E2BIG, -EOVERFLOW };

	for (size_t i = 0; i < sizeof(too_large) / sizeof(*too_large); i++)
		assert_string_equal(unwind_file_why(too_large[i]), "too_large");
	assert_string_equal(unwind_file_why(-ETIME), "too_slow");
	assert_string_equal(unwind_file_why(-EPROTONOSUPPORT), "unknown_compression");
	assert_string_equal(unwind_file_why(-EACCES), "not_readable");
}

/* A file of another machine, and one of a machine that no rows are compiled for. */
static void test_machine(void **state)
{
	assert_int_equal(unwind_file_machine(EM_X86_64, EM_X86_64), 0);
	assert_int_equal(unwind_file_machine(EM_AARCH64, EM_X86_64), -ENOTSUP);
	assert_int_equal(unwind_file_machine(EM_X86_64, EM_AARCH64), -ENOTSUP);
	assert_int_equal(unwind_file_machine(EM_AARCH64, EM_AARCH64), -ENOSYS);
	assert_string_equal(unwind_file_why(-ENOTSUP), "other_machine");
	assert_string_equal(unwind_file_why(-ENOSYS), "architecture");
}

UNIT_TESTS(unwind_file)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bias),
		cmocka_unit_test(test_shared_page),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits_have_words),
		cmocka_unit_test(test_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
