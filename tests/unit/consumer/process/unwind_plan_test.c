/* SPDX-License-Identifier: BSD-2-Clause */
/* The way that each mapping is walked, and the part for the kernel side. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <poll.h>
#include <stdlib.h>

#include "consumer/process/unwind_plan.h"
#include "tests/unit/consumer/unwind/testing/own_program_testing.h"

#define ELEMENTS (1u << 20)

static struct unwind_maps maps;
static void *pool;
static struct symbols *symbols;
static struct unwind_files *files;

static int setup(void **state)
{
	maps = (struct unwind_maps){
		.pool_fd = own_memory(ELEMENTS * 8, &pool),
		.pool_elements = ELEMENTS,
		.rules = calloc(UNWIND_RULES_MAX, sizeof(*maps.rules)),
		.files = calloc(UNWIND_FILES_MAX, sizeof(*maps.files)),
	};
	if (!maps.rules || !maps.files || symbols_new(1 << 20, NULL, &symbols) < 0)
		return -1;
	return unwind_files_new(&maps, symbols, &files);
}

static int teardown(void **state)
{
	unwind_files_free(files);
	symbols_free(symbols);
	munmap(pool, ELEMENTS * 8);
	close(maps.pool_fd);
	free(maps.rules);
	free(maps.files);
	return 0;
}

static struct module *anonymous(void)
{
	struct module *m;

	assert_int_equal(symbols_module(symbols, &(struct file_identity){ 0 }, "[anon]", true, &m),
			 0);
	return m;
}

/* Steps until it is settled. */
static struct unwind_plan *plan_of(const struct mappings *m, enum rule_unwind by)
{
	struct unwind_plan *plan = unwind_plan_new(m, by);

	assert_non_null(plan);
	while (!unwind_plan_step(plan, files)) {
		struct pollfd p = { .fd = unwind_files_fd(files), .events = POLLIN };

		assert_int_equal(poll(&p, 1, 20000), 1);
		unwind_files_news(files);
	}
	return plan;
}

static void test_kinds(void **state)
{
	static const struct {
		enum rule_unwind by;
		enum unwind_kind file, anonymous;
		enum unwind_how how;
	} rows[] = {
		{ RULE_UNWIND_AUTO, UNWIND_KIND_ROWS, UNWIND_KIND_FP, UNWIND_HOW_MIXED },
		{ RULE_UNWIND_TABLE, UNWIND_KIND_ROWS_ALONE, UNWIND_KIND_NONE, UNWIND_HOW_MIXED },
		{ RULE_UNWIND_FP, UNWIND_KIND_FP, UNWIND_KIND_FP, UNWIND_HOW_FP },
	};
	struct mapping items[2] = { own_mapping(symbols),
				    { .start = 1ULL << 46, .end = (1ULL << 46) + 1 } };
	struct mappings m = { .items = items, .count = 2 };
	struct unwind_mapping out[UNWIND_RANGES];
	static struct unwind_claims claims;
	struct unwind_plan *plan;

	items[1].module = anonymous();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		plan = plan_of(&m, rows[i].by);
		assert_int_equal(unwind_plan_how(plan), rows[i].how);
		unwind_plan_claim(plan, &claims);
		assert_int_equal(claims.count, 2);
		assert_int_equal(claims.starts[0], items[0].start);
		assert_int_equal(claims.starts[1], items[1].start);
		assert_int_equal(claims.inodes[0], items[0].module->identity.inode);
		assert_int_equal(claims.inodes[1], 0);
		unwind_plan_write(plan, out);
		assert_int_equal(out[0].kind, rows[i].file);
		assert_int_equal(out[1].kind, rows[i].anonymous);
		assert_ptr_equal(unwind_plan_rowless(plan, rows[i].by == RULE_UNWIND_FP),
				 items[1].module);
		unwind_plan_free(plan, files);
	}
	m.count = 1;
	m.exe = items[0].module;
	plan = plan_of(&m, RULE_UNWIND_AUTO);
	assert_int_equal(unwind_plan_how(plan), UNWIND_HOW_TABLE);
	unwind_plan_free(plan, files);
}

static uint64_t shape_of(const struct mappings *m, enum rule_unwind by)
{
	struct unwind_plan *plan = plan_of(m, by);
	uint64_t shape = unwind_plan_shape(plan);

	unwind_plan_free(plan, files);
	return shape;
}

/* The same shape for the same mappings, another for any difference. */
static void test_shape(void **state)
{
	struct mapping item = own_mapping(symbols);
	struct mappings m = { .items = &item, .count = 1 };
	uint64_t first = shape_of(&m, RULE_UNWIND_AUTO);

	assert_int_equal(shape_of(&m, RULE_UNWIND_AUTO), first);
	assert_int_not_equal(shape_of(&m, RULE_UNWIND_FP), first);
	item.start += 4096;
	assert_int_not_equal(shape_of(&m, RULE_UNWIND_AUTO), first);
}

/* Mappings of a page each, every other one of `file`. The caller frees them. */
static struct mapping *many(size_t count, struct module *file, struct module *none)
{
	struct mapping *items = calloc(count, sizeof(*items));

	assert_non_null(items);
	for (size_t i = 0; i < count; i++)
		items[i] = (struct mapping){ .start = (i + 1) << 12,
					     .end = (i + 2) << 12,
					     .module = i % 2 ? file : none };
	return items;
}

/* Whether the plan claims the mapping with that number. */
static bool placed(const struct unwind_plan *plan, size_t i)
{
	static struct unwind_claims claims;
	const __u64 *starts = claims.starts;

	unwind_plan_claim(plan, &claims);
	assert_int_equal(claims.count, UNWIND_RANGES);
	for (uint32_t k = 1; k < claims.count; k++)
		assert_true(starts[k] > starts[k - 1]);
	for (uint32_t k = 0; k < claims.count; k++)
		if (starts[k] == (i + 1) << 12)
			return true;
	return false;
}

/* Too many mappings: the program has a place, wherever it lies, and the highest files. */
static void test_cut(void **state)
{
	size_t count = UNWIND_RANGES + 40;
	struct module *file = own_mapping(symbols).module, *exe;
	struct mapping *items = many(count, file, file);
	struct mappings m = { .items = items, .count = count };
	struct unwind_plan *plan;

	assert_int_equal(symbols_module(symbols, &(struct file_identity){ .device = 9, .inode = 9 },
					"/bin/exe", false, &exe),
			 0);
	items[7].module = m.exe = exe;
	plan = unwind_plan_new(&m, RULE_UNWIND_AUTO);
	assert_int_equal(unwind_plan_cut(plan), 40);
	assert_true(placed(plan, 7) && placed(plan, 41) && placed(plan, count - 1));
	assert_false(placed(plan, 6) || placed(plan, 40));
	unwind_plan_free(plan, files);
	/* At the limit all have one. */
	m.count = UNWIND_RANGES;
	plan = unwind_plan_new(&m, RULE_UNWIND_AUTO);
	assert_int_equal(unwind_plan_cut(plan), 0);
	assert_true(placed(plan, 0));
	unwind_plan_free(plan, files);
	free(items);
}

/* Code without a file has the rest, most of it first; with any left out it is not "table". */
static void test_cut_anonymous(void **state)
{
	size_t count = 2 * UNWIND_RANGES - 40;
	struct module *file = own_mapping(symbols).module, *none = anonymous();
	struct mapping *items = many(count, file, none);
	struct mappings m = { .items = items, .count = count };
	struct unwind_plan *plan;

	items[2].end = items[2].start + 1;
	plan = unwind_plan_new(&m, RULE_UNWIND_AUTO);
	assert_int_equal(unwind_plan_cut(plan), count - UNWIND_RANGES);
	for (size_t i = 1; i < count; i += 2)
		assert_true(placed(plan, i));
	assert_false(placed(plan, 2));
	unwind_plan_free(plan, files);
	free(items);

	count = UNWIND_RANGES + 1;
	items = many(count, file, file);
	for (size_t i = 0; i < count; i++)
		items[i] = own_mapping(symbols);
	m = (struct mappings){ .items = items, .count = count };
	plan = plan_of(&m, RULE_UNWIND_AUTO);
	assert_int_equal(unwind_plan_how(plan), UNWIND_HOW_MIXED);
	unwind_plan_free(plan, files);
	free(items);
}

UNIT_TESTS(unwind_plan)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shape, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_anonymous, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
