/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "consumer/symbols/symbols.h"
#include "consumer/symbols/vdso.h"
#include "shared/elf/elf_symbols.h"
#include "shared/tools/macro.h"

static void test_names(void **state)
{
	struct elf_image image;
	struct elf_symbols *s;
	bool found = false;

	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	assert_int_equal(vdso_image(&image), 0);
	assert_int_equal(image.fd, -1);
	assert_int_equal(elf_symbols_read(&image, NULL, &s), 0);
	for (size_t i = 0; i < s->names.count; i++)
		found = found || strstr(name_table_text(&s->names, i), "clock_gettime");
	assert_true(found);
	elf_symbols_free(s);
}

/* A process of 32 bits has another image at a lower address, another kernel's has another size. */
static void test_identity(void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = 0x7fff00000000;
	struct file_identity identity;
	struct elf_image image;
	uint64_t bytes;

	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	assert_int_equal(vdso_image(&image), 0);
	bytes = ALIGN_UP(image.bytes, page);
	identity = vdso_identity(at, at + bytes);
	assert_true(vdso_is_own(&identity));
	identity = vdso_identity(getauxval(AT_SYSINFO_EHDR), getauxval(AT_SYSINFO_EHDR) + bytes);
	assert_true(vdso_is_own(&identity));
	identity = vdso_identity(0xf7f00000, 0xf7f00000 + bytes);
	assert_false(vdso_is_own(&identity));
	assert_int_equal(identity.bytes, bytes);
	identity = vdso_identity(at, at + bytes + page);
	assert_false(vdso_is_own(&identity));
}

/* Such a module has neither names nor a build-id. */
static void test_other_image(void **state)
{
	const struct file_identity identity = vdso_identity(0xf7f00000, 0xf7f02000);
	uint8_t id[SYMBOLS_BUILD_ID_MAX];
	struct symbol_name name;
	struct symbols *s;
	struct module *m;

	assert_int_equal(symbols_new(1 << 20, NULL, &s), 0);
	assert_int_equal(symbols_module(s, &identity, VDSO_PATH, false, &m), 0);
	for (uint64_t at = 0; at < 0x2000; at += 64) {
		assert_int_equal(symbols_user(s, m, at, false, &name), -ENOENT);
		assert_string_equal(name.reason, "other_image");
	}
	assert_int_equal(symbols_build_id(s, m, id), 0);
	symbols_free(s);
}

UNIT_TESTS(vdso)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_other_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
