/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "tests/unit/shared/elf/elf_testing.h"

static void test_debugdata(void **state)
{
	struct elf_symbols *s = elf_testing_read("mini");

	elf_testing_has_all(s, "mini.whole");
	elf_symbols_free(s);
	elf_testing_lacks(elf_testing_read("mini_cut"), "specimen_local");
	elf_testing_lacks(elf_testing_read("mini_bomb"), "specimen_local");
}

UNIT_TESTS(elf_debugdata)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debugdata),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
