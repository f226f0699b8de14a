/* SPDX-License-Identifier: BSD-2-Clause */
/* What each mapping is walked by, and what of it the kernel side is told. */
#include "unit.h"

#include <poll.h>
#include <stdlib.h>

#include "consumer/unwinding_plan.h"
#include "tests/unit/consumer/unwind/own.h"

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

	assert_int_equal(symbols_module(symbols, 0, 0, "[anon]", true, &m), 0);
	return m;
}

/* Steps until it is settled. */
static struct unwinding_plan *plan_of(const struct mappings *m, enum rule_unwind by)
{
	struct unwinding_plan *plan = unwinding_plan_new(m, by);

	assert_non_null(plan);
	while (!unwinding_plan_step(plan, files)) {
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
		enum unwinding_how how;
	} rows[] = {
		{ RULE_UNWIND_AUTO, UNWIND_KIND_ROWS, UNWIND_KIND_FP, UNWINDING_MIXED },
		{ RULE_UNWIND_TABLE, UNWIND_KIND_ROWS_ALONE, UNWIND_KIND_NONE, UNWINDING_MIXED },
		{ RULE_UNWIND_FP, UNWIND_KIND_FP, UNWIND_KIND_FP, UNWINDING_FP },
	};
	struct mapping items[2] = { own_mapping(symbols),
				    { .start = 1ULL << 46, .end = (1ULL << 46) + 1 } };
	struct mappings m = { .items = items, .count = 2 };
	struct unwind_mapping out[UNWIND_RANGES];
	__u64 starts[UNWIND_RANGES];
	struct unwinding_plan *plan;

	items[1].module = anonymous();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		plan = plan_of(&m, rows[i].by);
		assert_int_equal(unwinding_plan_how(plan), rows[i].how);
		assert_int_equal(unwinding_plan_claim(plan, starts), 2);
		assert_int_equal(starts[0], items[0].start);
		assert_int_equal(starts[1], items[1].start);
		unwinding_plan_write(plan, out);
		assert_int_equal(out[0].kind, rows[i].file);
		assert_int_equal(out[1].kind, rows[i].anonymous);
		assert_ptr_equal(unwinding_plan_rowless(plan, rows[i].by == RULE_UNWIND_FP),
				 items[1].module);
		unwinding_plan_free(plan, files);
	}
	m.count = 1;
	plan = plan_of(&m, RULE_UNWIND_AUTO);
	assert_int_equal(unwinding_plan_how(plan), UNWINDING_TABLE);
	unwinding_plan_free(plan, files);
}

static uint64_t shape_of(const struct mappings *m, enum rule_unwind by)
{
	struct unwinding_plan *plan = plan_of(m, by);
	uint64_t shape = unwinding_plan_shape(plan);

	unwinding_plan_free(plan, files);
	return shape;
}

/* The same shape for the same mappings, another for what differs in anything. */
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

/* Too many mappings: those without a file go first, and what is left out is counted. */
static void test_cut(void **state)
{
	size_t count = UNWIND_RANGES + 40;
	struct mapping *items = calloc(count, sizeof(*items));
	struct mappings m = { .items = items, .count = count };
	struct module *file = own_mapping(symbols).module, *none = anonymous();
	struct unwinding_plan *plan;

	assert_non_null(items);
	for (size_t i = 0; i < count; i++)
		items[i] = (struct mapping){ .start = (i + 1) << 12,
					     .end = (i + 2) << 12,
					     .module = i % 2 ? file : none };
	plan = unwinding_plan_new(&m, RULE_UNWIND_AUTO);
	assert_int_equal(unwinding_plan_cut(plan), count - count / 2);
	unwinding_plan_free(plan, files);
	for (size_t i = 0; i < count; i++)
		items[i].module = file;
	plan = unwinding_plan_new(&m, RULE_UNWIND_AUTO);
	assert_int_equal(unwinding_plan_cut(plan), 40);
	unwinding_plan_free(plan, files);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shape, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
