/* SPDX-License-Identifier: BSD-2-Clause */
/* elf.c: any bytes as an ELF file; what is named lies within its symbol and ends with a NUL. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/elf/elf_call.h"
#include "shared/elf/elf_digest.h"
#include "shared/elf/elf_object.h"
#include "shared/elf/elf_symbols.h"
#include "shared/tools/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The file is its own debug file, for any reference in it. */
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

/* Addresses at the ends of each segment, and of nothing: what is named lies in its variable. */
static void check_objects(const struct elf_image *image)
{
	_cleanup_(elf_reader_done) struct elf_reader e = { 0 };
	struct elf_object objects[2 * ELF_SEGMENTS_MAX + 1] = { { .address = 1 } };
	struct elf_object_file file;
	uint64_t offset = 0, code = 0;
	size_t n = 1;

	if (elf_reader_open(image, &e) < 0)
		return;
	for (size_t i = 0; i < e.segment_count; i++)
		if (e.segments[i].p_flags & PF_X)
			offset = e.segments[i].p_offset;
	elf_reader_address(&e, offset, &code);
	for (size_t i = 0; i < e.segment_count; i++) {
		objects[n++].address = e.segments[i].p_vaddr;
		objects[n++].address = e.segments[i].p_vaddr + e.segments[i].p_memsz - 1;
	}
	for (size_t i = 0; i < n; i++) {
		objects[i].code_offset = offset;
		objects[i].code_address = code;
	}
	if (elf_object_find(image, objects, n, &file) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		assert(strlen(objects[i].name) < ELF_OBJECT_NAME_BYTES);
		assert(!objects[i].name[0] ||
		       (objects[i].within && objects[i].offset < objects[i].bytes));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };
	const struct elf_finder finder = { .open = find, .context = &image };
	const struct elf_symbols_options agent = { .finder = &finder };
	const struct elf_symbols_options split = { .split = true };
	struct build_id id = { 0 };
	uint64_t digest, again;
	struct elf_symbols *s;

	check_objects(&image);
	for (enum elf_digest_of of = ELF_DIGEST_NAMES; of <= ELF_DIGEST_ROWS; of++)
		if (elf_digest_read(&image, of, &digest) == 0)
			assert(elf_digest_read(&image, of, &again) == 0 && digest == again);
	elf_call_ends_at(&image, bytes / 2);
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
