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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };
	uint8_t id[ELF_BUILD_ID_MAX], id_bytes = 0;
	struct elf_finder finder = { .open = find, .context = &image };
	struct elf_symbols *s;

	if (elf_symbols_build_id(&image, id, &id_bytes) == 0)
		assert(id_bytes <= sizeof(id));
	if (elf_symbols_read(&image, &finder, &s) < 0)
		return 0;
	assert(id_bytes == s->build_id_bytes && memcmp(id, s->build_id, id_bytes) == 0);
	for (size_t i = 0; i < s->names.count; i++) {
		uint64_t start = 0;
		const char *name = elf_symbols_find(s, s->names.keys[i], &start);

		assert(i == 0 || s->names.keys[i - 1] < s->names.keys[i]);
		assert(!name ||
		       (start <= s->names.keys[i] && strlen(name) < NAME_TABLE_TEXT_BYTES));
	}
	elf_symbols_free(s);
	return 0;
}
