/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/clock.h"
#include "shared/tools/demangle.h"
#include "shared/tools/macro.h"

static void test_languages(void **state)
{
	static const struct {
		const char *raw, *readable; /* NULL: stays */
	} names[] = {
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back" },
		{ "_Z3foov.part.0", "foo" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_RNvNtCs1234_7mycrateu8gdel_5qa3foo", "mycrate::gödel::foo" },
		{ "_D3std5stdio4File5writeMFAyaZv", "std.stdio.File.write(immutable(char)[])" },
		{ "memcpy@@GLIBC_2.14", "memcpy" },
		{ "memcpy@GLIBC_2.2.5", "memcpy" },
		{ "_ZN3foo3barEv@plt", "foo::bar@plt" },
		{ "_ZNSi3getEv@@GLIBCXX_3.4", "std::istream::get" },
		{ "printf@plt", NULL },
		{ "main", NULL },
		{ "_Z", NULL },
		{ "_start", NULL },
		{ "_R", NULL },
		{ "_DYNAMIC", NULL },
		{ "_D4", NULL },
		{ "@", NULL },
		{ "a@", NULL },
		{ "main.(*T).Do-fm", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char text[DEMANGLE_OUT_BYTES] = "untouched";
		bool changed = demangle(names[i].raw, text);

		if (changed != (names[i].readable != NULL))
			print_error("%s: %s\n", names[i].raw, text);
		assert_int_equal(changed, names[i].readable != NULL);
		assert_string_equal(text, changed ? names[i].readable : "untouched");
	}
}

/* The text of this name doubles with every template: it is cut, and soon. */
static void test_text_without_end(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char raw[DEMANGLE_IN_MAX], text[DEMANGLE_OUT_BYTES];
	uint64_t start = clock_cpu_ns();
	size_t at;

	at = (size_t)snprintf(raw, sizeof(raw), "_Z1fI1A1BIS_S_E");
	for (const char *d = digits + 1; *d; d++)
		at += (size_t)snprintf(raw + at, sizeof(raw) - at, "S0_IS%c_S%c_E", *d, *d);
	snprintf(raw + at, sizeof(raw) - at, "EvT_");
	assert_true(demangle(raw, text));
	assert_int_equal(strlen(text), DEMANGLE_OUT_BYTES - 1);
	assert_int_equal(strncmp(text, "f<A, B<", 7), 0);
	assert_true(clock_cpu_ns() - start < 2000000000ULL);
	/* With a parameter pack it would be searched through without end: it stays. */
	snprintf(raw + at, sizeof(raw) - at, "EvDpSZ_");
	assert_false(demangle(raw, text));
	assert_true(clock_cpu_ns() - start < 2000000000ULL);
}

/* Names that are not ASCII are unpacked on the heap: a way out in between would leak (ASan sees
 * it). */
static void test_text_without_end_and_not_ascii(void **state)
{
	char text[DEMANGLE_OUT_BYTES];

	assert_true(demangle("_RINvC1a1bINtCu1a0B_", text));
	assert_int_equal(strlen(text), DEMANGLE_OUT_BYTES - 1);
	assert_int_equal(strncmp(text, "a::b::<\xc2\x80<a::b<", 15), 0);
}

static void test_walls(void **state)
{
	char raw[2 * DEMANGLE_IN_MAX], text[DEMANGLE_OUT_BYTES] = "untouched";
	size_t at;

	/* too long */
	at = (size_t)snprintf(raw, sizeof(raw), "_Z%u", DEMANGLE_IN_MAX);
	memset(raw + at, 'a', DEMANGLE_IN_MAX);
	strcpy(raw + at + DEMANGLE_IN_MAX, "v");
	assert_false(demangle(raw, text));
	/* fits, but its text does not: cut */
	at = (size_t)snprintf(raw, sizeof(raw), "_Z%u", DEMANGLE_OUT_BYTES + 10);
	memset(raw + at, 'a', DEMANGLE_OUT_BYTES + 10);
	strcpy(raw + at + DEMANGLE_OUT_BYTES + 10, "v@plt");
	assert_true(demangle(raw, text));
	assert_int_equal(strlen(text), DEMANGLE_OUT_BYTES - 1);
	assert_string_equal(text + DEMANGLE_OUT_BYTES - 5, "@plt");
	/* deeper than libiberty goes */
	strcpy(text, "untouched");
	strcpy(raw, "_Z1f");
	for (at = 4; at < DEMANGLE_IN_MAX - 2; at++)
		raw[at] = 'P';
	strcpy(raw + at, "i");
	demangle(raw, text);
	/* D with more references than the wall allows */
	strcpy(raw, "_D1a1bFZv");
	for (unsigned int i = 0; i <= DEMANGLE_D_REFERENCES; i++)
		strcat(raw, "Q");
	strcpy(text, "untouched");
	assert_false(demangle(raw, text));
	assert_string_equal(text, "untouched");
}

UNIT_TESTS(demangle)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_languages),
		cmocka_unit_test(test_text_without_end),
		cmocka_unit_test(test_text_without_end_and_not_ascii),
		cmocka_unit_test(test_walls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
