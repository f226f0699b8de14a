/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/jit/perf_map_files.h"
#include "consumer/naming/frame_name.h"
#include "consumer/unwind/store/unwind_end.h"
#include "consumer/unwind/store/unwind_file.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/symbols/jit_testing.h"
#include "tests/unit/consumer/symbols/records_testing.h"

static struct stack *new_stack(uint16_t kernel, uint16_t user, struct module *module)
{
	struct stack *s = calloc(1, sizeof(*s) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame));

	assert_non_null(s);
	s->kernel_frames = kernel;
	s->user_frames = user;
	for (uint16_t i = 0; i < kernel; i++)
		s->frames[i].offset = 0xffffffff81000100ULL + 0x100u * i;
	for (uint16_t i = 0; i < user; i++)
		s->frames[kernel + i] = (struct frame){ module, 0x1000u * i };
	return s;
}

struct quality_row {
	uint16_t kernel, user;
	uint32_t flags;
	int32_t error;
	bool entry; /* the outermost frame is an entry point */
	enum quality quality;
	enum unwind_end end;
	const char *fn; /* of the outermost frame */
};

static const struct quality_row rows[] = {
	{ 0, 3, 0, 0, true, QUALITY_COMPLETE },
	{ 5, 3, 0, 0, true, QUALITY_COMPLETE, .fn = "__libc_start_main" },
	/* A name proves nothing. */
	{ 0, 3, 0, 0, false, QUALITY_BROKEN, .fn = "_start" },
	{ 0, 3, 0, 0, false, QUALITY_BROKEN, .fn = "clone" },
	{ 0, 3, 0, 0, false, QUALITY_BROKEN },
	{ 9, 0, SAMPLE_KTHREAD, 0, false, QUALITY_COMPLETE },
	{ 9, 0, 0, -EFAULT, false, QUALITY_BROKEN },
	{ 9, 0, 0, 0, false, QUALITY_BROKEN },
	{ 0, STACK_FRAMES, 0, 0, false, QUALITY_TRUNCATED },
	{ STACK_FRAMES, 3, 0, 0, true, QUALITY_TRUNCATED },
	/* Walked by rows: whole by the rule of the outermost frame, or because it is an entry. */
	{ 0, 3, SAMPLE_UNWOUND, 0, false, QUALITY_COMPLETE, UNWIND_END_COMPLETE },
	{ 0, 1, SAMPLE_UNWOUND, 0, true, QUALITY_COMPLETE, UNWIND_END_COMPLETE },
	{ 0, 1, SAMPLE_UNWOUND, 0, false, QUALITY_BROKEN, UNWIND_END_COMPLETE },
	{ 0, 3, SAMPLE_UNWOUND, 0, false, QUALITY_BROKEN, UNWIND_END_NO_CALLER },
	{ 0, 3, SAMPLE_UNWOUND, 0, false, QUALITY_BROKEN, UNWIND_END_NO_POINTERS, .fn = "clone" },
	{ 0, 3, SAMPLE_UNWOUND, 0, true, QUALITY_COMPLETE, UNWIND_END_NO_POINTERS },
	{ 0, 3, SAMPLE_UNWOUND, 0, true, QUALITY_COMPLETE, UNWIND_END_NO_CALLER },
	/* A lone frame is where the thread was, not where it came from. */
	{ 0, 1, SAMPLE_UNWOUND, 0, true, QUALITY_BROKEN, UNWIND_END_NO_CALLER },
	{ 0, 1, 0, 0, true, QUALITY_BROKEN },
	{ 0, 3, SAMPLE_UNWOUND, 0, true, QUALITY_BROKEN, UNWIND_END_NO_ROW },
	/* What was cut is not complete, whatever it ended at. */
	{ 0, 3, STACK_SAMPLE_CUT, 0, true, QUALITY_BROKEN },
};

static void test_quality(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stack *s = new_stack(rows[i].kernel, rows[i].user, NULL);
		struct named_frame frames[] = { { .fn = "main" },
						{ .fn = rows[i].fn, .entry = rows[i].entry } };
		size_t lone = rows[i].kernel + rows[i].user == 1;
		const char *why = "untouched";

		s->flags = rows[i].flags;
		s->stop_reason = rows[i].end;
		s->user_error = rows[i].error;
		if (frame_name_quality(s, frames + lone, 2 - lone, &why) != rows[i].quality)
			fail_msg("row %zu", i);
		if (rows[i].quality == QUALITY_COMPLETE)
			assert_null(why);
		else
			assert_true(why && why[0] && strcmp(why, "untouched"));
		free(s);
	}
	assert_string_equal(frame_name_of_quality(QUALITY_COMPLETE), "complete");
	assert_string_equal(frame_name_of_quality(QUALITY_TRUNCATED), "truncated");
	assert_string_equal(frame_name_of_quality(QUALITY_BROKEN), "broken");
}

/* A stack that came to its outermost frame is whole only if each step on the way is proved. */
static void test_quality_unproved(void **state)
{
	static const struct {
		uint32_t flags;
		enum unwind_end end;
	} walks[] = {
		{ 0, UNWIND_END_NONE },
		{ SAMPLE_UNWOUND, UNWIND_END_COMPLETE },
		{ SAMPLE_UNWOUND, UNWIND_END_NO_CALLER },
		{ SAMPLE_UNWOUND, UNWIND_END_NO_POINTERS },
	};
	struct stack *s = new_stack(0, 3, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(walks); i++)
		for (size_t gap = 0; gap < 3; gap++) {
			struct named_frame frames[] = { { .fn = "leaf" },
							{ .fn = "caller" },
							{ .fn = "_start", .entry = true } };
			const char *why;

			s->flags = walks[i].flags;
			s->stop_reason = walks[i].end;
			frames[gap].unproved = gap > 0;
			assert_int_equal(frame_name_quality(s, frames, 3, &why),
					 gap ? QUALITY_BROKEN : QUALITY_COMPLETE);
			assert_int_equal(frame_name_gap(s, frames, 3), gap);
			if (gap)
				assert_string_equal(why, unwind_end_help(UNWIND_END_UNPROVED));
		}
	free(s);
}

/* The reason is why there are no rows where the stack ends, not that it ended. */
static void test_quality_reasons(void **state)
{
	static const struct {
		uint32_t flags;
		enum unwind_end end;
		const char *rowless;
		const char *word; /* NULL: the reason is how the walk ended */
	} ends[] = {
		{ SAMPLE_UNWOUND, UNWIND_END_NO_POINTERS, "too_large", "too_large" },
		{ SAMPLE_UNWOUND, UNWIND_END_NO_POINTERS, "memory_file", "memory_file" },
		{ SAMPLE_UNWOUND, UNWIND_END_NO_POINTERS, "", NULL },
		{ SAMPLE_UNWOUND, UNWIND_END_NO_POINTERS, NULL, NULL },
		{ SAMPLE_UNWOUND, UNWIND_END_NO_CALLER, "too_large", NULL },
		{ 0, UNWIND_END_NONE, "other_machine", "other_machine" },
		{ STACK_SAMPLE_CUT, UNWIND_END_NONE, "other_machine", "other_machine" },
		{ 0, UNWIND_END_NONE, "", "no_table" },
		{ STACK_SAMPLE_CUT, UNWIND_END_NONE, "", "no_table" },
		{ 0, UNWIND_END_NONE, NULL, NULL },
	};
	struct stack *s = new_stack(0, 2, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct named_frame frames[] = { { .fn = "leaf" },
						{ .fn = "caller", .rowless = ends[i].rowless } };
		const char *help, *why;

		s->flags = ends[i].flags;
		s->stop_reason = ends[i].end;
		help = ends[i].word  ? unwind_file_help(ends[i].word)
		       : ends[i].end ? unwind_end_help(ends[i].end)
				     : "frame pointers";
		assert_int_equal(frame_name_quality(s, frames, 2, &why), QUALITY_BROKEN);
		assert_non_null(help);
		assert_non_null(strstr(why, help));
	}
	free(s);
}

/* Without memory for the frames there is no root, though the sample had frames. */
static void test_quality_no_root(void **state)
{
	struct stack *s = new_stack(0, 3, NULL);
	const char *why;

	assert_int_equal(frame_name_quality(s, NULL, 0, &why), QUALITY_BROKEN);
	assert_non_null(why);
	free(s);
}

/* Kernel names come from the iterator's records; the caller's frame is named by its call. */
static void test_kernel(void **state)
{
	char path[] = "/tmp/trocar-ksyms-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct stack *s = new_stack(3, 0, NULL);
	struct symbols *symbols;
	struct named_frame named;

	assert_non_null(f);
	records_file_ksym(f, 0xffffffff81000000ULL, "low", "");
	records_file_ksym(f, 0xffffffff81000100ULL, "leaf", "");
	records_file_ksym(f, 0xffffffff81000180ULL, "caller", "ext4");
	records_file_ksym(f, 0xffffffff81000300ULL, "behind", "");
	fclose(f);
	assert_int_equal(symbols_new(1 << 20, path, &symbols), 0);
	frame_name_frame(symbols, s, 0, &named);
	assert_string_equal(named.fn, "leaf");
	assert_string_equal(named.kind, "kernel");
	assert_string_equal(named.module, "kernel");
	assert_true(named.has_offset);
	assert_int_equal(named.offset, 0);
	frame_name_frame(symbols, s, 1, &named);
	assert_string_equal(named.fn, "caller");
	assert_string_equal(named.module, "ext4");
	assert_int_equal(named.offset, 0x80);
	/* A return address at the very start of a function belongs to the one before it. */
	frame_name_frame(symbols, s, 2, &named);
	assert_string_equal(named.fn, "caller");
	assert_int_equal(named.offset, 0x180);
	symbols_free(symbols);
	unlink(path);
	free(s);
}

static void test_user(void **state)
{
	struct module *jit, *file;
	struct symbols *symbols;
	struct named_frame named;
	struct stack *s;

	assert_int_equal(symbols_new(1 << 20, NULL, &symbols), 0);
	assert_int_equal(symbols_module(symbols, &(struct file_identity){ .device = 0, .inode = 7 },
					"[anon]", true, &jit),
			 0);
	assert_int_equal(symbols_module(symbols, &(struct file_identity){ .device = 1, .inode = 2 },
					"/nonexistent/x", false, &file),
			 0);
	s = new_stack(0, 3, file);
	s->frames[1].module = &stack_sample_unknown;
	s->frames[2].module = jit;
	frame_name_frame(symbols, s, 0, &named);
	assert_null(named.fn);
	assert_true(named.reason && named.reason[0]);
	assert_string_equal(named.module, "/nonexistent/x");
	assert_string_equal(named.kind, "user");
	frame_name_frame(symbols, s, 1, &named);
	assert_null(named.fn);
	assert_null(named.module);
	assert_false(named.has_offset);
	assert_string_equal(named.reason, "no_mapping");
	frame_name_frame(symbols, s, 2, &named);
	assert_null(named.fn);
	assert_non_null(named.reason);
	assert_string_equal(named.kind, "jit");
	/* Without the iterator a kernel frame is an address with a reason. */
	s->kernel_frames = 1;
	frame_name_frame(symbols, s, 0, &named);
	assert_null(named.fn);
	assert_true(named.reason && named.reason[0]);
	assert_false(named.has_offset);
	free(s);
	symbols_free(symbols);
}

/*
 * A signal's handler did not call the interrupted function, nor was it called by the code that it
 * returns to. In executable memory that is named by addresses, both are looked up where they are.
 */
static void test_interrupted(void **state)
{
	static const bool callers[] = { false, true, false, false, true };
	static const char *const names[] = { "handler", "helper", "returns", "victim", "main" };
	struct process_key self = jit_testing_self();
	struct symbols *symbols;
	struct named_frame named;
	struct module *jit;
	struct stack *s;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", self.tgid);
	jit_testing_write(path, "1000 10 handler\n2000 10 helper\n2ff0 10 before\n3000 10 returns\n"
				"3ff0 10 before\n4000 10 victim\n5000 10 main\n");
	assert_int_equal(symbols_new(1 << 20, NULL, &symbols), 0);
	assert_int_equal(
		symbols_module(symbols, &(struct file_identity){ 0 }, "[anon]", true, &jit), 0);
	s = new_stack(0, 5, jit);
	s->tgid = self.tgid;
	s->start_ns = self.start_ns;
	s->frames[0].offset = 0x1000;
	s->frames[1].offset = 0x2010;
	s->frames[2].offset = 0x3000;
	s->frames[3].offset = 0x4000 | SAMPLE_INTERRUPTED;
	s->frames[4].offset = 0x5010;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(frame_name_is_caller(s, i), callers[i]);
		frame_name_frame(symbols, s, i, &named);
		assert_string_equal(named.fn, names[i]);
		assert_int_equal(named.exact, i > 0 && !callers[i]);
		assert_int_equal(named.offset, s->frames[i].offset & ~SAMPLE_INTERRUPTED);
	}
	symbols_free(symbols);
	unlink(path);
	free(s);
}

/* An address outside of all mappings that were read, of a process that has compiled code. */
static void test_unknown(void **state)
{
	struct process_key self = jit_testing_self();
	struct symbols *symbols;
	struct named_frame named;
	struct stack *s;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", self.tgid);
	jit_testing_write(path, "1000 10 compiled\n");
	assert_int_equal(symbols_new(1 << 20, NULL, &symbols), 0);
	s = new_stack(0, 3, &stack_sample_unknown);
	s->tgid = self.tgid;
	s->start_ns = self.start_ns;
	frame_name_frame(symbols, s, 1, &named);
	assert_null(named.fn);
	assert_string_equal(named.reason, "no_mapping");
	perf_map_files_meet(symbols_perf_map_files(symbols), &self);
	s->frames[1].offset = 0x1010; /* behind the call */
	frame_name_frame(symbols, s, 1, &named);
	assert_non_null(named.fn);
	assert_string_equal(named.fn, "compiled");
	assert_string_equal(named.kind, "jit");
	assert_string_equal(named.module, "[anon]");
	assert_true(named.has_offset && named.offset == 0x1010);
	frame_name_frame(symbols, s, 2, &named);
	assert_null(named.fn);
	assert_null(named.module);
	assert_string_equal(named.reason, "no_mapping");
	symbols_free(symbols);
	unlink(path);
	free(s);
}

UNIT_TESTS(frame_name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quality),		cmocka_unit_test(test_quality_unproved),
		cmocka_unit_test(test_quality_reasons), cmocka_unit_test(test_quality_no_root),
		cmocka_unit_test(test_kernel),		cmocka_unit_test(test_user),
		cmocka_unit_test(test_unknown),		cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
