/* SPDX-License-Identifier: BSD-2-Clause */
/* x86_flow_test.c: which bytes belong to the function that begins with the first one. */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "shared/elf/x86_flow.h"
#include "shared/tools/macro.h"

static struct x86_flow flow;

#define BYTES(...) { __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static const struct {
	const char *what;
	uint8_t code[32];
	size_t bytes, own;
} functions[] = {
	{ "a return", BYTES(0x90, 0xc3, 0x31, 0xc0, 0xc3), 2 },
	{ "a branch over a return", BYTES(0x74, 1, 0xc3, 0x31, 0xc0, 0xc3, 0xc3), 6 },
	{ "a loop that begins in its middle",
	  BYTES(0xeb, 2, 0xff, 0xc8, 0x85, 0xc0, 0x75, 0xfa, 0xc3, 0xc3), 9 },
	{ "padding before the target of a jump",
	  BYTES(0xeb, 3, 0x90, 0x66, 0x90, 0x85, 0xc0, 0xc3, 0xc3), 8 },
	{ "a jump over another function", BYTES(0xeb, 1, 0xc3, 0x31, 0xc0, 0xc3), 2 },
	{ "a jump backwards, out of it", BYTES(0xeb, 0xf0, 0x31, 0xc0, 0xc3), 2 },
	{ "a call that returns", BYTES(0xe8, 0, 1, 0, 0, 0xc3, 0xc3), 6 },
	{ "a call at the end, before padding", BYTES(0xe8, 0, 1, 0, 0, 0x90, 0x31, 0xc0, 0xc3), 5 },
	{ "a call of the next function", BYTES(0xe8, 0, 0, 0, 0, 0x31, 0xc0, 0xc3), 5 },
	{ "the address of the next function",
	  BYTES(0x48, 0x8d, 0x3d, 1, 0, 0, 0, 0xc3, 0x31, 0xc0, 0xc3), 8 },
	{ "a system call at the end", BYTES(0x0f, 0x05, 0x90, 0x90, 0x31, 0xc0, 0xc3), 2 },
	{ "a system call that returns", BYTES(0x0f, 0x05, 0xc3, 0x31, 0xc0, 0xc3), 3 },
	{ "a trap", BYTES(0x0f, 0x0b, 0x31, 0xc0, 0xc3), 2 },
	{ "a jump to an unknown address", BYTES(0xff, 0xe0, 0x31, 0xc0, 0xc3), 2 },
	{ "no instruction", BYTES(0x06, 0xc3), 0 },
	{ "an unknown instruction later", BYTES(0x31, 0xc0, 0x06, 0xc3), 2 },
	{ "a cut instruction", BYTES(0x31, 0xc0, 0xe8, 0, 0), 2 },
	{ "code up to the end", BYTES(0x31, 0xc0, 0x31, 0xc0), 4 },
};

static void test_functions(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		size_t own = x86_flow_bytes(&flow, functions[i].code, functions[i].bytes);

		if (own != functions[i].own)
			fail_msg("%s: %zu bytes", functions[i].what, own);
	}
	assert_int_equal(x86_flow_bytes(&flow, functions[0].code, 0), 0);
}

/* Any bytes: it stays within them. */
static void test_any_bytes(void **state)
{
	static uint8_t code[X86_FLOW_MAX];
	uint32_t random = 1;

	for (int round = 0; round < 64; round++) {
		for (size_t i = 0; i < sizeof(code); i++) {
			random = random * 1664525 + 1013904223;
			code[i] = (uint8_t)(random >> 24);
		}
		assert_true(x86_flow_bytes(&flow, code, sizeof(code)) <= sizeof(code));
	}
	memset(code, 0x90, sizeof(code));
	assert_int_equal(x86_flow_bytes(&flow, code, sizeof(code)), sizeof(code));
}

UNIT_TESTS(x86_flow)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
