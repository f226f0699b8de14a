/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/shared/elf/elf_testing.h"

static void test_plt(void **state)
{
	static const char *const programs[] = { "plt_lazy", "plt_now", "plt_ibt" };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_symbols *s = elf_testing_read(programs[i]);
		ptrdiff_t printf_at = elf_testing_place_of(s, "printf@plt");
		uint64_t start;

		if (printf_at < 0 || elf_testing_place_of(s, "specimen_resolved@plt") < 0)
			print_error("%s: a stub without its name\n", programs[i]);
		assert_true(printf_at >= 0);
		assert_true(elf_testing_place_of(s, "specimen_resolved@plt") >= 0);
		assert_string_equal(elf_symbols_find(s, s->names.keys[printf_at] + 5, &start),
				    "printf@plt");
		assert_int_equal(s->names.sizes[printf_at], 16);
		elf_testing_has_all(s, programs[i]);
		elf_symbols_free(s);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plt),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
