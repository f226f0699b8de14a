/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_symbols_caller_test.c: which function a return address belongs to. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/shared/elf/elf_testing.h"

static const char *find_caller(const struct elf_symbols *s, uint64_t offset)
{
	uint64_t start;
	const char *name = elf_symbols_find_caller(s, offset, &start);

	return name ? name : "";
}

/* A return address names the call before it; only what ends a signal's handler was not called. */
static void test_find_caller(void **state)
{
	struct elf_symbols *s = elf_testing_read("plt_static");
	ptrdiff_t returns = elf_testing_place_of(s, "__restore_rt"),
		  main_at = elf_testing_place_of(s, "main");
	const uint32_t *keys = s->names.keys, *sizes = s->names.sizes;

	assert_true(returns >= 0 && main_at >= 0);
	assert_string_equal(find_caller(s, keys[returns]), "__restore_rt");
	assert_string_not_equal(find_caller(s, keys[main_at]), "main");
	assert_string_equal(find_caller(s, keys[main_at] + sizes[main_at]), "main");
	assert_string_equal(find_caller(s, 0), "");
	elf_symbols_free(s);
}

UNIT_TESTS(elf_symbols_caller)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find_caller),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
