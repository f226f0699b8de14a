/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_walk_signal_test.c: the kernel side's walk on the host, through signal frames. */
#include "tests/unit/bpf/unwind/unwind_walk_testing.h"

/*
 * Code in this process's memory, where a walk may look at its bytes: the return from a signal's
 * handler, as C libraries have it, in the second page.
 */
static _Alignas(4096) uint8_t text[2 * 4096];

#define SIGRETURN ((uintptr_t)text + 4096 + 64)

static const struct unwind_rule signal_frame = {
	.cfa = UNWIND_CFA_SP_MEMORY,
	.cfa_offset = UNWIND_HALVES(160, 0),
	.fp_offset = 120,
	.saved = UNWIND_SAVED(UNWIND_RA_CONTEXT, UNWIND_FP_SP) | UNWIND_SAVED_EXACT,
};

static void add_sigreturn(void)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	const struct text_row library[] = { { 0, signal_frame } };
	uint32_t number = ranges.count;

	memcpy((void *)SIGRETURN, code, sizeof(code));
	add_mapping(UNWIND_KIND_ROWS, library, 1);
	ranges.ranges[number] = UNWIND_RANGE(SIGRETURN / 4096, 1);
	process.mappings[number].base = SIGRETURN / 4096 * 4096;
}

static const struct unwind_rule saves = {
	.cfa = UNWIND_CFA_SP,
	.cfa_offset = 32,
	.fp_offset = -16,
	.saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA),
};

/* A handler's frame, its one return address and behind it the words that the kernel has saved. */
static void put_signal(uint64_t *handler, const uint64_t *interrupted)
{
	handler[0] = SIGRETURN;
	handler[16] = (uintptr_t)&interrupted[40];
	handler[21] = (uintptr_t)interrupted;
	handler[22] = at(0, 0x100);
}

/* What was interrupted is looked up where it was, not before; a handler's own stack lies anywhere.
 */
static void test_signal(void **state)
{
	const struct text_row program[] = { { 0, next }, { 0x100, saves }, { 0x200, outermost } };
	uint64_t stacks[128];
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, program, 3);
	add_sigreturn();
	for (int way = 0; way < 3; way++) {
		uint64_t *other = &stacks[way == 1 ? 64 : 0], *s = &stacks[way == 1 ? 0 : 64];

		memset(stacks, 0, sizeof(stacks));
		bounds = (struct unwind_bounds){ .main = (uintptr_t)&stacks[128] };
		if (way > 0) {
			bounds.alternate = (uintptr_t)other;
			bounds.alternate_bytes = 64 * sizeof(*other);
		}
		put_signal(other, s);
		s[0] = 0xbad;
		s[3] = at(0, 0x208);
		assert_int_equal(take(at(0, 8), other, NULL, &t), UNWIND_END_COMPLETE);
		CHECK_FRAMES(&t, at(0, 8), SIGRETURN, at(0, 0x100), at(0, 0x208));
		/* The same from within: at the call, and from the kernel. */
		for (size_t in = 0; in <= 9; in++)
			assert_int_equal(take(SIGRETURN + in, other + 1, NULL, &t),
					 in == 0 || in == 7 || in == 9 ? UNWIND_END_COMPLETE
								       : UNWIND_END_BAD_RULE);
		/* The interrupted stack is below, and the handler's is not known. */
		bounds.alternate_bytes = 0;
		assert_int_equal(take(at(0, 8), other, NULL, &t),
				 way == 1 ? UNWIND_END_NO_CALLER : UNWIND_END_COMPLETE);
		/* A stack that the kernel does not know of. */
		bounds.alternate_bytes = 64 * sizeof(*other);
		other[21] = 0x1230;
		assert_int_equal(take(at(0, 8), other, NULL, &t), UNWIND_END_NO_CALLER);
	}
	bounds = (struct unwind_bounds){ 0 };
}

/* Such a rule makes no signal's frame of other code; nor is there one after another. */
static void test_no_signal(void **state)
{
	const struct text_row program[] = { { 0, next }, { 0x100, signal_frame } };
	uint64_t s[256] = { 0 };
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, program, 2);
	add_sigreturn();
	s[0] = at(0, 0x108);
	s[21] = (uintptr_t)&s[40];
	s[22] = at(0, 8);
	assert_int_equal(take(at(0, 8), s, NULL, &t), UNWIND_END_BAD_RULE);
	CHECK_FRAMES(&t, at(0, 8), at(0, 0x108));
	for (size_t i = 0; i < 3; i++) {
		put_signal(&s[40 * i], &s[40 * i + 40]);
		s[40 * i + 22] = at(0, 8);
	}
	assert_int_equal(take(at(0, 8), s, NULL, &t), UNWIND_END_BAD_RULE);
	CHECK_FRAMES(&t, at(0, 8), SIGRETURN, at(0, 8), SIGRETURN, at(0, 8), SIGRETURN);
}

UNIT_TESTS(unwind_walk_signal)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_signal, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
