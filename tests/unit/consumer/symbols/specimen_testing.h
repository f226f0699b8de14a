/* SPDX-License-Identifier: BSD-2-Clause */
/* specimen_testing.h: modules made of the specimens. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_SYMBOLS_SPECIMEN_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_SYMBOLS_SPECIMEN_TESTING_H

#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "consumer/symbols/symbols.h"
#include "shared/elf/elf_symbols.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

static inline struct symbols *fresh(size_t max_bytes)
{
	struct symbols *s;

	assert_int_equal(symbols_new(max_bytes, NULL, &s), 0);
	return s;
}

static inline struct module *module_of(struct symbols *s, const char *path)
{
	struct module *m;
	struct file_identity identity;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	identity = elf_file_identity(&st);
	assert_int_equal(symbols_module(s, &identity, path, false, &m), 0);
	return m;
}

/* File offset and size of a function of the specimen, by the table that elf_symbols_test holds
 * against libelf. */
static inline uint64_t offset_of(const char *path, const char *name, uint32_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	struct elf_image image = { .fd = -1 };
	struct elf_symbols *table;
	uint64_t offset = 0;
	size_t bytes;

	*ret_size = 0;
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 20, &data, &bytes), 0);
	image.memory = (const uint8_t *)data;
	image.bytes = bytes;
	assert_int_equal(elf_symbols_read(&image, NULL, &table), 0);
	for (size_t i = 0; i < table->names.count; i++) {
		if (strcmp(name_table_text(&table->names, i), name) == 0) {
			offset = table->names.keys[i];
			*ret_size = table->names.sizes[i];
		}
	}
	elf_symbols_free(table);
	assert_true(offset > 0);
	return offset;
}

static inline void expect_why(struct symbols *s, struct module *m, const char *why)
{
	struct symbol_name name;

	assert_int_equal(symbols_user(s, m, 64, false, &name), -ENOENT);
	assert_null(name.fn);
	assert_string_equal(name.reason, why);
}

#endif
