/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files prove of a stack. */
#include "consumer/naming/frame_proof.h"

#include "shared/tools/macro.h"
#include "tests/unit/consumer/naming/code_testing.h"

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

#define LEAF   (CODE_TESTING_CODE + 0x100) /* offsets of functions, in each file */
#define CALLER (CODE_TESTING_CODE + 0x200)
#define OTHER  (CODE_TESTING_CODE + 0x300)
#define WITHIN 0x40 /* from a function's start to where a stack is in it */

/* What the code of a file is. */
struct shape {
	const char *prologue; /* of the function of the frame below; NULL: none that it knows */
	uint64_t
		callee; /* that the call before the caller's return address calls; 0: by register */
	const char *here; /* the byte before the place in the function below, and that at it */
	bool leaf;	  /* the frame below is the innermost */
	uint64_t place;	  /* in the function below; 0: WITHIN */
	bool other_file;  /* the caller lies in another file */
	bool proved;
};

static const struct shape shapes[] = {
	/* By the instructions of the function. */
	{ .prologue = "\x55\x48\x89\xe5", .leaf = true, .proved = true },
	{ .prologue = "\x55\x48\x89\xe5", .other_file = true, .proved = true },
	{ .prologue = "\x55\x48\x89\xe5", .leaf = true, .place = 1 },
	{ .prologue = "\x55\x48\x89\xe5", .leaf = true, .here = "\x5d\xeb" },
	{ .prologue = "\x55\x48\x89\xfd", .leaf = true },
	/* By the call before the return address: not of a leaf, nor of another function. */
	{ .callee = LEAF, .proved = true },
	{ .callee = OTHER },
	{ .callee = LEAF + 1 },
	{ .callee = LEAF, .leaf = true },
	{ .callee = LEAF, .other_file = true },
	{ .callee = OTHER, .leaf = true },
	{ .callee = 0 },
	/* The call goes elsewhere, by way of a stub: then the first bytes count. */
	{ .prologue = "\x55\x48\x89\xe5", .callee = OTHER, .proved = true },
};

/* Writes the code of a file of that shape and returns the module. */
static struct module *write_shape(struct symbols *s, const char *path, const struct shape *shape)
{
	static uint8_t code[0x400];
	struct code_testing_file file = { .soname = "libc.so.6",
					  .code = code,
					  .bytes = sizeof(code) };
	uint64_t place = shape->place ? shape->place : WITHIN,
		 back = CALLER + WITHIN - CODE_TESTING_CODE;
	int32_t distance = (int32_t)(shape->callee - (CALLER + WITHIN));

	memset(code, 0x90, sizeof(code));
	if (shape->prologue)
		memcpy(code + (LEAF - CODE_TESTING_CODE), shape->prologue, strlen(shape->prologue));
	if (shape->here)
		memcpy(code + (LEAF + place - 1 - CODE_TESTING_CODE), shape->here, 2);
	code[back - 5] = shape->callee ? 0xe8 : 0x90;
	if (shape->callee)
		memcpy(code + back - 4, &distance, sizeof(distance));
	return code_testing_module(s, path, &file);
}

/*
 * A stack of three: helper (if it is no leaf), the frame below, its caller, which is an entry.
 * Returns whether the step between the last two is proved. `mark`: of the caller's frame.
 */
static bool judge(struct code_files *code, struct module *below, struct module *above,
		  const struct shape *shape, uint32_t flags, uint64_t mark)
{
	uint64_t place = LEAF + (shape->place ? shape->place : WITHIN);
	uint16_t first = shape->leaf ? 0 : 1;
	struct frame frames[] = { { .module = below, .offset = OTHER },
				  { .module = below, .offset = place },
				  { .module = above, .offset = (CALLER + WITHIN) | mark } };
	struct named_frame named[] = {
		{ .fn = "helper", .offset = OTHER, .start = OTHER },
		{ .fn = "below", .offset = place, .start = LEAF },
		{ .fn = "start_thread", .offset = CALLER + WITHIN, .start = CALLER }
	};
	struct stack *stack = new_stack(frames + 1 - first, 2 + first, 0);
	bool proved;

	stack->flags = flags;
	stack->stop_reason = UNWIND_END_NO_CALLER;
	frame_proof_judge(code, stack, named + 1 - first, 2u + first);
	assert_true(named[2].entry);
	proved = !named[2].unproved;
	free(stack);
	return proved;
}

static void test_steps(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct symbols *s = fresh(1 << 20);
		struct module *below, *other;
		struct code_files code;
		char path[64], second[64];

		code_files_init(&code, s);
		code_testing_path(path, "shape");
		code_testing_path(second, "other");
		below = write_shape(s, path, &shapes[i]);
		other = write_shape(s, second, &shapes[i]);
		if (judge(&code, below, shapes[i].other_file ? other : below, &shapes[i], 0, 0) !=
		    shapes[i].proved)
			fail_msg("shape %zu by frame pointers", i);
		if (judge(&code, below, shapes[i].other_file ? other : below, &shapes[i],
			  SAMPLE_UNWOUND, SAMPLE_FOLLOWED) != shapes[i].proved)
			fail_msg("shape %zu followed", i);
		/* By rows, and where no return address lies between, it needs nothing else. */
		assert_true(judge(&code, below, below, &shapes[i], SAMPLE_UNWOUND, 0));
		assert_true(judge(&code, below, below, &shapes[i], SAMPLE_UNWOUND,
				  SAMPLE_FOLLOWED | SAMPLE_ADJACENT));
		unlink(path);
		unlink(second);
		code_files_done(&code);
		symbols_free(s);
	}
}

/* Code made at run time, an unknown place and a function without a name prove nothing. */
static void test_no_code(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *libc, *jit;
	struct code_files code;
	char path[64];

	code_files_init(&code, s);
	code_testing_path(path, "nocode");
	libc = write_shape(s, path, &shapes[0]);
	assert_int_equal(symbols_module(s, &(struct file_identity){ 0 }, "[anon]", true, &jit), 0);
	assert_true(judge(&code, libc, libc, &shapes[0], 0, 0));
	assert_false(judge(&code, jit, libc, &shapes[0], 0, 0));
	assert_false(judge(&code, jit, libc, &shapes[0], SAMPLE_UNWOUND, SAMPLE_FOLLOWED));
	assert_true(judge(&code, jit, libc, &shapes[0], SAMPLE_UNWOUND,
			  SAMPLE_FOLLOWED | SAMPLE_ADJACENT));
	assert_false(judge(&code, &stack_sample_unknown, libc, &shapes[0], 0, 0));
	unlink(path);
	code_files_done(&code);
	symbols_free(s);
}

UNIT_TESTS(frame_proof)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
