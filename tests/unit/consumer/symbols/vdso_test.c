/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#include "consumer/symbols/vdso.h"
#include "shared/elf/elf_symbols.h"

static void test_names(void **state)
{
	struct elf_image image;
	struct elf_symbols *s;
	bool found = false;

	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	assert_int_equal(vdso_image(&image), 0);
	assert_int_equal(image.fd, -1);
	assert_int_equal(elf_symbols_read(&image, NULL, &s), 0);
	for (size_t i = 0; i < s->names.count; i++)
		found = found || strstr(name_table_text(&s->names, i), "clock_gettime");
	assert_true(found);
	elf_symbols_free(s);
}

UNIT_TESTS(vdso)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
