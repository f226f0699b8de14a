/* SPDX-License-Identifier: BSD-2-Clause */
/* The builds with a number and room, the order of eviction, and the content of the pool. */
#include "tests/unit/consumer/unwind/testing/own_program_testing.h"

#include <errno.h>

#include "consumer/unwind/store/unwind_builds.h"

#define ELEMENTS 64

static struct unwind_row rows[10];
static uint32_t pages[5];

/* A table of 10 rows and 5 pages: 13 elements. */
static const struct unwind_table table = {
	.base = 0x1000, .rows = rows, .row_count = 10, .pages = pages, .page_count = 5
};

static struct unwind_layout layout(uint8_t id)
{
	return (struct unwind_layout){ .build_id = { id }, .build_id_bytes = 20, .digest = 7 };
}

static int add(struct unwind_builds *b, uint8_t id, struct unwind_build **ret_build)
{
	struct unwind_layout l = layout(id);

	return unwind_builds_add(b, &l, &table, 5, ret_build);
}

static void test_room(void **state)
{
	struct unwind_build *build[5], *found;
	struct unwind_layout l;
	struct unwind_builds b;

	assert_int_equal(unwind_builds_init(&b, ELEMENTS), 0);
	for (uint8_t i = 0; i < 4; i++)
		assert_int_equal(add(&b, i + 1, &build[i]), 0);
	assert_int_equal(b.pool.used, 52);
	assert_int_equal(b.rows, 40);
	/* All are held. */
	assert_int_equal(add(&b, 9, &build[4]), -ENOSPC);
	l = layout(2);
	assert_ptr_equal(unwind_builds_find(&b, &l), build[1]);
	/* The longest unused of those without a holder. */
	unwind_builds_hold(&b, build[1]);
	build[1]->holds = build[2]->holds = 0;
	assert_int_equal(add(&b, 9, &build[4]), 0);
	assert_int_equal(b.evicted, 1);
	l = layout(3);
	found = unwind_builds_find(&b, &l);
	assert_true(!found || found == build[4]);
	l = layout(2);
	assert_ptr_equal(unwind_builds_find(&b, &l), build[1]);
	assert_int_equal(b.count, 4);
	/* Another file has that build-id too. */
	l.digest++;
	assert_null(unwind_builds_find(&b, &l));
	/* A file without a build-id is no copy of another one. */
	l = (struct unwind_layout){ 0 };
	assert_null(unwind_builds_find(&b, &l));
	unwind_builds_done(&b);
}

static void test_write(void **state)
{
	struct unwind_file file;
	struct unwind_build *build;
	struct unwind_builds b;
	uint64_t *pool;
	int fd = own_memory(ELEMENTS * 8, (void **)&pool);

	for (uint32_t i = 0; i < 10; i++)
		rows[i] = (struct unwind_row){ .pc = i * 16, .rule = (uint16_t)i };
	for (uint32_t i = 0; i < 5; i++)
		pages[i] = UNWIND_PAGE(i, 1);
	assert_int_equal(unwind_builds_init(&b, ELEMENTS), 0);
	assert_int_equal(add(&b, 1, &build), 0);
	assert_int_equal(add(&b, 2, &build), 0);
	memset(pool, 0xee, ELEMENTS * 8);
	assert_int_equal(unwind_builds_write(build, &table, fd, &file), 0);
	assert_int_equal(file.place.rows, 13);
	assert_int_equal(file.place.pages, 23);
	assert_memory_equal(pool + 13, rows, sizeof(rows));
	assert_memory_equal(pool + 23, pages, sizeof(pages));
	assert_int_equal(pool[25] >> 32, 0);
	assert_int_equal(pool[12], 0xeeeeeeeeeeeeeeeeULL);
	assert_int_equal(pool[26], 0xeeeeeeeeeeeeeeeeULL);
	munmap(pool, ELEMENTS * 8);
	close(fd);
	assert_int_equal(unwind_builds_write(build, &table, fd, &file), -EBADF);
	unwind_builds_remove(&b, build);
	assert_int_equal(b.pool.used, 13);
	unwind_builds_done(&b);
}

UNIT_TESTS(unwind_builds)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
