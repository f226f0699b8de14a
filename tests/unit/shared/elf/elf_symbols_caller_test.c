/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_symbols_caller_test.c: which function a return address belongs to. */
#include "tests/unit/runner/unit.h"

#include "shared/elf/elf_call.h"
#include "tests/unit/shared/elf/elf_testing.h"

static bool has_call(void *context, uint64_t offset)
{
	return elf_call_ends_at(context, offset);
}

static const char *find_caller(const struct elf_symbols *s, struct elf_image *image,
			       uint64_t offset)
{
	uint64_t start;
	const char *name =
		elf_symbols_find_caller(s, offset, &(struct elf_code){ has_call, image }, &start);

	return name ? name : "";
}

/* A return address names the call before it; without one it is where its function begins. */
static void test_find_caller(void **state)
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "plt_static");
	struct elf_symbols *s = elf_testing_read("plt_static");
	ptrdiff_t returns = elf_testing_place_of(s, "__restore_rt"),
		  local_at = elf_testing_place_of(s, "specimen_local");
	const uint32_t *keys = s->names.keys, *sizes = s->names.sizes;

	assert_true(returns >= 0 && local_at >= 0);
	assert_string_equal(find_caller(s, &image, keys[returns]), "__restore_rt");
	assert_string_equal(find_caller(s, &image, keys[local_at]), "specimen_local");
	assert_string_equal(find_caller(s, &image, keys[local_at] + 1), "specimen_local");
	assert_string_equal(find_caller(s, &image, keys[local_at] + sizes[local_at]),
			    "specimen_local");
	assert_string_equal(find_caller(s, &image, 0), "");
	elf_symbols_free(s);
	close(image.fd);
}

/* The last instruction of a function may be a call: the address behind it is another's first. */
static void test_call_at_the_end(void **state)
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "open_tables.whole");
	struct elf_symbols *s = elf_testing_read("open_tables.whole");
	ptrdiff_t at = elf_testing_place_of(s, "hidden_next");

	if (at >= 0) {
		assert_string_equal(find_caller(s, &image, s->names.keys[at]), "open_next");
		at = elf_testing_place_of(s, "hidden_behind");
		assert_true(at >= 0);
		assert_string_equal(find_caller(s, &image, s->names.keys[at]), "hidden_behind");
	}
	elf_symbols_free(s);
	close(image.fd);
}

UNIT_TESTS(elf_symbols_caller)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find_caller),
		cmocka_unit_test(test_call_at_the_end),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
