/* SPDX-License-Identifier: BSD-2-Clause */
/* Records and mappings that are given: their results and the requests. */
#include "tests/unit/consumer/testing/sample_testing.h"

#include "consumer/sampling/sample_decode.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static char path[] = "/lib";
static struct module app, library, late;
static struct mapping items[2], more[3];
static struct process process;
static struct mappings fresh;
static struct walk_table table;
static struct sample_context context;
static struct sample_asks asks;
static union {
	struct stack_sample s;
	uint8_t room[sizeof(struct stack_sample) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame)];
} out;

static int setup(void **state)
{
	struct symbols *symbols;

	app = (struct module){ .identity.inode = 7, .path = path, .build_id_known = true };
	library = (struct module){ .identity.inode = 8, .path = path, .build_id_known = true };
	late = (struct module){ .identity.inode = 9, .path = path };
	items[0] = (struct mapping){ 0x10000, 0x20000, 0x1000, &app, 1 };
	items[1] = (struct mapping){ 0x40000, 0x50000, 0x1000, &library, 1 };
	memcpy(more, items, sizeof(items));
	more[2] = (struct mapping){ 0x90000, 0xa0000, 0, &late, 1 };
	process = (struct process){ .maps = { .items = items, .count = 2, .read_ns = 1 } };
	fresh = (struct mappings){ .items = more, .count = 3, .read_ns = UINT64_MAX };
	table = (struct walk_table){ .maps = process.maps, .rows = true };
	assert_int_equal(symbols_new(1 << 20, NULL, &symbols), 0);
	context = (struct sample_context){
		.symbols = symbols,
		.process = &process,
		.maps = &process.maps,
	};
	/* What is left of the last sample must not show. */
	memset(&out, 0xa5, sizeof(out));
	return 0;
}

static int teardown(void **state)
{
	symbols_free(context.symbols);
	return 0;
}

/* A record with the addresses 0x10010, 0x40020, `third` and 0x10030 behind a kernel frame. */
static struct sample *raw(uint32_t flags, uint64_t third)
{
	struct sample *s;
	size_t bytes;

	s = fake_sample(1, 4, flags, &bytes);
	fake_user_words(s)[0] = 0x10010;
	fake_user_words(s)[1] = 0x40020;
	fake_user_words(s)[2] = third;
	fake_user_words(s)[3] = 0x10030;
	return s;
}

static void test_known(void **state)
{
	_cleanup_free_ struct sample *s = raw(0, 0x40030);

	sample_decode(&context, s, &out.s, &asks);
	assert_false(asks.mappings || asks.build_ids);
	assert_int_equal(out.s.user_frames, 4);
	assert_null(out.s.frames[0].module);
	assert_ptr_equal(out.s.frames[1].module, &app);
	assert_int_equal(out.s.frames[1].offset, 0x1010);
	assert_ptr_equal(out.s.frames[3].module, &library);
	assert_false(out.s.flags & STACK_SAMPLE_CUT);
	assert_string_equal(out.s.comm, "node");
	app.build_id_known = false;
	sample_decode(&context, s, &out.s, &asks);
	assert_true(asks.build_ids);
}

/* An address in no mapping: asked for while it may have come since, then the chain ends there. */
static void test_missing(void **state)
{
	_cleanup_free_ struct sample *s = raw(0, 0x90000);

	sample_decode(&context, s, &out.s, &asks);
	assert_true(asks.mappings);
	sample_decode_missing(&context, &fresh, s, &out.s, &asks);
	assert_int_equal(out.s.user_frames, 4);
	assert_ptr_equal(out.s.frames[3].module, &late);
	assert_ptr_equal(out.s.frames[4].module, &app);
	assert_true(asks.build_ids);
	sample_decode(&context, s, &out.s, &asks);
	assert_true(asks.mappings);
	sample_decode_missing(&context, NULL, s, &out.s, &asks);
	assert_int_equal(out.s.user_frames, 2);
	assert_true(out.s.flags & STACK_SAMPLE_CUT);
	/* Read since then: it is no address of code. */
	process.maps.read_ns = s->time_ns + 1;
	sample_decode(&context, s, &out.s, &asks);
	assert_false(asks.mappings);
	assert_int_equal(out.s.user_frames, 2);
	/* Nor is it asked for in mappings of an image of before. */
	process.maps.read_ns = 1;
	context.maps = &process.before;
	process.before = process.maps;
	sample_decode(&context, s, &out.s, &asks);
	assert_false(asks.mappings);
	assert_int_equal(out.s.user_frames, 2);
}

/* What was found stays as it was found, whatever lies there by then. */
static void test_found_stays(void **state)
{
	_cleanup_free_ struct sample *s = raw(0, 0x90000);

	sample_decode(&context, s, &out.s, &asks);
	more[0].module = &late;
	sample_decode_missing(&context, &fresh, s, &out.s, &asks);
	assert_ptr_equal(out.s.frames[1].module, &app);
	assert_int_equal(out.s.user_frames, 4);
}

/* A walked stack lies in its table's mappings; only the leaf may lie elsewhere. */
static void test_walked(void **state)
{
	_cleanup_free_ struct sample *s = raw(SAMPLE_UNWOUND, 0x90000);

	s->stop_reason = UNWIND_END_COMPLETE;
	context.table = &table;
	context.maps = &process.before;
	sample_decode(&context, s, &out.s, &asks);
	assert_true(asks.mappings);
	sample_decode_missing(&context, &fresh, s, &out.s, &asks);
	assert_int_equal(out.s.user_frames, 2);
	assert_int_equal(out.s.stop_reason, UNWIND_END_COMPLETE);
	fake_user_words(s)[0] = 0x90000;
	sample_decode(&context, s, &out.s, &asks);
	sample_decode_missing(&context, &fresh, s, &out.s, &asks);
	assert_ptr_equal(out.s.frames[1].module, &late);
	/* By a table that is no longer known: nothing of it lies anywhere. */
	context.table = NULL;
	sample_decode(&context, s, &out.s, &asks);
	sample_decode_missing(&context, NULL, s, &out.s, &asks);
	assert_int_equal(out.s.user_frames, 1);
	assert_ptr_equal(out.s.frames[1].module, &stack_sample_unknown);
	assert_true(out.s.flags & SAMPLE_UNWOUND);
}

/* The part of a walk's end that the kernel side does not report. */
static void test_ends(void **state)
{
	static const struct {
		uint8_t end;
		uint32_t flags;
		size_t cut;
		enum unwind_end is;
	} rows[] = {
		{ UNWIND_END_NO_CALLER, 0, 0, UNWIND_END_NO_CALLER },
		{ UNWIND_END_NO_CALLER, SAMPLE_BY_POINTER, 3, UNWIND_END_NO_POINTERS },
		{ UNWIND_END_NO_CALLER, 0, 3, UNWIND_END_NO_PLACE },
		{ UNWIND_END_NO_MAPPING, 0, 3, UNWIND_END_NO_PLACE },
		{ UNWIND_END_NO_MAPPING, SAMPLE_BY_POINTER, 0, UNWIND_END_NO_MAPPING },
		{ UNWIND_END_DEPTH, 0, 3, UNWIND_END_DEPTH },
	};
	_cleanup_free_ struct sample *s = raw(0, 0x40030);

	context.table = &table;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		s->flags = SAMPLE_UNWOUND | rows[i].flags;
		s->stop_reason = rows[i].end;
		table.cut = rows[i].cut;
		sample_decode(&context, s, &out.s, &asks);
		assert_int_equal(out.s.stop_reason, rows[i].is);
		assert_true(out.s.flags & SAMPLE_UNWOUND);
	}
	/* Without rows all was by frame pointers. */
	table.rows = false;
	sample_decode(&context, s, &out.s, &asks);
	assert_false(out.s.flags & SAMPLE_UNWOUND);
	assert_int_equal(out.s.stop_reason, UNWIND_END_NONE);
}

/* Of a kernel thread, and of a process without a place, nothing is asked. */
static void test_nobody(void **state)
{
	_cleanup_free_ struct sample *s = raw(SAMPLE_KTHREAD, 0x90000);

	context.process = NULL;
	context.maps = NULL;
	sample_decode(&context, s, &out.s, &asks);
	assert_int_equal(out.s.user_frames, 0);
	assert_false(asks.mappings || asks.build_ids);
	s->flags = 0;
	sample_decode(&context, s, &out.s, &asks);
	assert_int_equal(out.s.user_frames, 1);
	assert_ptr_equal(out.s.frames[1].module, &stack_sample_unknown);
	assert_int_equal(out.s.frames[1].offset, 0x10010);
	assert_false(asks.mappings || asks.build_ids);
}

/* What a signal interrupted is marked in a walked stack. Elsewhere the same word is no address. */
static void test_interrupted(void **state)
{
	_cleanup_free_ struct sample *s = raw(SAMPLE_UNWOUND, 0x40030 | SAMPLE_INTERRUPTED);

	s->stop_reason = UNWIND_END_COMPLETE;
	context.table = &table;
	sample_decode(&context, s, &out.s, &asks);
	assert_int_equal(out.s.user_frames, 4);
	for (uint16_t i = 1; i <= 4; i++)
		assert_int_equal(stack_sample_interrupted(&out.s.frames[i]), i == 3);
	assert_ptr_equal(out.s.frames[3].module, &library);
	assert_int_equal(stack_sample_offset(&out.s.frames[3]), 0x1030);
	assert_int_equal(stack_sample_offset(&out.s.frames[4]), 0x1030);
	assert_false(stack_sample_interrupted(&out.s.frames[0]));
	assert_false(stack_sample_followed(&out.s.frames[3]));
	s->flags = 0;
	context.table = NULL;
	process.maps.read_ns = s->time_ns + 1;
	sample_decode(&context, s, &out.s, &asks);
	assert_int_equal(out.s.user_frames, 2);
	assert_true(out.s.flags & STACK_SAMPLE_CUT);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(sample_decode)
{
	const struct CMUnitTest tests[] = {
		EACH(test_known), EACH(test_missing), EACH(test_found_stays), EACH(test_walked),
		EACH(test_ends),  EACH(test_nobody),  EACH(test_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
