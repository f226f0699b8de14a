/* SPDX-License-Identifier: BSD-2-Clause */
/* Modules that nothing refers to are freed with their tables, and memory stays flat. */
#include "tests/unit/consumer/symbols/specimen_testing.h"

#include <stdio.h>
#include <stdlib.h>

#define DEPLOYS 100000u /* more than SYMBOLS_MODULES_MAX */

static char *specimen;

static bool is_never_used(void *context, const struct module *m)
{
	return false;
}

/* A file that each deploy writes anew, mapped by one process after the other. */
static struct module *deploy(struct symbols *s, uint32_t number)
{
	const struct file_identity identity = { .device = 1, .inode = 7, .changed_ns = number };
	struct module *m;

	assert_int_equal(symbols_module(s, &identity, "/srv/app", false, &m), 0);
	symbols_hold(m);
	symbols_release(m, number);
	return m;
}

/* More different files than the table has room for, over time, are all known. */
static void test_flat(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct symbols_stats stats;
	size_t most = 0;

	for (uint32_t i = 1; i <= DEPLOYS; i++) {
		deploy(s, i);
		if (i % 1000)
			continue;
		symbols_forget(s, i, is_never_used, NULL);
		symbols_sweep(s);
		symbols_stats(s, &stats);
		most = MAX(most, stats.modules);
	}
	assert_int_equal(most, SYMBOLS_MODULES_KEEP);
	assert_int_equal(stats.modules_refused, 0);
	symbols_free(s);
}

/* What piled up, because a session held it, goes in parts: no turn of the main loop takes long. */
static void test_in_parts(void **state)
{
	struct symbols *s = fresh(1 << 20);

	for (uint32_t i = 1; i <= SYMBOLS_MODULES_KEEP + SYMBOLS_FORGET_MAX + 9; i++)
		deploy(s, i);
	assert_int_equal(symbols_forget(s, DEPLOYS, is_never_used, NULL), SYMBOLS_FORGET_MAX);
	assert_int_equal(symbols_forget(s, DEPLOYS, is_never_used, NULL), 9);
	assert_int_equal(symbols_forget(s, DEPLOYS, is_never_used, NULL), 0);
	symbols_free(s);
}

/* Loads the specimen's table, and has a module without a file name its functions by it. */
static struct module *resolve_by_build_id(struct symbols *s, struct module *file, uint64_t offset)
{
	uint8_t id[SYMBOLS_BUILD_ID_MAX];
	struct symbol_name name;
	struct module *m;

	assert_int_equal(symbols_user(s, file, offset, false, &name), 0);
	assert_int_equal(symbols_build_id(s, file, id), BUILD_ID_BYTES);
	assert_int_equal(symbols_module_by_build_id(s, id, &m), 0);
	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	assert_string_equal(name.fn, "main");
	assert_ptr_equal(m->resolved, file);
	return m;
}

/* A forgotten file leaves nothing behind: neither its table, nor its users. */
static void test_with_table(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct symbols_stats stats;
	struct symbol_name name;
	struct module *file = module_of(s, specimen), *by_id;
	uint32_t size;
	uint64_t offset = offset_of(specimen, "main", &size);

	by_id = resolve_by_build_id(s, file, offset);
	by_id->holds = 1;
	for (uint32_t i = 1; i <= SYMBOLS_MODULES_KEEP; i++)
		deploy(s, i);
	symbols_trim(s);
	assert_int_equal(symbols_forget(s, 1, is_never_used, NULL), 1);
	assert_true(file->forgotten);
	symbols_sweep(s);
	symbols_stats(s, &stats);
	assert_int_equal(stats.symbols, 0);
	assert_int_equal(stats.bytes, 0);
	assert_null(by_id->resolved);
	assert_int_equal(symbols_user(s, by_id, offset, false, &name), -ENOENT);
	assert_string_equal(name.reason, "unknown_build_id");

	file = module_of(s, specimen);
	assert_int_equal(symbols_user(s, by_id, offset, false, &name), 0);
	assert_ptr_equal(by_id->resolved, file);
	symbols_free(s);
}

UNIT_TESTS(symbols_sweep)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flat),
		cmocka_unit_test(test_in_parts),
		cmocka_unit_test(test_with_table),
	};
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: %s SPECIMEN\n", argv[0]);
		return 2;
	}
	specimen = realpath(argv[1], NULL);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	free(specimen);
	return r;
}
