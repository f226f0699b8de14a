/* SPDX-License-Identifier: BSD-2-Clause */
/* Which functions keep a frame pointer, and where in them, by their instructions. */
#include "consumer/naming/frame_pointer.h"

#include "shared/tools/macro.h"
#include "tests/unit/consumer/naming/code_testing.h"

#define NOPS "\x90\x90\x90\x90\x90\x90\x90\x90"

static const struct {
	const char *code;
	size_t bytes;
	uint64_t at; /* where the program is in it */
	bool calls;  /* that is behind a call */
	bool set;
	bool narrow, arm64;
} rows[] = {
#define CODE(text) text, sizeof(text) - 1
	{ CODE("\x55\x48\x89\xe5" NOPS), 4, false, true },
	{ CODE("\x55\x48\x89\xe5" NOPS), 8, false, true },
	{ CODE("\x55\x48\x8b\xec" NOPS), 8, false, true },
	{ CODE("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5" NOPS), 12, false, true },
	{ CODE("\x55\x31\xc0\x48\x89\xe5" NOPS), 8, true, true },
	/* Not yet: before the push, between, and in the middle of an instruction. */
	{ CODE("\x55\x48\x89\xe5" NOPS), 0, false, false },
	{ CODE("\x55\x48\x89\xe5" NOPS), 1, false, false },
	{ CODE("\x55\x48\x89\xe5" NOPS), 2, false, false },
	/* Not that of a frame: nothing is saved, or something lies above it. */
	{ CODE("\x48\x89\xe5" NOPS), 8, false, false },
	{ CODE("\x55\x48\x89\xfd" NOPS), 8, false, false },
	{ CODE("\x53\x55\x48\x89\xe5" NOPS), 10, true, false },
	{ CODE(NOPS), 4, false, false },
	/* No more: pop %rbp, add $1,%rax; leave. Of a caller it counts that it was set. */
	{ CODE("\x55\x48\x89\xe5\x90\x5d\x48\x83\xc0\x01\xc3" NOPS), 5, false, true },
	{ CODE("\x55\x48\x89\xe5\x90\x5d\x48\x83\xc0\x01\xc3" NOPS), 6, false, false },
	{ CODE("\x55\x48\x89\xe5\x90\x5d\x48\x83\xc0\x01\xc3" NOPS), 10, false, false },
	{ CODE("\x55\x48\x89\xe5\x90\xc9\xc3" NOPS), 6, false, false },
	{ CODE("\x55\x48\x89\xe5\x90\xc9\xc3" NOPS), 6, true, true },
	/* A byte that is part of another instruction: mov $0xc95d,%eax. */
	{ CODE("\x55\x48\x89\xe5\xb8\x5d\xc9\x00\x00" NOPS), 10, false, true },
	/* Behind a return only a branch leads: jne +2, leave, ret. */
	{ CODE("\x55\x48\x89\xe5\x75\x02\xc9\xc3" NOPS), 8, false, true },
	{ CODE("\x55\x48\x89\xe5\x90\x90\xc9\xc3" NOPS), 8, false, false },
	/* Go to 1.20: sub $24,%rsp; mov %rbp,16(%rsp); lea 16(%rsp),%rbp; with its test before. */
	{ CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10" NOPS), 16, false, true },
	{ CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10" NOPS), 9, false, false },
	{ CODE("\x49\x3b\x66\x10\x76\x40\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24"
	       "\x10" NOPS),
	  24, true, true },
	/* The same with an offset that is not that of a frame. */
	{ CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x08\x48\x8d\x6c\x24\x08" NOPS), 16, true, false },
	/* Of 32 bits. */
	{ CODE("\x55\x89\xe5" NOPS), 8, false, true, .narrow = true },
	{ CODE("\x55\x89\xe5\x90\x5d" NOPS), 8, false, false, .narrow = true },
	{ CODE("\x55\x89\xe5\x90\x5d" NOPS), 8, true, true, .narrow = true },
	{ CODE(NOPS), 8, true, false, .narrow = true },
	/* arm64: stp x29, x30, [sp, #-16]!; mov x29, sp; ldp x29, x30, [sp], #16. */
	{ CODE("\xfd\x7b\xbf\xa9\xfd\x03\x00\x91" NOPS), 8, false, true, .arm64 = true },
	{ CODE("\xfd\x7b\xbf\xa9\xfd\x03\x00\x91" NOPS), 4, false, false, .arm64 = true },
	{ CODE("\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\xfd\x7b\xc1\xa8" NOPS), 12, false, false,
	  .arm64 = true },
	{ CODE(NOPS), 8, true, false, .arm64 = true },
};

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct code_file f = {
			.image = { .fd = -1,
				   .memory = (const uint8_t *)rows[i].code,
				   .bytes = rows[i].bytes },
			.wide = !rows[i].narrow,
			.arm64 = rows[i].arm64,
		};

		if (frame_pointer_is_set(&f, 0, rows[i].at, rows[i].calls) != rows[i].set)
			fail_msg("row %zu", i);
	}
}

/* Places outside of the file, before the function, and further than is read. */
static void test_bounds(void **state)
{
	static uint8_t code[2 * FRAME_POINTER_BYTES];
	struct code_file f = { .image = { .fd = -1, .memory = code, .bytes = sizeof(code) },
			       .wide = true };

	memset(code, 0x90, sizeof(code));
	memcpy(code, "\x55\x48\x89\xe5", 4);
	assert_true(frame_pointer_is_set(&f, 0, 4000, false));
	assert_false(frame_pointer_is_set(&f, 0, FRAME_POINTER_BYTES, false));
	assert_true(frame_pointer_is_set(&f, 0, FRAME_POINTER_BYTES, true));
	assert_false(frame_pointer_is_set(&f, 8, 4, true));
	assert_false(frame_pointer_is_set(&f, sizeof(code), sizeof(code) + 8, false));
	assert_false(frame_pointer_is_set(&f, UINT64_MAX - 2, UINT64_MAX, true));
	f.image.bytes = 6;
	assert_true(frame_pointer_is_set(&f, 0, 6, false));
	assert_false(frame_pointer_is_set(&f, 0, 7, false));
}

UNIT_TESTS(frame_pointer)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
