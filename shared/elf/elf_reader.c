/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

void elf_reader_done(struct elf_reader *e)
{
	free(e->segments);
	free(e->sections);
	free(e->names);
	*e = (struct elf_reader){ 0 };
}

int elf_reader_at(const struct elf_image *image, uint64_t offset, void *to, size_t bytes)
{
	if (offset > image->bytes || bytes > image->bytes - offset)
		return -EBADMSG;
	if (image->memory) {
		memcpy(to, image->memory + offset, bytes);
		return 0;
	}
	for (size_t done = 0; done < bytes;) {
		ssize_t n =
			pread(image->fd, (char *)to + done, bytes - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG; /* the file has shrunk since fstat(2) */
		done += (size_t)n;
	}
	return 0;
}

int elf_reader_read(const struct elf_reader *e, uint64_t offset, void *to, size_t bytes)
{
	if (offset > e->head_bytes || bytes > e->head_bytes - offset)
		return elf_reader_at(e->image, offset, to, bytes);
	memcpy(to, e->head + offset, bytes);
	return 0;
}

static void widen_header(const Elf32_Ehdr *from, Elf64_Ehdr *to)
{
	*to = (Elf64_Ehdr){
		.e_type = from->e_type,
		.e_machine = from->e_machine,
		.e_phoff = from->e_phoff,
		.e_shoff = from->e_shoff,
		.e_phentsize = from->e_phentsize,
		.e_phnum = from->e_phnum,
		.e_shentsize = from->e_shentsize,
		.e_shnum = from->e_shnum,
		.e_shstrndx = from->e_shstrndx,
	};
}

static void widen_segment(const Elf32_Phdr *from, Elf64_Phdr *to)
{
	*to = (Elf64_Phdr){
		.p_type = from->p_type,
		.p_flags = from->p_flags,
		.p_offset = from->p_offset,
		.p_vaddr = from->p_vaddr,
		.p_filesz = from->p_filesz,
		.p_memsz = from->p_memsz,
		.p_align = from->p_align,
	};
}

static void widen_section(const Elf32_Shdr *from, Elf64_Shdr *to)
{
	*to = (Elf64_Shdr){
		.sh_name = from->sh_name,
		.sh_type = from->sh_type,
		.sh_flags = from->sh_flags,
		.sh_addr = from->sh_addr,
		.sh_offset = from->sh_offset,
		.sh_size = from->sh_size,
		.sh_link = from->sh_link,
		.sh_addralign = from->sh_addralign,
		.sh_entsize = from->sh_entsize,
	};
}

void elf_reader_widen_symbol(const Elf32_Sym *from, Elf64_Sym *to)
{
	*to = (Elf64_Sym){
		.st_name = from->st_name,
		.st_info = from->st_info,
		.st_shndx = from->st_shndx,
		.st_value = from->st_value,
		.st_size = from->st_size,
	};
}

static int read_header(struct elf_reader *e)
{
	unsigned char ident[EI_NIDENT];
	Elf32_Ehdr narrow;
	int r;

	if (e->image->bytes < sizeof(narrow))
		return -ENOEXEC;
	r = elf_reader_at(e->image, 0, e->head, MIN(e->image->bytes, (uint64_t)ELF_HEAD_BYTES));
	if (r < 0)
		return r;
	e->head_bytes = (size_t)MIN(e->image->bytes, (uint64_t)ELF_HEAD_BYTES);
	memcpy(ident, e->head, sizeof(ident));
	if (memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != NATIVE_DATA)
		return -ENOEXEC;
	e->wide = ident[EI_CLASS] == ELFCLASS64;
	if (e->wide)
		return elf_reader_read(e, 0, &e->header, sizeof(e->header));
	if (ident[EI_CLASS] != ELFCLASS32)
		return -ENOEXEC;
	memcpy(&narrow, e->head, sizeof(narrow));
	widen_header(&narrow, &e->header);
	return 0;
}

/*
 * Reads `count` headers of `size` bytes each, without conversion. -EBADMSG if `stride`, the file's
 * size of a header, is another one.
 */
static int read_headers(const struct elf_reader *e, uint64_t offset, size_t count, size_t size,
			size_t stride, void **ret_headers)
{
	_cleanup_free_ void *headers = NULL;
	int r;

	if (stride != size)
		return -EBADMSG;
	if (offset > e->image->bytes || count > (e->image->bytes - offset) / size)
		return -EBADMSG;
	headers = malloc(MAX(count * size, (size_t)1));
	if (!headers)
		return -ENOMEM;
	r = elf_reader_read(e, offset, headers, count * size);
	if (r < 0)
		return r;
	*ret_headers = TAKE_PTR(headers);
	return 0;
}

static int read_segments(struct elf_reader *e)
{
	size_t count = e->header.e_phnum;
	_cleanup_free_ void *raw = NULL;
	int r;

	if (count == 0)
		return 0;
	if (count > ELF_SEGMENTS_MAX)
		return -EFBIG;
	r = read_headers(e, e->header.e_phoff, count,
			 e->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), e->header.e_phentsize,
			 &raw);
	if (r < 0)
		return r;
	e->segments = calloc(count, sizeof(*e->segments));
	if (!e->segments)
		return -ENOMEM;
	e->segment_count = count;
	for (size_t i = 0; i < count; i++) {
		if (e->wide)
			e->segments[i] = ((const Elf64_Phdr *)raw)[i];
		else
			widen_segment((const Elf32_Phdr *)raw + i, &e->segments[i]);
	}
	return 0;
}

/*
 * Reads the number of sections. A number that does not fit in the header is the sh_size of the
 * first section (gABI).
 */
static int count_sections(struct elf_reader *e, size_t size, size_t *ret_count)
{
	_cleanup_free_ void *raw = NULL;
	uint64_t count;
	int r;

	if (e->header.e_shoff == 0 || e->header.e_shnum != 0) {
		*ret_count = e->header.e_shoff ? e->header.e_shnum : 0;
		return 0;
	}
	r = read_headers(e, e->header.e_shoff, 1, size, e->header.e_shentsize, &raw);
	if (r < 0)
		return r;
	count = e->wide ? ((const Elf64_Shdr *)raw)->sh_size : ((const Elf32_Shdr *)raw)->sh_size;
	if (count > ELF_SECTIONS_MAX)
		return -EFBIG;
	*ret_count = (size_t)count;
	return 0;
}

int elf_reader_sections(struct elf_reader *e)
{
	size_t size = e->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), count;
	_cleanup_free_ void *raw = NULL;
	int r;

	r = count_sections(e, size, &count);
	if (r < 0 || count == 0)
		return r;
	r = read_headers(e, e->header.e_shoff, count, size, e->header.e_shentsize, &raw);
	if (r < 0)
		return r;
	if (e->wide) {
		e->sections = TAKE_PTR(raw);
		e->section_count = count;
		return 0;
	}
	e->sections = calloc(count, sizeof(*e->sections));
	if (!e->sections)
		return -ENOMEM;
	e->section_count = count;
	for (size_t i = 0; i < count; i++)
		widen_section((const Elf32_Shdr *)raw + i, &e->sections[i]);
	return 0;
}

/* Reads the names of the sections; without them elf_reader_find finds no section. */
static int read_names(struct elf_reader *e)
{
	size_t index = e->header.e_shstrndx;
	const Elf64_Shdr *s;

	if (index == SHN_XINDEX && e->section_count > 0)
		index = e->sections[0].sh_link;
	if (e->names || index >= e->section_count)
		return 0;
	s = &e->sections[index];
	if (s->sh_type != SHT_STRTAB || s->sh_size > ELF_NAMES_MAX)
		return 0;
	e->names = malloc((size_t)s->sh_size + 1);
	if (!e->names)
		return -ENOMEM;
	e->names_bytes = (size_t)s->sh_size;
	e->names[e->names_bytes] = '\0';
	return elf_reader_at(e->image, s->sh_offset, e->names, e->names_bytes);
}

int elf_reader_find(struct elf_reader *e, const char *name, const Elf64_Shdr **ret_section)
{
	int r;

	r = read_names(e);
	if (r < 0)
		return r;
	for (size_t i = 0; e->names && i < e->section_count; i++) {
		const Elf64_Shdr *s = &e->sections[i];

		if (s->sh_name < e->names_bytes && strcmp(e->names + s->sh_name, name) == 0) {
			*ret_section = s;
			return 0;
		}
	}
	return -ENOENT;
}

int elf_reader_content(const struct elf_reader *e, const Elf64_Shdr *s, size_t max,
		       uint8_t **ret_data)
{
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (s->sh_type == SHT_NOBITS || (s->sh_flags & SHF_COMPRESSED))
		return -EBADMSG;
	if (s->sh_size > max)
		return -EFBIG;
	if (s->sh_offset > e->image->bytes || s->sh_size > e->image->bytes - s->sh_offset)
		return -EBADMSG;
	data = malloc((size_t)s->sh_size + 1);
	if (!data)
		return -ENOMEM;
	r = elf_reader_at(e->image, s->sh_offset, data, (size_t)s->sh_size);
	if (r < 0)
		return r;
	data[s->sh_size] = 0;
	*ret_data = TAKE_PTR(data);
	return 0;
}

const Elf64_Phdr *elf_reader_code(const struct elf_reader *e, uint64_t address)
{
	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz)
			return p;
	}
	return NULL;
}

bool elf_reader_address(const struct elf_reader *e, uint64_t offset, uint64_t *ret_address)
{
	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || offset < p->p_offset ||
		    offset - p->p_offset >= p->p_filesz)
			continue;
		*ret_address = p->p_vaddr + (offset - p->p_offset);
		return true;
	}
	return false;
}

uint64_t elf_reader_base(const struct elf_reader *e)
{
	for (size_t i = 0; i < e->segment_count; i++)
		if (e->segments[i].p_type == PT_LOAD)
			return e->segments[i].p_vaddr;
	return 0;
}

int elf_reader_open(const struct elf_image *image, struct elf_reader *e)
{
	int r;

	*e = (struct elf_reader){ .image = image };
	r = read_header(e);
	if (r < 0)
		return r;
	return read_segments(e);
}
