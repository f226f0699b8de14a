/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>
#include <unistd.h>

#include "consumer/naming/frame_json.h"
#include "tests/unit/consumer/symbols/records_testing.h"

#define KERNEL_BASE 0xffffffff81000000ULL

static char path[] = "/tmp/trocar-rendering-XXXXXX";
static struct symbols *symbols;

/* Names of 400 bytes: a few thousand of their texts are more than RENDERING_TEXT_BYTES. */
static int setup(void **state)
{
	FILE *f;
	int fd = mkstemp(path);

	if (fd < 0)
		return -1;
	f = fdopen(fd, "w");
	if (!f)
		return -1;
	for (unsigned int i = 0; i < 8192; i++) {
		char name[512];

		snprintf(name, sizeof(name), "fn_%05u_%0400d", i, 0);
		records_file_ksym(f, KERNEL_BASE + i * 0x100ULL, name, "");
	}
	fclose(f);
	return symbols_new(16u << 20, path, &symbols);
}

static int teardown(void **state)
{
	symbols_free(symbols);
	return unlink(path);
}

static struct stack *new_stack(uint16_t kernel, uint16_t user)
{
	struct stack *s = calloc(1, sizeof(*s) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame));

	assert_non_null(s);
	s->kernel_frames = kernel;
	s->user_frames = user;
	for (uint16_t i = 0; i < kernel; i++)
		s->frames[i].offset = KERNEL_BASE + i * 0x100ULL;
	for (uint16_t i = 0; i < user; i++)
		s->frames[kernel + i] = (struct frame){ &stack_sample_unknown, 0x1000u + i };
	return s;
}

/* The same by one that has rendered nothing before. */
static void check(struct frame_json *r, const struct stack *s)
{
	struct frame_json fresh;
	size_t n = frame_json_stack(r, s);

	assert_int_equal(frame_json_init(&fresh, symbols), 0);
	assert_int_equal(frame_json_stack(&fresh, s), n);
	assert_int_equal(r->frames.bytes, fresh.frames.bytes);
	assert_memory_equal(r->frames.data, fresh.frames.data, fresh.frames.bytes);
	assert_memory_equal(r->ends, fresh.ends, n * sizeof(*fresh.ends));
	for (size_t i = 0; i < n; i++) {
		assert_ptr_equal(r->named[i].fn, fresh.named[i].fn);
		assert_ptr_equal(r->named[i].reason, fresh.named[i].reason);
		assert_int_equal(r->named[i].offset, fresh.named[i].offset);
	}
	frame_json_done(&fresh);
}

static void test_again(void **state)
{
	struct stack *s = new_stack(20, 5);
	struct frame_json r;

	assert_int_equal(frame_json_init(&r, symbols), 0);
	check(&r, s);
	check(&r, s);
	s->user_frames = 0;
	check(&r, s);
	s->kernel_frames = 0;
	assert_int_equal(frame_json_stack(&r, s), 0);
	assert_int_equal(r.frames.bytes, 1);
	frame_json_done(&r);
	free(s);
}

/* A leaf at a function's first byte is in it; a caller there has come from the one before. */
static void test_leaf_and_caller(void **state)
{
	struct stack *s = new_stack(2, 0);
	struct frame_json r;

	assert_int_equal(frame_json_init(&r, symbols), 0);
	s->frames[0].offset = s->frames[1].offset = KERNEL_BASE + 0x300;
	check(&r, s);
	assert_memory_equal(r.named[0].fn, "fn_00003", 8);
	assert_memory_equal(r.named[1].fn, "fn_00002", 8);
	check(&r, s);
	frame_json_done(&r);
	free(s);
}

/* A lookup of a file by its build-id needs all of it, also of mold's 32 bytes. */
static void test_long_build_id(void **state)
{
	struct stack *s = new_stack(0, 1);
	struct module *m;
	struct frame_json r;
	char wanted[2 * SYMBOLS_BUILD_ID_MAX + 32];
	int n = snprintf(wanted, sizeof(wanted), "\"build_id\":\"");

	assert_int_equal(symbols_module(symbols, &(struct file_identity){ .device = 1, .inode = 2 },
					"/nonexistent/x", false, &m),
			 0);
	for (uint8_t i = 0; i < 32; i++) {
		m->build_id[i] = i;
		n += snprintf(wanted + n, sizeof(wanted) - (size_t)n, "%02x", i);
	}
	m->build_id_bytes = 32;
	s->frames[0] = (struct frame){ m, 0x1000 };
	assert_int_equal(frame_json_init(&r, symbols), 0);
	check(&r, s);
	n += snprintf(wanted + n, sizeof(wanted) - (size_t)n, "\",\"offset\":4096");
	assert_non_null(memmem(r.frames.data, r.frames.bytes, wanted, (size_t)n));
	frame_json_done(&r);
	free(s);
}

/* More frames than there are places and more text than there is room: right all the same. */
static void test_forgets(void **state)
{
	struct stack *s = new_stack(STACK_FRAMES, 0);
	uint64_t random = 1;
	struct frame_json r;

	assert_int_equal(frame_json_init(&r, symbols), 0);
	for (unsigned int round = 0; round < 200; round++) {
		for (size_t i = 0; i < STACK_FRAMES; i++)
			s->frames[i].offset = KERNEL_BASE + next_random(&random) % (8192 * 0x100);
		check(&r, s);
		check(&r, s);
		assert_true(r.text_bytes <= RENDERING_TEXT_BYTES);
	}
	frame_json_done(&r);
	free(s);
}

UNIT_TESTS(frame_json)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_leaf_and_caller),
		cmocka_unit_test(test_long_build_id),
		cmocka_unit_test(test_forgets),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
