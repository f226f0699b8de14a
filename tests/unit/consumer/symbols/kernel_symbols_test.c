/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/symbols/kernel_symbols.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/consumer/symbols/records_testing.h"

#define TEXT   0xffffffff81000000ULL
#define MODULE 0xffffffffc0200000ULL

/* What lies between the braces is written to memory and parsed. */
struct bytes {
	char *data;
	size_t bytes;
	FILE *file;
};

static void start(struct bytes *b)
{
	b->file = open_memstream(&b->data, &b->bytes);
	assert_non_null(b->file);
}

static int parse(struct bytes *b, struct kernel_symbols **ret_symbols)
{
	int r;

	fclose(b->file);
	r = kernel_symbols_parse((const uint8_t *)b->data, b->bytes, ret_symbols);
	free(b->data);
	return r;
}

static void expect(const struct kernel_symbols *k, uint64_t address, const char *name,
		   const char *module, uint64_t from)
{
	const char *found_module = NULL, *found;
	uint64_t found_from = 0;

	found = kernel_symbols_find(k, address, &found_from, &found_module);
	if (!name) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, name);
	assert_string_equal(found_module, module);
	assert_int_equal(found_from, from);
}

static void test_lookup(void **state)
{
	struct kernel_symbols *k;
	struct bytes b;

	start(&b);
	records_file_ksym(b.file, TEXT, "_text", "");
	records_file_ksym(b.file, TEXT + 0x100, "schedule", "");
	records_file_ksym(b.file, TEXT + 0x100, "__schedule_alias", "");
	records_file_ksym(b.file, TEXT + 0x9000, "last", "");
	records_file_ksym(b.file, MODULE + 0x80, "ext4_b", "ext4");
	records_file_ksym(b.file, MODULE, "ext4_a", "ext4");
	records_file_ksym(b.file, MODULE + 0x100, "xfs_a", "xfs");
	records_file_ksym(b.file, 0, "hidden", "");
	assert_int_equal(parse(&b, &k), 0);
	assert_int_equal(kernel_symbols_count(k), 6);
	expect(k, TEXT - 1, NULL, NULL, 0);
	expect(k, TEXT, "_text", "", TEXT);
	expect(k, TEXT + 0x100, "schedule", "", TEXT + 0x100);
	expect(k, TEXT + 0x8fff, "schedule", "", TEXT + 0x100);
	expect(k, TEXT + 0x9000 + KERNEL_LAST_BYTES - 1, "last", "", TEXT + 0x9000);
	expect(k, TEXT + 0x9000 + KERNEL_LAST_BYTES, NULL, NULL, 0);
	expect(k, MODULE + 0x7f, "ext4_a", "ext4", MODULE);
	expect(k, MODULE + 0x80, "ext4_b", "ext4", MODULE + 0x80);
	expect(k, MODULE + 0x100, "xfs_a", "xfs", MODULE + 0x100);
	expect(k, MODULE + 0x100 + KERNEL_LAST_BYTES, NULL, NULL, 0);
	expect(k, UINT64_MAX, NULL, NULL, 0);
	kernel_symbols_free(k);
}

/* Between pieces of code that were made at run time may be others, which the kernel does not list.
 */
static void test_scattered(void **state)
{
	struct kernel_symbols *k;
	struct bytes b;

	start(&b);
	records_file_ksym(b.file, MODULE, "bpf_prog_a", "bpf");
	records_file_ksym(b.file, MODULE + 0x100, "bpf_prog_b", "bpf");
	records_file_ksym(b.file, MODULE + 0x8000, "ftrace_trampoline", "__builtin__ftrace");
	records_file_ksym(b.file, MODULE + 0x18000, "ftrace_trampoline", "__builtin__ftrace");
	assert_int_equal(parse(&b, &k), 0);
	expect(k, MODULE, "bpf_prog_a", "bpf", MODULE);
	expect(k, MODULE + 1, NULL, NULL, 0);
	expect(k, MODULE + 0xff, NULL, NULL, 0);
	expect(k, MODULE + 0x100, "bpf_prog_b", "bpf", MODULE + 0x100);
	expect(k, MODULE + 0x101, NULL, NULL, 0);
	expect(k, MODULE + 0x8fff, "ftrace_trampoline", "__builtin__ftrace", MODULE + 0x8000);
	expect(k, MODULE + 0x9000, NULL, NULL, 0);
	kernel_symbols_free(k);
}

static void test_windows(void **state)
{
	struct kernel_symbols *k;
	struct bytes b;

	start(&b);
	for (uint64_t i = 1; i <= KERNEL_WINDOWS_MAX; i++)
		records_file_ksym(b.file, i << 32, "one", "bpf");
	assert_int_equal(parse(&b, &k), 0);
	expect(k, 7ULL << 32, "one", "bpf", 7ULL << 32);
	expect(k, 77ULL << 32, NULL, NULL, 0);
	kernel_symbols_free(k);
	start(&b);
	for (uint64_t i = 1; i <= KERNEL_WINDOWS_MAX + 1; i++)
		records_file_ksym(b.file, i << 32, "one", "bpf");
	assert_int_equal(parse(&b, &k), -EFBIG);
}

static void test_malformed(void **state)
{
	const struct ksym_record rows[] = {
		{ .address = 1, .name_bytes = 0, .module_bytes = 1, .record_bytes = 24 },
		{ .address = 1, .name_bytes = 7, .module_bytes = 0, .record_bytes = 24 },
		{ .address = 1, .name_bytes = 7, .module_bytes = 1, .record_bytes = 16 },
		{ .address = 1, .name_bytes = 7, .module_bytes = 1, .record_bytes = 25 },
		{ .address = 1, .name_bytes = 7, .module_bytes = 1, .record_bytes = UINT32_MAX },
		{ .address = 1, .name_bytes = UINT16_MAX, .module_bytes = 1, .record_bytes = 24 },
		{ .address = 1, .name_bytes = 6, .module_bytes = 1, .record_bytes = 24 },
	};
	struct kernel_symbols *k;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bytes b;

		start(&b);
		fwrite(&rows[i], sizeof(rows[i]), 1, b.file);
		fwrite("symbol\0", 8, 1, b.file);
		assert_int_equal(parse(&b, &k), -EBADMSG);
	}
}

static void test_nothing(void **state)
{
	struct kernel_symbols *k;
	struct bytes b;

	start(&b);
	records_file_ksym(b.file, 0, "hidden", "");
	assert_int_equal(parse(&b, &k), -ENODATA);
	assert_int_equal(kernel_symbols_read("/dev/null", &k), -ENODATA);
	assert_int_equal(kernel_symbols_read("/nonexistent", &k), -ENOENT);
}

/* As many as a kernel has, across many reads. */
static void test_file(void **state)
{
	enum { COUNT = 120000 };
	char path[] = "/tmp/kernel_test.XXXXXX", name[32];
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct kernel_symbols *k;

	assert_non_null(f);
	for (uint64_t i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "function_%ju", (uintmax_t)i);
		records_file_ksym(f, TEXT + i * 64, name, "");
	}
	fclose(f);
	assert_int_equal(kernel_symbols_read(path, &k), 0);
	assert_int_equal(kernel_symbols_count(k), COUNT);
	assert_true(kernel_symbols_bytes(k) < 6 << 20);
	expect(k, TEXT + 77777 * 64 + 63, "function_77777", "", TEXT + 77777 * 64);
	kernel_symbols_free(k);
	unlink(path);
}

UNIT_TESTS(kernel_symbols)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookup),	cmocka_unit_test(test_scattered),
		cmocka_unit_test(test_windows), cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_nothing), cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
