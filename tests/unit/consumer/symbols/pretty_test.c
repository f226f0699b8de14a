/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "consumer/symbols/pretty.h"

static void test_once(void **state)
{
	static const char mangled[] = "_ZN3foo3barEv", plain[] = "main", underscored[] = "_start";
	struct pretty *p = NULL;
	const char *name;
	size_t bytes;

	assert_int_equal(pretty_bytes(p), 0);
	assert_ptr_equal(pretty_name(&p, plain), plain);
	assert_null(p);
	assert_ptr_equal(pretty_name(&p, underscored), underscored);
	name = pretty_name(&p, mangled);
	assert_string_equal(name, "foo::bar");
	bytes = pretty_bytes(p);
	assert_true(bytes > strlen(name));
	assert_ptr_equal(pretty_name(&p, mangled), name);
	assert_ptr_equal(pretty_name(&p, underscored), underscored);
	assert_int_equal(pretty_bytes(p), bytes);
	pretty_free(p);
	pretty_free(NULL);
}

UNIT_TESTS(pretty)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
