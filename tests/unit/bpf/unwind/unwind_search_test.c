/* SPDX-License-Identifier: BSD-2-Clause */
/* The search for the instructions that begin a function. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "tests/unit/consumer/unwind/testing/unwind_memory_testing.h"

#define UNWIND_HOST
#include "bpf/unwind/unwind_code.h"

#define SEARCHED (UNWIND_CODE_BACK + UNWIND_CODE_CUT)

/* Returns how many bytes of the code end behind the last place where a pattern does. */
static uint32_t last_of(const uint8_t *code, const uint8_t patterns[][4], size_t count,
			size_t bytes)
{
	for (uint32_t end = SEARCHED; end >= bytes; end--)
		for (size_t i = 0; i < count; i++)
			if (memcmp(code + end - bytes, patterns[i], bytes) == 0)
				return end;
	return 0;
}

/* The search by eight bytes at once finds the same as one by single bytes. */
static void test_search(void **state)
{
	static const uint8_t sets[][4] = { { 0x55, 0x48, 0x8b, 0xec }, { 0x55, 0x48, 0x89, 0xe5 } };
	static const uint8_t rooms[][4] = { { 0x55, 0x48, 0x83, 0xec },
					    { 0x55, 0x48, 0x81, 0xec } };
	static const uint8_t ends[][4] = { { 0x5d, 0xc3 }, { 0xc9, 0xc3 } };
	static const uint8_t parts[] = { 0x55, 0x48, 0x8b, 0xec, 0x89, 0xe5,
					 0x81, 0x83, 0x5d, 0xc9, 0xc3 };
	uint32_t found = 0;

	srandom(7);
	for (int n = 0; n < 20000; n++) {
		struct unwind_code code = { .now.at = 1000 };
		uint32_t set, room, left, last;

		for (size_t i = 0; i < sizeof(code.insn.code); i++)
			code.insn.code[i] = random() % 8 ? parts[(size_t)random() % sizeof(parts)]
							 : (uint8_t)random();
		if (n % 2)
			memcpy(code.insn.code + random() % 60,
			       random() % 2 ? sets[random() % 2] : rooms[random() % 2], 4);
		set = last_of(code.insn.code, sets, 2, 4);
		room = last_of(code.insn.code, rooms, 2, 4);
		left = last_of(code.insn.code, ends, 2, 2);
		last = set > room ? set : room;
		assert_int_equal(unwind_code_search(&code), last > 0);
		assert_int_equal(code.ends, left > last);
		if (!last)
			continue;
		found++;
		assert_int_equal(code.sets, set > room);
		assert_int_equal(code.now.at, 1000 + last - 4);
	}
	assert_in_range(found, 5000, 19999);
}

UNIT_TESTS(unwind_search)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_search) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
