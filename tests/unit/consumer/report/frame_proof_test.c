/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files prove of a stack. */
#include "consumer/report/frame_proof.h"

#include "shared/tools/macro.h"
#include "tests/unit/consumer/report/code_testing.h"

/* A stack of `count` user frames; free it. */
static struct stack *new_stack(const struct frame *frames, uint16_t count, uint16_t kernel)
{
	struct stack *s = calloc(1, sizeof(*s) + (count + kernel) * sizeof(struct frame));

	assert_non_null(s);
	s->user_frames = count;
	s->kernel_frames = kernel;
	if (count)
		memcpy(s->frames + kernel, frames, count * sizeof(*frames));
	return s;
}

/* The outermost frame of a file may be an entry point; of other memory and of the kernel not. */
static void test_entry(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct code_testing_file file = { .soname = "libc.so.6" };
	struct module *libc, *jit;
	struct code_files code;
	char path[64];

	code_files_init(&code, s);
	code_testing_path(path, "proof");
	libc = code_testing_module(s, path, &file);
	assert_int_equal(symbols_module(s, &(struct file_identity){ 0 }, "[anon]", true, &jit), 0);
	for (size_t i = 0; i < 4; i++) {
		struct module *const of[] = { libc, jit, &stack_sample_unknown, NULL };
		struct frame frames[] = { { .module = libc }, { .module = of[i] } };
		struct named_frame named[] = { { .fn = "leaf" }, { .fn = "start_thread" } };
		struct stack *stack = new_stack(frames, i < 3 ? 2 : 0, i < 3 ? 0 : 2);

		frame_proof_judge(&code, stack, named, 2);
		assert_int_equal(named[1].entry, i == 0);
		assert_false(named[0].entry);
		frame_proof_judge(&code, stack, NULL, 0);
		free(stack);
	}
	unlink(path);
	code_files_done(&code);
	symbols_free(s);
}

UNIT_TESTS(frame_proof)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
