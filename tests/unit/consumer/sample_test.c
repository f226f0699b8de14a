/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_sample.h"

#include "shared/cleanup.h"

#define SLOTS 8u
#define CPUS  4u

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

				s = fake_sample(counts[i], counts[k], flags, &bytes);
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

	s = fake_sample(STACK_FRAMES, STACK_FRAMES, SAMPLE_BUILD_ID, &bytes);
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
	/* However long the record is. */
	s->user_frames = STACK_FRAMES + 1;
	assert_false(sample_valid(s, 2 * bytes, SLOTS, CPUS));
	s->user_frames = STACK_FRAMES;
	s->kernel_frames = STACK_FRAMES + 1;
	assert_false(sample_valid(s, 2 * bytes, SLOTS, CPUS));
	s->kernel_frames = STACK_FRAMES;
	assert_false(sample_valid(s, bytes, 0, CPUS));
	assert_false(sample_valid(s, bytes, SLOTS, 0));
	assert_false(sample_valid(s, sizeof(*s) - 1, SLOTS, CPUS));
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
	fake_mappings(f);
	s = fake_sample(0, 2, 0, &bytes);
	fake_user_words(s)[0] = 0x666;
	fake_user_words(s)[1] = 0x10010;
	h = fake_decode(f, s, &p);
	assert_int_equal(h->user_frames, 2);
	assert_ptr_equal(h->frames[0].module, &sample_unknown);
	assert_int_equal(h->frames[0].offset, 0x666);
	assert_false(h->flags & HIT_CUT);
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
	assert_ptr_equal(earlier->frames[0].module, &sample_unknown);
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
	s = fake_sample(3, 2, SAMPLE_KTHREAD, &bytes);
	h = fake_decode(f, s, &p);
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
		_cleanup_free_ struct sample *s = fake_sample(1, 3, flags, &bytes);
		_cleanup_free_ struct hit *h = fake_decode(f, s, &p);

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
		cmocka_unit_test(test_other_image),
		cmocka_unit_test(test_decode_kthread),
		cmocka_unit_test(test_decode_table_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
