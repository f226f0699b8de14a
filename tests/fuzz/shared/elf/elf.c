/* SPDX-License-Identifier: BSD-2-Clause */
/* elf.c: any bytes as an ELF file; what is named lies within its symbol and ends with a NUL. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/elf/elf_symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The file is its own debug file, whatever it says about where that is. */
static int find(void *context, const struct elf_links *links, struct elf_image *ret_image)
{
	assert(!memchr(links->debuglink, '/', strlen(links->debuglink)));
	*ret_image = *(const struct elf_image *)context;
	return 0;
}

/* What was read is sound: names lie within their symbols, in the order of their places. */
static void check_names(const struct elf_symbols *s)
{
	for (size_t i = 0; i < s->names.count; i++) {
		uint64_t start = 0;
		const char *name = elf_symbols_find(s, s->names.keys[i], &start);

		assert(i == 0 || s->names.keys[i - 1] < s->names.keys[i]);
		assert(!name ||
		       (start <= s->names.keys[i] && strlen(name) < NAME_TABLE_TEXT_BYTES));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };
	const struct elf_finder finder = { .open = find, .context = &image };
	const struct elf_symbols_options agent = { .finder = &finder };
	const struct elf_symbols_options split = { .split = true };
	struct build_id id = { 0 };
	struct elf_symbols *s;

	if (build_id_read_mapped(&image, &id) == 0)
		assert(id.n <= sizeof(id.bytes));
	if (elf_symbols_read(&image, &agent, &s) == 0) {
		assert(id.n == s->id.n && memcmp(id.bytes, s->id.bytes, id.n) == 0);
		check_names(s);
		elf_symbols_free(s);
	}
	if (elf_symbols_read(&image, &split, &s) == 0) {
		check_names(s);
		elf_symbols_free(s);
	}
	return 0;
}
