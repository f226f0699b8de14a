/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "consumer/facts/facts_devices.h"

static const char partitions[] = "major minor  #blocks  name\n\n   7        0      98304 loop0\n"
				 " 254        0  268435456 vda\n 254        1  268434432 vda1\n";

static void test_names(void **state)
{
	struct facts_devices d = {};
	char name[FACTS_DEVICES_BYTES];

	assert_int_equal(facts_devices_parse(&d, partitions, strlen(partitions)), 0);
	assert_int_equal(d.count, 3);
	facts_devices_name(&d, 254, 1, name);
	assert_string_equal(name, "vda1");
	facts_devices_name(&d, 7, 0, name);
	assert_string_equal(name, "loop0");
	facts_devices_name(&d, 8, 16, name);
	assert_string_equal(name, "8:16");
	facts_devices_done(&d);
	facts_devices_name(&d, 4294967295, 4294967295, name);
	assert_string_equal(name, "4294967295:4294967295");
}

/* A name that is too long, and more rows than there is room for. */
static void test_bounds(void **state)
{
	static char text[FACTS_DEVICES_MAX * 24 + 100];
	struct facts_devices d = {};
	char name[FACTS_DEVICES_BYTES];
	size_t n;

	n = (size_t)snprintf(text, sizeof(text), "1 2 3 %s\n", "a123456789b123456789c123456789d1");
	for (int i = 0; i < FACTS_DEVICES_MAX + 5; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "9 %d 1 sd%d\n", i, i);
	assert_int_equal(facts_devices_parse(&d, text, n), 0);
	assert_int_equal(d.count, FACTS_DEVICES_MAX);
	facts_devices_name(&d, 1, 2, name);
	assert_string_equal(name, "1:2");
	facts_devices_done(&d);
}

UNIT_TESTS(facts_devices)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
