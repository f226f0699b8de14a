/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of a runtime between native ones: each evaluation loop's frame is replaced by its run. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>

#include "consumer/naming/frame_name.h"
#include "consumer/naming/runtime_merge.h"
#include "consumer/runtimes/code_names.h"

/*
 * A stack of so many native frames in unknown code, none of them an evaluation loop, and words. The
 * real loop is tested in tests/e2e/test_runtimes.py.
 */
static struct stack *new_stack(size_t natives, const uint64_t *words, size_t count)
{
	struct stack *s = calloc(1, sizeof(*s) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame));

	assert_non_null(s);
	s->kernel_frames = 1;
	s->user_frames = (uint16_t)(natives + count);
	s->runtime_frames = (uint16_t)count;
	s->flags = SAMPLE_UNWOUND | SAMPLE_RUNTIME;
	s->frames[0].offset = 0xffffffff81000000ULL;
	for (size_t i = 0; i < natives; i++)
		s->frames[1 + i] = (struct frame){ &stack_sample_unknown, 0x1000 + i };
	for (size_t i = 0; i < count; i++)
		s->frames[1 + natives + i] = (struct frame){ &stack_sample_runtime, words[i] };
	return s;
}

/* Frames without a loop of their own follow the native ones, and none is lost. */
static void frames_without_a_loop_follow(void **state)
{
	static const uint64_t words[] = { RUNTIME_WORD(1, 2, 0),
					  RUNTIME_WORD(2, 2, RUNTIME_RUN_ENDS),
					  RUNTIME_WORD(3, 2, RUNTIME_RUN_ENDS) };
	struct stack *s = new_stack(2, words, 3);
	struct symbols *symbols;

	assert_int_equal(symbols_new(1 << 20, NULL, &symbols), 0);
	runtime_merge_stack(symbols, s);
	assert_int_equal(s->runtime_frames, 0);
	assert_int_equal(s->user_frames, 5);
	assert_ptr_equal(s->frames[2].module, &stack_sample_unknown);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(s->frames[3 + i].offset, words[i]);
	/* Merging again changes nothing. */
	runtime_merge_stack(symbols, s);
	assert_int_equal(s->user_frames, 5);
	symbols_free(symbols);
	free(s);
}

/* A frame has the name, file and line that were copied; else the reason. */
static void frames_have_names(void **state)
{
	struct runtime_name r = { .number = 9,
				  .version = 0x030a,
				  .first_line = 3,
				  .name_bytes = 4,
				  .file_bytes = 5,
				  .name = "work",
				  .file = "/a.py" };
	static const uint64_t words[] = { RUNTIME_WORD(9, 0, 0), RUNTIME_WORD(0, 2, 0) };
	struct stack *s = new_stack(1, words, 2);
	struct symbols *symbols;
	struct named_frame f;

	assert_int_equal(symbols_new(1 << 20, NULL, &symbols), 0);
	code_names_add(symbols_code_names(symbols), &r, offsetof(struct runtime_name, table));
	runtime_merge_stack(symbols, s);
	frame_name_frame(symbols, s, 2, &f);
	assert_true(frame_name_is_runtime(&f));
	assert_string_equal(f.fn, "work");
	assert_string_equal(f.module, "/a.py");
	assert_int_equal(f.line, 3);
	assert_false(f.exact);
	frame_name_frame(symbols, s, 3, &f);
	assert_null(f.fn);
	assert_string_equal(f.reason, "not_copied");
	symbols_free(symbols);
	free(s);
}

/* The deepest stacks fit. */
static void the_deepest_stack(void **state)
{
	uint64_t words[RUNTIME_FRAMES_MAX];
	struct symbols *symbols;
	struct stack *s;

	for (size_t i = 0; i < RUNTIME_FRAMES_MAX; i++)
		words[i] = RUNTIME_WORD(i + 1, 2, i & 1);
	s = new_stack(STACK_FRAMES, words, RUNTIME_FRAMES_MAX);
	assert_int_equal(symbols_new(1 << 20, NULL, &symbols), 0);
	runtime_merge_stack(symbols, s);
	assert_int_equal(s->user_frames, STACK_FRAMES + RUNTIME_FRAMES_MAX);
	symbols_free(symbols);
	free(s);
}

UNIT_TESTS(runtime_merge)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_without_a_loop_follow),
		cmocka_unit_test(frames_have_names),
		cmocka_unit_test(the_deepest_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
