/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/cfi/cfi_section.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/unwind/cfi/cfi_bytes.h"
#include "consumer/unwind/cfi/cfi_inflate.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define CHUNK_BYTES    (128u << 10) /* size of the first read; doubled while entries follow */
#define ENTRY_BYTES    40	    /* typical bytes of an entry; most files have somewhat less */
#define HEADER_BYTES   16	    /* bytes of .eh_frame_hdr that are read */
#define HEADER_VERSION 1

/* Where call frame information begins, and its greatest possible length. */
struct place {
	uint64_t offset, bytes, address;
	uint64_t hint;	 /* estimate of its length, by the file; 0: not known */
	bool open_ended; /* other data may follow it within `bytes` */
};

void cfi_section_done(struct cfi_section *s)
{
	free(s->data);
	*s = (struct cfi_section){ 0 };
}

enum walk {
	WALK_END,  /* at the terminator, or at the end of the space */
	WALK_MORE, /* the next entry reaches beyond the bytes read */
	WALK_BAD,  /* the space is too small for the next entry */
};

/*
 * Walks over complete entries within the first `have` bytes of `room`. *at is where it stopped;
 * with WALK_MORE, *want is how many bytes it needs to continue.
 */
static enum walk walk_entries(const uint8_t *data, size_t have, uint64_t room, size_t *at,
			      uint64_t *want)
{
	for (;;) {
		struct cfi_bytes b = { .at = data + *at, .end = data + have };
		uint64_t length = cfi_bytes_word(&b, 4), head = 4;

		if (length == UINT32_MAX) {
			length = cfi_bytes_word(&b, 8);
			head = 12;
		}
		if (length == 0 && !b.bad)
			return WALK_END;
		*want = *at + (b.bad ? 12 : head + length);
		if (b.bad && have == room)
			return room - *at < 4 ? WALK_END : WALK_BAD;
		if (b.bad && *want > room)
			*want = room;
		if (b.bad)
			return WALK_MORE;
		if (length > CFI_ENTRY_MAX || *want > room)
			return WALK_BAD;
		if (*want > have)
			return WALK_MORE;
		*at = (size_t)*want;
	}
}

static int grow_data(const struct elf_reader *e, const struct place *p, uint8_t **data,
		     size_t *have, size_t to)
{
	uint8_t *more = realloc(*data, to);
	int r;

	if (!more)
		return -ENOMEM;
	*data = more;
	r = elf_reader_at(e->image, p->offset + *have, *data + *have, to - *have);
	if (r < 0)
		return r;
	*have = to;
	return 0;
}

/*
 * Reads increasing parts of the `room` bytes at `p`, until the last entry is read. If only a
 * terminator marks the end and the linker wrote none, any data may follow: the first data that
 * cannot be an entry is the end.
 */
static int read_to_end(const struct elf_reader *e, const struct place *p, uint64_t room,
		       uint8_t **data, size_t *ret_bytes)
{
	size_t have = 0, at = 0;
	uint64_t want = MIN(MAX(p->hint, (uint64_t)CHUNK_BYTES), (uint64_t)CFI_SECTION_MAX), to;
	enum walk ended;
	int r;

	do {
		if (want > CFI_SECTION_MAX)
			return -EFBIG;
		to = MAX(2 * (uint64_t)have, want);
		to = MIN(to, room);
		r = grow_data(e, p, data, &have, (size_t)MIN(to, (uint64_t)CFI_SECTION_MAX));
		if (r < 0)
			return r;
		ended = walk_entries(*data, have, room, &at, &want);
	} while (ended == WALK_MORE);
	if (ended == WALK_BAD && (at == 0 || !p->open_ended))
		return -EBADMSG;
	*ret_bytes = at;
	return 0;
}

static int read_entries(const struct elf_reader *e, const struct place *p, bool debug,
			struct cfi_section *ret_section)
{
	_cleanup_free_ uint8_t *data = NULL;
	uint64_t room;
	size_t bytes;
	int r;

	if (p->offset > e->image->bytes)
		return -EBADMSG;
	room = MIN(p->bytes, e->image->bytes - p->offset);
	if (room < 4)
		return -ENODATA;
	r = read_to_end(e, p, room, &data, &bytes);
	if (r < 0)
		return r;
	if (bytes == 0)
		return -ENODATA;
	*ret_section = (struct cfi_section){
		.data = TAKE_PTR(data),
		.bytes = bytes,
		.address = p->address,
		.debug = debug,
	};
	return 0;
}

/* Finds where virtual address `address` is in the file, and how much of its segment follows. */
static int place_of(const struct elf_reader *e, uint64_t address, struct place *ret_place)
{
	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		uint64_t within = address - p->p_vaddr;

		if (p->p_type != PT_LOAD || address < p->p_vaddr || within >= p->p_filesz)
			continue;
		if (p->p_offset > e->image->bytes || within > e->image->bytes - p->p_offset)
			return -EBADMSG;
		*ret_place = (struct place){ .offset = p->p_offset + within,
					     .bytes = p->p_filesz - within,
					     .address = address,
					     .open_ended = true };
		return 0;
	}
	return -ENODATA;
}

/* Reads where .eh_frame is from the header in the segment PT_GNU_EH_FRAME. */
static int place_by_header(const struct elf_reader *e, struct place *ret_place)
{
	uint8_t header[HEADER_BYTES] = { 0 };

	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		struct cfi_bytes b = { .at = header + 4, .end = header + sizeof(header) };
		uint64_t address;
		int r;

		if (p->p_type != PT_GNU_EH_FRAME)
			continue;
		r = elf_reader_at(e->image, p->p_offset, header,
				  (size_t)MIN(p->p_filesz, (uint64_t)sizeof(header)));
		if (r < 0)
			return r;
		address = cfi_bytes_pointer(&b, header[1], p->p_vaddr + 4);
		if (header[0] != HEADER_VERSION || b.bad)
			return -ENODATA;
		r = place_of(e, address, ret_place);
		if (r == 0 && header[2] == CFI_UDATA4) /* otherwise it has no table */
			ret_place->hint = cfi_bytes_word(&b, 4) * ENTRY_BYTES;
		return r;
	}
	return -ENODATA;
}

static int place_by_name(struct elf_reader *e, const char *name, const Elf64_Shdr **ret_section,
			 struct place *ret_place)
{
	const Elf64_Shdr *s;
	int r;

	r = elf_reader_find(e, name, &s);
	if (r < 0)
		return r == -ENOENT ? -ENODATA : r;
	if (s->sh_type == SHT_NOBITS)
		return -ENODATA;
	*ret_section = s;
	*ret_place = (struct place){ .offset = s->sh_offset,
				     .bytes = s->sh_size,
				     .hint = s->sh_size,
				     .address = s->sh_addr };
	return 0;
}

int cfi_section_read(struct elf_reader *e, struct cfi_section *ret_section)
{
	const Elf64_Shdr *s;
	struct place p;
	int r;

	r = place_by_header(e, &p);
	if (r == 0)
		r = read_entries(e, &p, false, ret_section);
	if (r != -ENODATA)
		return r;
	r = elf_reader_sections(e);
	if (r < 0)
		return r;
	r = place_by_name(e, ".eh_frame", &s, &p);
	if (r == 0 && s->sh_flags & SHF_COMPRESSED)
		return -ENODATA;
	return r < 0 ? r : read_entries(e, &p, false, ret_section);
}

/* Reads the entries of a compressed section. */
static int read_compressed(const struct elf_reader *e, const Elf64_Shdr *s,
			   struct cfi_section *ret_section)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t bytes, at = 0;
	uint64_t want;
	int r;

	r = cfi_inflate(e, s, &data, &bytes);
	if (r < 0)
		return r;
	if (walk_entries(data, bytes, bytes, &at, &want) != WALK_END)
		return -EBADMSG;
	if (at == 0)
		return -ENODATA;
	*ret_section = (struct cfi_section){ .data = TAKE_PTR(data), .bytes = at, .debug = true };
	return 0;
}

int cfi_section_read_debug(struct elf_reader *e, struct cfi_section *ret_section)
{
	const Elf64_Shdr *s;
	struct place p;
	int r;

	r = e->sections ? 0 : elf_reader_sections(e);
	if (r < 0)
		return r;
	r = place_by_name(e, ".debug_frame", &s, &p);
	if (r == 0 && !(s->sh_flags & SHF_COMPRESSED))
		return read_entries(e, &p, true, ret_section);
	if (r == -ENODATA)
		r = place_by_name(e, ".zdebug_frame", &s, &p);
	return r < 0 ? r : read_compressed(e, s, ret_section);
}
