/* SPDX-License-Identifier: BSD-2-Clause */
/* The build-id of each module, by the present mappings and the kernel's earlier answers. */
#include "tests/unit/consumer/testing/sample_testing.h"

#include "consumer/sampling/sample_build_ids.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static char path[] = "/lib";
static struct module file, other, anonymous;
static struct mapping items[3];
static struct mappings maps;
static struct sample_build_ids found;
static struct symbols *symbols;

static int setup(void **state)
{
	assert_int_equal(symbols_new(1 << 20, NULL, &symbols), 0);
	file = (struct module){ .identity.inode = 7, .path = path };
	other = (struct module){ .identity.inode = 8, .path = path };
	anonymous = (struct module){ .path = path, .anonymous = true };
	items[0] = (struct mapping){ 0x10000, 0x20000, 0x1000, &file, 1 };
	items[1] = (struct mapping){ 0x40000, 0x50000, 0x1000, &other, 1 };
	items[2] = (struct mapping){ 0x60000, 0x70000, 0x60000, &anonymous, 1 };
	maps = (struct mappings){ .items = items, .count = 3, .read_ns = UINT64_MAX };
	return 0;
}

static int teardown(void **state)
{
	symbols_free(symbols);
	return 0;
}

/* A record with one resolved frame in each mapping. */
static struct sample *told(void)
{
	static const uint64_t addresses[] = { 0x10010, 0x40020, 0x60030 };
	struct frame_build_id *ids;
	struct sample *s;
	size_t bytes;

	s = fake_sample(2, 3, SAMPLE_BUILD_ID | SAMPLE_ADDRESSES, &bytes);
	ids = (struct frame_build_id *)(uintptr_t)sample_record_ids(s);
	memcpy(ids + 3, addresses, sizeof(addresses));
	for (int i = 0; i < 3; i++)
		ids[i] = (struct frame_build_id){ .status = 1, .build_id = { (uint8_t)(i + 1) } };
	ids[0].offset_or_ip = 0x1010;
	ids[1].offset_or_ip = 0x1020;
	ids[2].offset_or_ip = 0x60030;
	return s;
}

static struct frame_build_id *id_of(struct sample *s, size_t i)
{
	return (struct frame_build_id *)(uintptr_t)&sample_record_ids(s)[i];
}

/* Files of which none is known, each with its own. */
static void test_find(void **state)
{
	_cleanup_free_ struct sample *s = told();

	sample_build_ids_find(symbols, s, &maps, &found);
	assert_int_equal(found.count, 2);
	assert_ptr_equal(found.items[0].module, &file);
	assert_int_equal(found.items[0].build_id[0], 1);
	assert_ptr_equal(found.items[1].module, &other);
	assert_true(found.items[0].confirmed && found.items[1].confirmed);
	file.build_id_known = true;
	file.build_id[0] = 1;
	file.build_id_bytes = BUILD_ID_BYTES;
	other.build_id_misses = SYMBOLS_BUILD_ID_MISSES_MAX;
	sample_build_ids_find(symbols, s, &maps, &found);
	assert_int_equal(found.count, 0);
}

/* A known build-id is listed again when the kernel reports another one. */
static void test_other(void **state)
{
	_cleanup_free_ struct sample *s = told();

	file.build_id_known = other.build_id_known = true;
	file.build_id[0] = 9;
	other.build_id[0] = 2;
	file.build_id_bytes = other.build_id_bytes = BUILD_ID_BYTES;
	sample_build_ids_find(symbols, s, &maps, &found);
	assert_int_equal(found.count, 1);
	assert_ptr_equal(found.items[0].module, &file);
	assert_true(found.items[0].other && found.items[0].confirmed);
}

/* The kernel reports that it knows none; its answer for another offset is not this file's. */
static void test_none_and_another(void **state)
{
	_cleanup_free_ struct sample *s = told();

	id_of(s, 0)->status = 2;
	id_of(s, 1)->offset_or_ip = 0x5020;
	sample_build_ids_find(symbols, s, &maps, &found);
	assert_int_equal(found.count, 1);
	assert_ptr_equal(found.items[0].module, &file);
	assert_null(found.items[0].build_id);
}

/* Mappings of before and of after have to agree; those of another image prove nothing. */
static void test_confirmed(void **state)
{
	_cleanup_free_ struct sample *s = told();

	maps.read_ns = s->time_ns - 1;
	items[1].since_ns = s->time_ns + 1;
	sample_build_ids_find(symbols, s, &maps, &found);
	assert_int_equal(found.count, 2);
	assert_false(found.items[0].confirmed);
	maps.read_ns = s->time_ns;
	sample_build_ids_find(symbols, s, &maps, &found);
	assert_true(found.items[0].confirmed);
	assert_false(found.items[1].confirmed);
	maps.image = s->image + 1;
	sample_build_ids_find(symbols, s, &maps, &found);
	assert_int_equal(found.count, 0);
}

/* Behind a walked stack the leaf's comes alone, and not where its file is another by now. */
static void test_leaf(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	struct frame_build_id *leaf;
	size_t bytes;

	/* Six words of a stack of two: the leaf's build-id takes four. */
	s = fake_sample(0, 6, 0, &bytes);
	s->user_frames = 2;
	s->flags = SAMPLE_UNWOUND | SAMPLE_LEAF_ID;
	fake_user_words(s)[0] = 0x10010;
	fake_user_words(s)[1] = 0x40020;
	leaf = (struct frame_build_id *)(fake_user_words(s) + 2);
	*leaf = (struct frame_build_id){ .status = 1, .build_id = { 9 }, .offset_or_ip = 0x1010 };
	sample_build_ids_find(symbols, s, &maps, &found);
	assert_int_equal(found.count, 1);
	assert_ptr_equal(found.items[0].module, &file);
	assert_int_equal(found.items[0].build_id[0], 9);
	s->flags |= SAMPLE_LEAF_CHANGED;
	sample_build_ids_find(symbols, s, &maps, &found);
	assert_int_equal(found.count, 0);
}

/* Records without the one or the other prove nothing. */
static void test_nothing(void **state)
{
	static const uint32_t some[] = { 0, SAMPLE_BUILD_ID, SAMPLE_UNWOUND };

	for (size_t i = 0; i < ARRAY_SIZE(some); i++) {
		_cleanup_free_ struct sample *s = NULL;
		size_t bytes;

		s = fake_sample(0, 2, some[i], &bytes);
		found.count = 99;
		sample_build_ids_find(symbols, s, &maps, &found);
		assert_int_equal(found.count, 0);
	}
}

UNIT_TESTS(sample_build_ids)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none_and_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_confirmed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaf, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
