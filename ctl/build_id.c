/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/build_id.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shared/cleanup.h"
#include "shared/macro.h"

#define CHUNK_HEADERS 128

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_ORDER ELFDATA2LSB
#else
#define OWN_ORDER ELFDATA2MSB
#endif

struct reading {
	int fd;
	bool wide;
	Elf64_Ehdr header;
	unsigned int notes;
	bool sections_with_code, sections_without; /* executable sections that are there, or not */
	struct build_id id;
};

static int read_at(int fd, uint64_t at, void *data, size_t bytes)
{
	ssize_t n;

	if (at > INT64_MAX - bytes)
		return -EBADMSG;
	do
		n = pread(fd, data, bytes, (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EBADMSG;
}

static int read_header(struct reading *in)
{
	Elf64_Ehdr *h = &in->header;
	Elf32_Ehdr narrow;
	int r = read_at(in->fd, 0, h, sizeof(narrow));

	if (r < 0)
		return r == -EBADMSG ? -ENOEXEC : r;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_DATA] != OWN_ORDER ||
	    (h->e_ident[EI_CLASS] != ELFCLASS64 && h->e_ident[EI_CLASS] != ELFCLASS32))
		return -ENOEXEC;
	in->wide = h->e_ident[EI_CLASS] == ELFCLASS64;
	if (in->wide)
		return read_at(in->fd, 0, h, sizeof(*h));
	memcpy(&narrow, h, sizeof(narrow));
	*h = (Elf64_Ehdr){
		.e_phoff = narrow.e_phoff,
		.e_shoff = narrow.e_shoff,
		.e_phentsize = narrow.e_phentsize,
		.e_phnum = narrow.e_phnum,
		.e_shentsize = narrow.e_shentsize,
		.e_shnum = narrow.e_shnum,
	};
	return 0;
}

/* One note of `left` bytes; how many it takes with its padding, 0 at the end. */
static size_t take_note(struct reading *in, const uint8_t *at, size_t left)
{
	size_t name, text;
	Elf64_Nhdr note; /* the same in both classes */

	if (left < sizeof(note))
		return 0;
	memcpy(&note, at, sizeof(note));
	name = ALIGN_UP((size_t)note.n_namesz, 4);
	text = ALIGN_UP((size_t)note.n_descsz, 4);
	left -= sizeof(note);
	if (name > left || text > left - name)
		return 0;
	if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
	    !memcmp(at + sizeof(note), "GNU", 4) && note.n_descsz > 0 &&
	    note.n_descsz <= BUILD_ID_BYTES_MAX) {
		in->id.n = (uint8_t)note.n_descsz;
		memcpy(in->id.bytes, at + sizeof(note) + name, note.n_descsz);
		return 0;
	}
	return sizeof(note) + name + text;
}

static int take_notes(struct reading *in, uint64_t at, uint64_t bytes)
{
	_cleanup_free_ uint8_t *data = NULL;
	size_t from = 0, step;
	int r;

	if (in->id.n || !bytes)
		return 0;
	if (bytes > BUILD_ID_NOTE_MAX || in->notes++ == BUILD_ID_NOTES_MAX)
		return -EBADMSG;
	data = malloc((size_t)bytes);
	if (!data)
		return -ENOMEM;
	r = read_at(in->fd, at, data, (size_t)bytes);
	if (r < 0)
		return r;
	while ((step = take_note(in, data + from, (size_t)bytes - from)) > 0)
		from += step;
	return 0;
}

static void take_section_header(const struct reading *in, const void *data, Elf64_Shdr *ret)
{
	Elf32_Shdr narrow;

	if (in->wide) {
		memcpy(ret, data, sizeof(*ret));
		return;
	}
	memcpy(&narrow, data, sizeof(narrow));
	*ret = (Elf64_Shdr){
		.sh_type = narrow.sh_type,
		.sh_flags = narrow.sh_flags,
		.sh_offset = narrow.sh_offset,
		.sh_size = narrow.sh_size,
	};
}

static int take_section(struct reading *in, const void *data)
{
	Elf64_Shdr s;

	take_section_header(in, data, &s);
	if (s.sh_flags & SHF_EXECINSTR && s.sh_flags & SHF_ALLOC) {
		in->sections_with_code |= s.sh_type != SHT_NOBITS;
		in->sections_without |= s.sh_type == SHT_NOBITS;
	}
	/* A broken one may stand beside the good one: what eu-strip(1) leaves has both. */
	if (s.sh_type == SHT_NOTE && s.sh_size <= BUILD_ID_NOTE_MAX)
		return take_notes(in, s.sh_offset, s.sh_size);
	return 0;
}

/* Files with 65280 sections or more have the number in the first one (gABI, e_shnum). */
static int count_sections(struct reading *in, size_t size, uint64_t *ret_count)
{
	Elf64_Shdr first, raw;
	int r;

	*ret_count = in->header.e_shnum;
	if (in->header.e_shnum || !in->header.e_shoff)
		return 0;
	r = read_at(in->fd, in->header.e_shoff, &raw, size);
	if (r < 0)
		return r;
	take_section_header(in, &raw, &first);
	*ret_count = first.sh_size;
	return 0;
}

/* Before the segments: in a file of debug information those may speak of the file it is from. */
static int take_sections(struct reading *in)
{
	size_t size = in->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	uint8_t chunk[CHUNK_HEADERS * sizeof(Elf64_Shdr)];
	uint64_t count = 0;
	int r = count_sections(in, size, &count);

	if (r < 0)
		return r;
	if (count > BUILD_ID_SECTIONS_MAX || (count && in->header.e_shentsize != size))
		return -EBADMSG;
	for (uint64_t i = 0; i < count; i += CHUNK_HEADERS) {
		size_t n = (size_t)MIN(count - i, (uint64_t)CHUNK_HEADERS);

		r = read_at(in->fd, in->header.e_shoff + i * size, chunk, n * size);
		for (size_t j = 0; r == 0 && j < n; j++)
			r = take_section(in, chunk + j * size);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_segments(struct reading *in)
{
	size_t size = in->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	int r = 0;

	if (in->header.e_phnum > BUILD_ID_SEGMENTS_MAX ||
	    (in->header.e_phnum && in->header.e_phentsize != size))
		return -EBADMSG;
	for (size_t i = 0; r == 0 && i < in->header.e_phnum; i++) {
		Elf64_Phdr p;
		Elf32_Phdr narrow;
		void *room = in->wide ? (void *)&p : (void *)&narrow;

		r = read_at(in->fd, in->header.e_phoff + i * size, room, size);
		if (r == 0 && !in->wide)
			p = (Elf64_Phdr){ .p_type = narrow.p_type,
					  .p_offset = narrow.p_offset,
					  .p_filesz = narrow.p_filesz };
		if (r == 0 && p.p_type == PT_NOTE && p.p_filesz <= BUILD_ID_NOTE_MAX)
			r = take_notes(in, p.p_offset, p.p_filesz);
	}
	return r;
}

int build_id_read(int fd, struct build_id *ret_id)
{
	struct reading in = { .fd = fd };
	int r = read_header(&in);

	if (r == 0)
		r = take_sections(&in);
	if (r == 0 && !in.id.n)
		r = take_segments(&in);
	if (r < 0)
		return r;
	if (!in.id.n)
		return -ENODATA;
	in.id.code = in.sections_with_code || !in.sections_without;
	*ret_id = in.id;
	return 0;
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
