/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/fake_sample_testing.h"

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static void test_decode_raw(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct stack_sample *h = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	fake_mappings(f);
	s = fake_sample(2, 4, SAMPLE_CAPTURE, &bytes);
	fake_user_words(s)[0] = 0x10010;
	fake_user_words(s)[1] = 0x40020;
	fake_user_words(s)[2] = 0x90000;
	fake_user_words(s)[3] = 0x10030;
	h = fake_decode(f, s, &p);
	assert_non_null(p);
	assert_string_equal(p->comm, "node");
	assert_string_equal(p->maps.exe->path, "/nonexistent/app");
	assert_int_equal(h->kernel_frames, 2);
	assert_null(h->frames[1].module);
	assert_int_equal(h->frames[1].offset, 0xffffffff81000001ULL);
	/* The chain ends before a word that is no return address, and is marked. */
	assert_int_equal(h->user_frames, 2);
	assert_true(h->flags & STACK_SAMPLE_CUT);
	assert_string_equal(h->frames[2].module->path, "/nonexistent/app");
	assert_int_equal(h->frames[2].offset, 0x1010);
	assert_string_equal(h->frames[3].module->path, "/nonexistent/lib.so");
	assert_int_equal(h->frames[3].offset, 0x1020);
	fake_free(f);
}

/* A leaf outside every mapping stays: it is where the program was. */
static void test_decode_leaf(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct stack_sample *h = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	fake_mappings(f);
	s = fake_sample(0, 2, 0, &bytes);
	fake_user_words(s)[0] = 0x666;
	fake_user_words(s)[1] = 0x10010;
	h = fake_decode(f, s, &p);
	assert_int_equal(h->user_frames, 2);
	assert_ptr_equal(h->frames[0].module, &stack_sample_unknown);
	assert_int_equal(h->frames[0].offset, 0x666);
	assert_false(h->flags & STACK_SAMPLE_CUT);
	fake_free(f);
}

/* A sample of an image that has been replaced since is not looked up in the next one's mappings. */
static void test_other_image(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct stack_sample *now = NULL, *earlier = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	fake_mappings(f);
	s = fake_sample(0, 2, 0, &bytes);
	fake_user_words(s)[0] = 0x10010;
	fake_user_words(s)[1] = 0x40020;
	now = fake_decode(f, s, &p);
	assert_int_equal(now->user_frames, 2);
	assert_string_equal(now->frames[0].module->path, "/nonexistent/app");
	s->image = UINT32_MAX;
	earlier = fake_decode(f, s, &p);
	assert_int_equal(earlier->user_frames, 1);
	assert_ptr_equal(earlier->frames[0].module, &stack_sample_unknown);
	fake_free(f);
}

static void test_decode_kthread(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct stack_sample *h = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	s = fake_sample(3, 2, SAMPLE_KTHREAD, &bytes);
	h = fake_decode(f, s, &p);
	assert_non_null(p);
	assert_int_equal(h->kernel_frames, 3);
	/* It has no user side, for any record. */
	assert_int_equal(h->user_frames, 0);
	assert_int_equal(p->maps.count, 0);
	fake_free(f);
}

/* With a full table the sample still counts, and shows no frame of the one before it. */
static void test_decode_table_full(void **state)
{
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	for (uint32_t i = 0; i < FAKE_PROCESSES; i++)
		assert_int_equal(process_get(&f->a.processes, 1000 + i, 1, &p), 0);
	for (uint32_t flags = 0; flags <= (SAMPLE_BUILD_ID | SAMPLE_ADDRESSES); flags++) {
		_cleanup_free_ struct sample *s = fake_sample(1, 3, flags, &bytes);
		_cleanup_free_ struct stack_sample *h = fake_decode(f, s, &p);

		assert_null(p);
		assert_int_equal(h->kernel_frames, 1);
		assert_true(flags & SAMPLE_KTHREAD || h->user_frames >= 1);
		for (uint16_t i = 0; i < h->user_frames; i++)
			assert_ptr_equal(h->frames[1 + i].module, &stack_sample_unknown);
	}
	fake_free(f);
}

/* A record that no sampler writes is counted and passed over. */
static void test_bad(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	struct fake *f = fake_new();
	size_t bytes;

	if (!f)
		skip();
	s = fake_sample(1, 2, 0, &bytes);
	fake_put(&f->samples, s, bytes - 8);
	fake_drain_samples(f);
	assert_int_equal(f->a.counts.samples, 1);
	assert_int_equal(f->a.counts.bad_records, 1);
	assert_null(process_find(&f->a.processes, FAKE_TGID, FAKE_START));
	fake_free(f);
}

/*
 * What the recorder's look found asleep: its mappings are read at once, or asked for where that
 * would be a walk over all tasks; where it may cost nothing, neither.
 */
static void test_effort(void **state)
{
	static const struct {
		enum drain_effort effort;
		bool walked, asks, reads;
	} rows[] = {
		{ DRAIN_KNOWN, false, false, false }, { DRAIN_KNOWN, true, false, false },
		{ DRAIN_ASK, false, false, true },    { DRAIN_ASK, true, true, false },
		{ DRAIN_READ, false, false, true },   { DRAIN_READ, true, false, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ struct sample *s = NULL;
		const struct process *p;
		struct fake *f = fake_new();
		size_t bytes;

		if (!f)
			skip();
		fake_mappings(f);
		f->a.pins.abi.vma_open_coded = !rows[i].walked;
		s = fake_sample(0, 2, 0, &bytes);
		assert_non_null(drain_decode(&f->a.drain, s, bytes, rows[i].effort, &p));
		assert_int_equal(p->maps.count > 0, rows[i].reads);
		assert_int_equal(mappings_queue_has_rest(&f->a.queue), rows[i].asks);
		while (mappings_queue_has_rest(&f->a.queue))
			mappings_queue_next(&f->a.queue, UINT64_MAX);
		/* A known process is asked for no more. */
		if (rows[i].asks)
			assert_non_null(drain_decode(&f->a.drain, s, bytes, DRAIN_ASK, &p));
		assert_int_equal(p->maps.count > 0, rows[i].reads || rows[i].asks);
		assert_false(mappings_queue_has_rest(&f->a.queue));
		fake_free(f);
	}
}

static struct drain_slot slot_seven(void *context, uint32_t slot)
{
	return (struct drain_slot){ .cgroup_id = 7, .epoch = 3 };
}

static bool take_by_seq(void *context, const struct stack_sample *sample, const struct process *p)
{
	return sample->seq == 1;
}

/* To its session, else to the recorder, where the slot is still of that epoch. */
static void test_routes(void **state)
{
	static const struct drain_calls calls = { slot_seven, take_by_seq };
	struct fake *f = fake_new();

	if (!f)
		skip();
	f->a.drain.calls = &calls;
	for (uint32_t seq = 1; seq <= 3; seq++) {
		_cleanup_free_ struct sample *s = NULL;
		size_t bytes;

		s = fake_sample(1, 0, 0, &bytes);
		s->seq = seq;
		s->cgroup_id = 7;
		s->epoch = seq == 2 ? 2 : 3;
		fake_put(&f->samples, s, bytes);
		fake_drain_samples(f);
		assert_int_equal(f->a.recorder.bytes > 0, seq == 3);
	}
	/* A process that a tick met is of the watched cgroup, as far as is known. */
	assert_int_equal(process_find(&f->a.processes, FAKE_TGID, FAKE_START)->cgroup_id, 7);
	fake_free(f);
}

UNIT_TESTS(drain)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode_raw),
		cmocka_unit_test(test_decode_leaf),
		cmocka_unit_test(test_other_image),
		cmocka_unit_test(test_decode_kthread),
		cmocka_unit_test(test_decode_table_full),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_effort),
		cmocka_unit_test(test_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
