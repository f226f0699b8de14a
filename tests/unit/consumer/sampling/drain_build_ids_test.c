/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples with files that the kernel side identifies by their build-ids. */
#include "tests/unit/consumer/testing/fake_sample_testing.h"

#include <bpf/bpf.h>

#include "shared/tools/cleanup.h"

static void test_decode_build_id(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct stack_sample *h = NULL;
	struct fake *f = fake_new();
	struct frame_build_id *ids;
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	fake_mappings(f);
	s = fake_sample(1, 3, SAMPLE_BUILD_ID, &bytes);
	ids = (struct frame_build_id *)fake_user_words(s);
	for (int i = 0; i < 2; i++) {
		ids[i].status = 1;
		memset(ids[i].build_id, 0xab, BUILD_ID_BYTES);
		ids[i].offset_or_ip = 0x100 + (uint64_t)i;
	}
	ids[2].status = 2;
	ids[2].offset_or_ip = 0x40044;
	h = fake_decode(f, s, &p);
	assert_int_equal(h->user_frames, 3);
	assert_ptr_equal(h->frames[1].module, h->frames[2].module);
	assert_int_equal(h->frames[2].offset, 0x101);
	assert_int_equal(h->frames[1].module->build_id_bytes, BUILD_ID_BYTES);
	assert_string_equal(h->frames[3].module->path, "/nonexistent/lib.so");
	fake_free(f);
}

/*
 * A leaf in a file that is not in the table: the kernel's answer counts, not the present mapping.
 */
static void test_leaf_of_another_file(void **state)
{
	static const uint32_t flags = SAMPLE_UNWOUND | SAMPLE_LEAF_CHANGED;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	fake_mappings(f);
	for (int told = 0; told < 2; told++) {
		_cleanup_free_ struct sample *s = fake_sample(0, 5, 0, &bytes);
		_cleanup_free_ struct stack_sample *h = NULL;
		struct frame_build_id *id = (struct frame_build_id *)(fake_user_words(s) + 1);

		s->user_frames = 1;
		s->stop_reason = UNWIND_END_CHANGED;
		s->flags = flags | (told ? SAMPLE_LEAF_ID : 0);
		fake_user_words(s)[0] = 0x10010;
		*id = (struct frame_build_id){ .status = 1,
					       .build_id = { 4 },
					       .offset_or_ip = 0x1010 };
		h = fake_decode(f, s, &p);
		assert_int_equal(h->user_frames, 1);
		assert_int_equal(h->stop_reason, UNWIND_END_CHANGED);
		assert_int_equal(h->frames[0].module == &stack_sample_unknown, !told);
		assert_int_equal(h->frames[0].offset, told ? 0x1010 : 0x10010);
		if (told)
			assert_int_equal(h->frames[0].module->build_id[0], 4);
	}
	fake_free(f);
}

/*
 * Three frames: one in the program, one in the former library, one that the kernel cannot identify.
 */
static struct sample *told_sample(uint64_t library_offset)
{
	struct frame_build_id *ids;
	struct sample *s;
	uint64_t *addresses;
	size_t bytes;

	s = fake_sample(0, 3, SAMPLE_BUILD_ID | SAMPLE_ADDRESSES, &bytes);
	ids = (struct frame_build_id *)fake_user_words(s);
	addresses = (uint64_t *)(ids + 3);
	ids[0] = (struct frame_build_id){ .status = 1, .build_id = { 1 }, .offset_or_ip = 0x1010 };
	ids[1] = (struct frame_build_id){ .status = 1,
					  .build_id = { 2 },
					  .offset_or_ip = library_offset };
	ids[2] = (struct frame_build_id){ .status = 2, .offset_or_ip = 0x40030 };
	addresses[0] = 0x10010;
	addresses[1] = 0x40020;
	addresses[2] = 0x40030;
	return s;
}

/*
 * The kernel's answer for an address below a mapping is an offset below its file: the chain ends
 * there.
 */
static void test_no_offset_below_a_file(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct stack_sample *h = NULL;
	struct fake *f = fake_new();
	struct frame_build_id *ids;
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	fake_mappings(f);
	s = fake_sample(0, 3, SAMPLE_BUILD_ID, &bytes);
	ids = (struct frame_build_id *)fake_user_words(s);
	for (int i = 0; i < 3; i++)
		ids[i] = (struct frame_build_id){ .status = 1,
						  .build_id = { 3 },
						  .offset_or_ip = 0x100 };
	ids[1].offset_or_ip = 0x100 - 0x400000ull;
	h = fake_decode(f, s, &p);
	assert_int_equal(h->user_frames, 1);
	assert_true(h->flags & STACK_SAMPLE_CUT);
	fake_free(f);
}

/* For an address in a file's data the kernel reports the build-id all the same. */
static void test_data_is_no_caller(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct stack_sample *h = NULL;
	struct fake *f = fake_new();
	struct process *p;

	if (!f)
		skip();
	fake_mappings(f);
	s = told_sample(0x20);
	((uint64_t *)((struct frame_build_id *)fake_user_words(s) + 3))[1] = 0x30000;
	h = fake_decode(f, s, &p);
	assert_true(p->maps.read_ns >= h->time_ns);
	assert_int_equal(h->user_frames, 1);
	assert_true(h->flags & STACK_SAMPLE_CUT);
	fake_free(f);
}

static uint32_t target_flags(struct fake *f)
{
	struct process_key key = { .tgid = 100, .start_ns = 5 };
	struct target target = { .flags = UINT32_MAX };

	assert_int_equal(bpf_map_lookup_elem(f->a.pins.targets_fd, &key, &target), 0);
	return target.flags;
}

/*
 * Decodes `s` after the mappings have been read once, and lets them be read anew: the kernel's
 * answer is believed for the mappings there before and after.
 */
static struct stack_sample *decode_between(struct fake *f, struct sample *s,
					   struct process **ret_process)
{
	_cleanup_free_ struct sample *first = NULL;
	_cleanup_free_ struct stack_sample *h = NULL;
	size_t bytes;

	first = fake_sample(0, 1, 0, &bytes);
	fake_user_words(first)[0] = 0x10010;
	h = fake_decode(f, first, ret_process);
	s->time_ns = clock_mono_ns();
	(*ret_process)->tried_ns = 0;
	return fake_decode(f, s, ret_process);
}

/*
 * Raw addresses in files of unknown build-id make the consumer ask the kernel, which then answers.
 */
static void test_requests_an_announcement(void **state)
{
	struct process_key key = { .tgid = 100, .start_ns = 5 };
	struct target target = { .flags = TARGET_MATCHED };
	_cleanup_free_ struct sample *raw = NULL, *told = NULL;
	_cleanup_free_ struct stack_sample *a = NULL, *b = NULL, *c = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	fake_mappings(f);
	assert_int_equal(bpf_map_update_elem(f->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	raw = fake_sample(0, 2, 0, &bytes);
	fake_user_words(raw)[0] = 0x10010;
	fake_user_words(raw)[1] = 0x40020;
	a = fake_decode(f, raw, &p);
	assert_int_equal(target_flags(f), TARGET_MATCHED);
	told = told_sample(0x1020);
	b = decode_between(f, told, &p);
	assert_int_equal(target_flags(f), TARGET_MATCHED | TARGET_MAPPED);
	assert_int_equal(b->user_frames, 3);
	for (int i = 0; i < 2; i++) {
		assert_ptr_equal(b->frames[i].module, a->frames[i].module);
		assert_int_equal(b->frames[i].offset, a->frames[i].offset);
		assert_true(b->frames[i].module->build_id_known);
		assert_int_equal(b->frames[i].module->build_id[0], 1 + i);
	}
	assert_string_equal(b->frames[2].module->path, "/nonexistent/lib.so");
	p->build_ids_ns = 0;
	c = fake_decode(f, raw, &p);
	assert_int_equal(target_flags(f), TARGET_MATCHED | TARGET_MAPPED);
	fake_free(f);
}

/* The kernel's answer for an address with another mapping now is not noted for that file. */
static void test_other_file_announced(void **state)
{
	_cleanup_free_ struct sample *s = told_sample(0x5020);
	_cleanup_free_ struct stack_sample *h = NULL;
	struct fake *f = fake_new();
	struct process *p;

	if (!f)
		skip();
	fake_mappings(f);
	h = decode_between(f, s, &p);
	assert_int_equal(h->user_frames, 3);
	assert_string_equal(h->frames[1].module->path, "");
	assert_int_equal(h->frames[1].offset, 0x5020);
	assert_false(h->frames[2].module->build_id_known);
	assert_int_equal(h->frames[2].module->build_id_misses, 1);
	fake_free(f);
}

/* Nor its answer before there was a second reading: the first may be of a later mapping. */
static void test_later_file_announced(void **state)
{
	_cleanup_free_ struct sample *s = told_sample(0x1020);
	_cleanup_free_ struct stack_sample *h = NULL;
	struct fake *f = fake_new();
	struct process *p;

	if (!f)
		skip();
	fake_mappings(f);
	h = fake_decode(f, s, &p);
	assert_int_equal(h->user_frames, 3);
	assert_string_equal(h->frames[1].module->path, "");
	assert_int_equal(h->frames[1].module->build_id[0], 2);
	for (size_t i = 0; i < p->maps.count; i++)
		assert_true(symbols_lacks_build_id(p->maps.items[i].module));
	fake_free(f);
}

/*
 * A file with the same identity and another build-id is another file: after the second such sample
 * every process that maps it is read again, and gets another module.
 */
static void test_contradicted(void **state)
{
	_cleanup_free_ struct sample *first = told_sample(0x1020), *other = told_sample(0x1020);
	_cleanup_free_ struct stack_sample *a = NULL, *b = NULL, *c = NULL, *d = NULL;
	const struct process_key key = { .tgid = 100, .start_ns = 5 };
	const struct target target = { .flags = TARGET_MATCHED };
	struct fake *f = fake_new();
	struct module *program;
	struct process *p;

	if (!f)
		skip();
	fake_mappings(f);
	assert_int_equal(bpf_map_update_elem(f->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	a = decode_between(f, first, &p);
	program = a->frames[0].module;
	assert_int_equal(program->build_id[0], 1);
	((struct frame_build_id *)fake_user_words(other))->build_id[0] = 9;
	other->time_ns = p->maps.read_ns - 1;
	p->maps.items[0].since_ns = p->maps.read_ns; /* it came after this sample */
	p->build_ids_ns = 0;
	b = fake_decode(f, other, &p);
	assert_string_equal(b->frames[0].module->path, "");
	assert_int_equal(b->frames[0].module->build_id[0], 9);
	assert_true(program->build_id_doubted && !program->retired);
	assert_true(p->build_ids_pending);

	other->time_ns = clock_mono_ns();
	p->tried_ns = 0;
	c = fake_decode(f, other, &p);
	assert_true(program->retired && p->maps.stale);
	assert_int_equal(c->frames[0].module->build_id[0], 9);
	other->time_ns = clock_mono_ns();
	d = fake_decode(f, other, &p);
	assert_false(p->maps.stale);
	assert_ptr_not_equal(p->maps.items[0].module, program);
	assert_string_equal(p->maps.items[0].module->path, "/nonexistent/app");
	assert_int_equal(d->frames[0].module->build_id[0], 9);
	fake_free(f);
}

UNIT_TESTS(drain_build_ids)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode_build_id),
		cmocka_unit_test(test_leaf_of_another_file),
		cmocka_unit_test(test_no_offset_below_a_file),
		cmocka_unit_test(test_data_is_no_caller),
		cmocka_unit_test(test_requests_an_announcement),
		cmocka_unit_test(test_other_file_announced),
		cmocka_unit_test(test_later_file_announced),
		cmocka_unit_test(test_contradicted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
