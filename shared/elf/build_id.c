/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/build_id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* A search in the parts of a file that contain notes. */
struct search {
	const struct elf_reader *file;
	uint8_t *notes;	    /* owned; content of the current part */
	unsigned int parts; /* searched so far */
	struct build_id id;
};

/* A part of a file with notes: a section or a segment. */
struct part {
	uint64_t offset, bytes, align, address;
	bool may_miss; /* a part outside of the file is skipped */
};

static void search_done(struct search *s)
{
	free(s->notes);
}

/* Searches s->notes for the build-id. If there is none, s->id stays unchanged. */
static void find_note(struct search *s, const struct part *part)
{
	const size_t align = part->align == 8 ? 8 : 4, bytes = (size_t)part->bytes;
	size_t at = 0;

	while (bytes - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note; /* same layout in ELF32 and ELF64 */
		uint64_t name, data, next;

		memcpy(&note, s->notes + at, sizeof(note));
		name = at + sizeof(note);
		data = ALIGN_UP(name + note.n_namesz, align);
		next = ALIGN_UP(data + note.n_descsz, align);
		if (data + note.n_descsz > bytes)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(s->notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 &&
		    note.n_descsz > 0 && note.n_descsz <= BUILD_ID_BYTES_MAX) {
			memcpy(s->id.bytes, s->notes + data, note.n_descsz);
			s->id.n = (uint8_t)note.n_descsz;
			s->id.address = part->address + data;
			return;
		}
		if (next >= bytes)
			return;
		at = next;
	}
}

static int search_part(struct search *s, const struct part *part)
{
	int r;

	if (s->id.n > 0 || part->bytes == 0 || part->bytes > BUILD_ID_NOTE_MAX)
		return 0;
	if (s->parts++ == BUILD_ID_NOTES_MAX)
		return -EBADMSG;
	if (!s->notes)
		s->notes = malloc(BUILD_ID_NOTE_MAX);
	if (!s->notes)
		return -ENOMEM;
	r = elf_reader_read(s->file, part->offset, s->notes, (size_t)part->bytes);
	if (r == -EBADMSG && part->may_miss)
		return 0;
	if (r < 0)
		return r;
	find_note(s, part);
	return 0;
}

static int search_segments(struct search *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->file->segment_count; i++) {
		const Elf64_Phdr *p = &s->file->segments[i];

		if (p->p_type == PT_NOTE)
			r = search_part(s, &(struct part){ .offset = p->p_offset,
							   .bytes = p->p_filesz,
							   .align = p->p_align,
							   .address = p->p_vaddr });
	}
	return r;
}

static int search_sections(struct search *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->file->section_count; i++) {
		const Elf64_Shdr *section = &s->file->sections[i];

		/*
		 * eu-strip(1) leaves broken note sections next to good ones: a section without a
		 * valid build-id, or outside of the file, does not end the search.
		 */
		if (section->sh_type == SHT_NOTE)
			r = search_part(s, &(struct part){ .offset = section->sh_offset,
							   .bytes = section->sh_size,
							   .align = section->sh_addralign,
							   .address = section->sh_addr,
							   .may_miss = true });
	}
	return r;
}

/*
 * Returns whether the file contains instructions. A debug file has its code sections without
 * content (SHT_NOBITS). True also if the file has no code section.
 */
static bool has_code(const struct elf_reader *e)
{
	bool empty = false;

	for (size_t i = 0; i < e->section_count; i++) {
		const Elf64_Shdr *s = &e->sections[i];

		if (!(s->sh_flags & SHF_EXECINSTR) || !(s->sh_flags & SHF_ALLOC))
			continue;
		if (s->sh_type != SHT_NOBITS)
			return true;
		empty = true;
	}
	return !empty;
}

int build_id_find_mapped(const struct elf_reader *e, struct build_id *ret_id)
{
	_cleanup_(search_done) struct search s = { .file = e };
	int r;

	r = search_segments(&s);
	if (r < 0)
		return r;
	*ret_id = s.id;
	return 0;
}

int build_id_read_mapped(const struct elf_image *image, struct build_id *ret_id)
{
	_cleanup_(elf_reader_done) struct elf_reader e = { 0 };
	int r;

	r = elf_reader_open(image, &e);
	if (r < 0)
		return r;
	return build_id_find_mapped(&e, ret_id);
}

int build_id_read(const struct elf_image *image, struct build_id *ret_id)
{
	_cleanup_(elf_reader_done) struct elf_reader e = { 0 };
	_cleanup_(search_done) struct search s = { .file = &e };
	int r;

	r = elf_reader_open(image, &e);
	if (r == 0)
		r = elf_reader_sections(&e);
	if (r == 0)
		r = search_sections(&s);
	if (r == 0)
		r = search_segments(&s);
	if (r < 0)
		return r;
	if (s.id.n == 0)
		return -ENODATA;
	s.id.code = has_code(&e);
	*ret_id = s.id;
	return 0;
}

bool build_id_same(const struct build_id *a, const struct build_id *b)
{
	return a->n > 0 && a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

bool build_id_is(const struct build_id *id, const char *hex, size_t digits)
{
	static const char figures[] = "0123456789abcdef";

	if (digits != 2u * id->n)
		return false;
	for (size_t i = 0; i < id->n; i++)
		if (hex[2 * i] != figures[id->bytes[i] >> 4] ||
		    hex[2 * i + 1] != figures[id->bytes[i] & 15])
			return false;
	return true;
}
