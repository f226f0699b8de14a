/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_agent.h"

#include <bpf/bpf.h>
#include <stdio.h>

#include "shared/cleanup.h"
#include "shared/clock.h"
#include "tests/unit/symbols/records_file.h"

#define SLOTS 8u
#define CPUS  4u

/* A sound record with raw frames; its exact length goes to *ret_bytes. */
static struct sample *new_sample(uint16_t kernel, uint16_t user, uint32_t flags, size_t *ret_bytes)
{
	size_t each =
		(flags & SAMPLE_BUILD_ID ? sizeof(struct frame_build_id) : 0) +
		(flags & SAMPLE_BUILD_ID && !(flags & SAMPLE_ADDRESSES) ? 0 : sizeof(uint64_t));
	size_t bytes = sizeof(struct sample) + kernel * sizeof(uint64_t) + user * each;
	struct sample *s = calloc(1, bytes);

	assert_non_null(s);
	s->time_ns = clock_mono_ns();
	s->tgid = s->tid = 100;
	s->start_ns = 5;
	s->flags = flags;
	s->kernel_frames = kernel;
	s->user_frames = user;
	strcpy(s->comm, "node");
	for (uint16_t i = 0; i < kernel; i++)
		((uint64_t *)(s + 1))[i] = 0xffffffff81000000ULL + i;
	*ret_bytes = bytes;
	return s;
}

static uint64_t *user_words(struct sample *s)
{
	return (uint64_t *)(s + 1) + s->kernel_frames;
}

static void test_valid(void **state)
{
	static const uint16_t counts[] = { 0, 1, 30, STACK_FRAMES };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(counts); k++)
			for (uint32_t i_flags = 0; i_flags < 3; i_flags++) {
				static const uint32_t some[] = {
					0, SAMPLE_BUILD_ID, SAMPLE_BUILD_ID | SAMPLE_ADDRESSES
				};
				uint32_t flags = some[i_flags];
				_cleanup_free_ struct sample *s = NULL;
				size_t bytes;

				s = new_sample(counts[i], counts[k], flags, &bytes);
				assert_true(sample_valid(s, bytes, SLOTS, CPUS));
				/* The ring rounds up to 8: more is fine, less is not. */
				assert_false(sample_valid(s, bytes - 1, SLOTS, CPUS));
				assert_false(sample_valid(s, 0, SLOTS, CPUS));
			}
}

static void test_lies(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	size_t bytes;

	s = new_sample(STACK_FRAMES, STACK_FRAMES, SAMPLE_BUILD_ID, &bytes);
#define REFUSED(field, lie)                                        \
	do {                                                       \
		__typeof__(s->field) was = s->field;               \
		s->field = (lie);                                  \
		assert_false(sample_valid(s, bytes, SLOTS, CPUS)); \
		s->field = was;                                    \
		assert_true(sample_valid(s, bytes, SLOTS, CPUS));  \
	} while (0)
	REFUSED(kernel_frames, STACK_FRAMES + 1);
	REFUSED(kernel_frames, UINT16_MAX);
	REFUSED(user_frames, STACK_FRAMES + 1);
	REFUSED(user_frames, UINT16_MAX);
	REFUSED(slot, SLOTS);
	REFUSED(slot, NO_SLOT);
	REFUSED(cpu, CPUS);
	REFUSED(cpu, UINT32_MAX);
#undef REFUSED
	assert_false(sample_valid(s, bytes, 0, CPUS));
	assert_false(sample_valid(s, bytes, SLOTS, 0));
	assert_false(sample_valid(s, sizeof(*s) - 1, SLOTS, CPUS));
}

static struct hit *decode(struct fake *f, const struct sample *s, struct process **ret_process)
{
	struct hit *h = calloc(1, sizeof(*h) + HIT_FRAMES_MAX * sizeof(struct frame));

	assert_non_null(h);
	/* What is left of the last sample must not show. */
	memset(h->frames, 0xa5, HIT_FRAMES_MAX * sizeof(struct frame));
	*ret_process = sample_decode(&f->a, s, h);
	return h;
}

/* Two mappings of tgid 100 in the file that stands for the iterator. */
static void write_mappings(struct fake *f)
{
	FILE *file = fopen(f->vmas, "we");
	struct mapping_record r = { .start_ns = 5,
				    .tgid = 100,
				    .start = 0x10000,
				    .end = 0x20000,
				    .file_offset = 0x1000,
				    .inode = 7,
				    .device = 1,
				    .flags = MAPPING_IS_EXE };

	assert_non_null(file);
	records_file_mapping(file, r, "/nonexistent/app");
	r.start = 0x40000;
	r.end = 0x50000;
	r.inode = 8;
	r.flags = 0;
	records_file_mapping(file, r, "/nonexistent/lib.so");
	fclose(file);
}

static void test_decode_raw(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct hit *h = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	write_mappings(f);
	s = new_sample(2, 4, SAMPLE_CAPTURE, &bytes);
	user_words(s)[0] = 0x10010;
	user_words(s)[1] = 0x40020;
	user_words(s)[2] = 0x90000;
	user_words(s)[3] = 0x10030;
	h = decode(f, s, &p);
	assert_non_null(p);
	assert_string_equal(p->comm, "node");
	assert_string_equal(p->maps.exe->path, "/nonexistent/app");
	assert_int_equal(h->kernel_frames, 2);
	assert_null(h->frames[1].module);
	assert_int_equal(h->frames[1].offset, 0xffffffff81000001ULL);
	/* The chain ends before what is no return address, and says so. */
	assert_int_equal(h->user_frames, 2);
	assert_true(h->flags & HIT_CUT);
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
	_cleanup_free_ struct hit *h = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	write_mappings(f);
	s = new_sample(0, 2, 0, &bytes);
	user_words(s)[0] = 0x666;
	user_words(s)[1] = 0x10010;
	h = decode(f, s, &p);
	assert_int_equal(h->user_frames, 2);
	assert_ptr_equal(h->frames[0].module, &sample_unknown);
	assert_int_equal(h->frames[0].offset, 0x666);
	assert_false(h->flags & HIT_CUT);
	fake_free(f);
}

static void test_decode_build_id(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct hit *h = NULL;
	struct fake *f = fake_new();
	struct frame_build_id *ids;
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	write_mappings(f);
	s = new_sample(1, 3, SAMPLE_BUILD_ID, &bytes);
	ids = (struct frame_build_id *)user_words(s);
	for (int i = 0; i < 2; i++) {
		ids[i].status = 1;
		memset(ids[i].build_id, 0xab, BUILD_ID_BYTES);
		ids[i].offset_or_ip = 0x100 + (uint64_t)i;
	}
	ids[2].status = 2;
	ids[2].offset_or_ip = 0x40044;
	h = decode(f, s, &p);
	assert_int_equal(h->user_frames, 3);
	assert_ptr_equal(h->frames[1].module, h->frames[2].module);
	assert_int_equal(h->frames[2].offset, 0x101);
	assert_int_equal(h->frames[1].module->build_id_bytes, BUILD_ID_BYTES);
	assert_string_equal(h->frames[3].module->path, "/nonexistent/lib.so");
	fake_free(f);
}

/* Three frames: one in the program, one in what was the library, one that the kernel cannot tell.
 */
static struct sample *told_sample(uint64_t library_offset)
{
	struct frame_build_id *ids;
	struct sample *s;
	uint64_t *addresses;
	size_t bytes;

	s = new_sample(0, 3, SAMPLE_BUILD_ID | SAMPLE_ADDRESSES, &bytes);
	ids = (struct frame_build_id *)user_words(s);
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

/* What the kernel says of an address below a mapping is an offset below its file: the chain ends
 * there. */
static void test_no_offset_below_a_file(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct hit *h = NULL;
	struct fake *f = fake_new();
	struct frame_build_id *ids;
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	write_mappings(f);
	s = new_sample(0, 3, SAMPLE_BUILD_ID, &bytes);
	ids = (struct frame_build_id *)user_words(s);
	for (int i = 0; i < 3; i++)
		ids[i] = (struct frame_build_id){ .status = 1,
						  .build_id = { 3 },
						  .offset_or_ip = 0x100 };
	ids[1].offset_or_ip = 0x100 - 0x400000ull;
	h = decode(f, s, &p);
	assert_int_equal(h->user_frames, 1);
	assert_true(h->flags & HIT_CUT);
	fake_free(f);
}

/* Of an address in a file's data the kernel tells the build-id all the same. */
static void test_data_is_no_caller(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct hit *h = NULL;
	struct fake *f = fake_new();
	struct process *p;

	if (!f)
		skip();
	write_mappings(f);
	s = told_sample(0x20);
	((uint64_t *)((struct frame_build_id *)user_words(s) + 3))[1] = 0x30000;
	h = decode(f, s, &p);
	assert_true(p->maps.read_ns >= h->time_ns);
	assert_int_equal(h->user_frames, 1);
	assert_true(h->flags & HIT_CUT);
	fake_free(f);
}

/* A sample of an image that has been replaced since is not looked up in the next one's mappings. */
static void test_other_image(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct hit *now = NULL, *earlier = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	write_mappings(f);
	s = new_sample(0, 2, 0, &bytes);
	user_words(s)[0] = 0x10010;
	user_words(s)[1] = 0x40020;
	now = decode(f, s, &p);
	assert_int_equal(now->user_frames, 2);
	assert_string_equal(now->frames[0].module->path, "/nonexistent/app");
	s->image = UINT32_MAX;
	earlier = decode(f, s, &p);
	assert_int_equal(earlier->user_frames, 1);
	assert_ptr_equal(earlier->frames[0].module, &sample_unknown);
	fake_free(f);
}

static uint32_t target_flags(struct fake *f)
{
	struct process_key key = { .tgid = 100, .start_ns = 5 };
	struct target target = { .flags = UINT32_MAX };

	assert_int_equal(bpf_map_lookup_elem(f->a.pins.targets_fd, &key, &target), 0);
	return target.flags;
}

/* Raw addresses in files of unknown build-id make the consumer ask the kernel, which then tells. */
static void test_asks_and_is_told(void **state)
{
	struct process_key key = { .tgid = 100, .start_ns = 5 };
	struct target target = { .flags = TARGET_MATCHED };
	_cleanup_free_ struct sample *raw = NULL, *told = NULL;
	_cleanup_free_ struct hit *a = NULL, *b = NULL, *c = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	write_mappings(f);
	assert_int_equal(bpf_map_update_elem(f->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	raw = new_sample(0, 2, 0, &bytes);
	user_words(raw)[0] = 0x10010;
	user_words(raw)[1] = 0x40020;
	a = decode(f, raw, &p);
	assert_int_equal(target_flags(f), TARGET_MATCHED);
	told = told_sample(0x1020);
	b = decode(f, told, &p);
	assert_int_equal(target_flags(f), TARGET_MATCHED | TARGET_MAPPED);
	assert_int_equal(b->user_frames, 3);
	for (int i = 0; i < 2; i++) {
		assert_ptr_equal(b->frames[i].module, a->frames[i].module);
		assert_int_equal(b->frames[i].offset, a->frames[i].offset);
		assert_true(b->frames[i].module->told);
		assert_int_equal(b->frames[i].module->build_id[0], 1 + i);
	}
	assert_string_equal(b->frames[2].module->path, "/nonexistent/lib.so");
	p->asked_ns = 0;
	c = decode(f, raw, &p);
	assert_int_equal(target_flags(f), TARGET_MATCHED | TARGET_MAPPED);
	fake_free(f);
}

/* What the kernel says of an address that is mapped otherwise now is not noted for that file. */
static void test_told_of_another(void **state)
{
	_cleanup_free_ struct sample *s = told_sample(0x5020);
	_cleanup_free_ struct hit *h = NULL;
	struct fake *f = fake_new();
	struct process *p;

	if (!f)
		skip();
	write_mappings(f);
	h = decode(f, s, &p);
	assert_int_equal(h->user_frames, 3);
	assert_string_equal(h->frames[1].module->path, "");
	assert_int_equal(h->frames[1].offset, 0x5020);
	assert_false(h->frames[2].module->told);
	assert_int_equal(h->frames[2].module->untold, 1);
	fake_free(f);
}

static void test_decode_kthread(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	_cleanup_free_ struct hit *h = NULL;
	struct fake *f = fake_new();
	struct process *p;
	size_t bytes;

	if (!f)
		skip();
	s = new_sample(3, 2, SAMPLE_KTHREAD, &bytes);
	h = decode(f, s, &p);
	assert_non_null(p);
	assert_int_equal(h->kernel_frames, 3);
	/* It has no user side, whatever the record says. */
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
		assert_int_equal(process_get(&f->a, 1000 + i, 1, &p), 0);
	for (uint32_t flags = 0; flags <= (SAMPLE_BUILD_ID | SAMPLE_ADDRESSES); flags++) {
		_cleanup_free_ struct sample *s = new_sample(1, 3, flags, &bytes);
		_cleanup_free_ struct hit *h = decode(f, s, &p);

		assert_null(p);
		assert_int_equal(h->kernel_frames, 1);
		assert_true(flags & SAMPLE_KTHREAD || h->user_frames >= 1);
		for (uint16_t i = 0; i < h->user_frames; i++)
			assert_ptr_equal(h->frames[1 + i].module, &sample_unknown);
	}
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_decode_raw),
		cmocka_unit_test(test_decode_leaf),
		cmocka_unit_test(test_decode_build_id),
		cmocka_unit_test(test_no_offset_below_a_file),
		cmocka_unit_test(test_data_is_no_caller),
		cmocka_unit_test(test_other_image),
		cmocka_unit_test(test_asks_and_is_told),
		cmocka_unit_test(test_told_of_another),
		cmocka_unit_test(test_decode_kthread),
		cmocka_unit_test(test_decode_table_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
