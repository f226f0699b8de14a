/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_reader.h: reads the headers of one foreign ELF file, 32 or 64 bits, of this machine's byte
 * order. It does not use libelf, because foreign files may be hostile: libelf maps them (a file
 * that shrinks while mapped ends the reader by SIGBUS) or allocates any size that a header claims.
 * Here pread(2) reads every byte into buffers with the limits below, and every count and offset
 * from the file is checked against the limits and the file's size. Headers of 32 bits are widened
 * at once, so that callers see one form. Sources: elf(5); gABI chapters 4 and 5.
 */
#ifndef TROCAR_SHARED_ELF_ELF_READER_H
#define TROCAR_SHARED_ELF_ELF_READER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The start of a file: its header, its segments, and mostly its build-id. */
#define ELF_HEAD_BYTES 1024u

#define ELF_SECTIONS_MAX 65536
#define ELF_SEGMENTS_MAX 256
#define ELF_NAMES_MAX	 (4u << 20) /* bytes of all section names */

/* The bytes of a file: of a descriptor, or in memory when `memory` is set. Both borrowed. */
struct elf_image {
	int fd;
	const uint8_t *memory;
	uint64_t bytes;
};

struct elf_reader {
	const struct elf_image *image;
	uint8_t head[ELF_HEAD_BYTES];
	size_t head_bytes; /* bytes of head that were read; 0: none */
	bool wide;	   /* ELFCLASS64 */
	Elf64_Ehdr header;
	Elf64_Phdr *segments; /* owned */
	size_t segment_count;
	Elf64_Shdr *sections; /* owned; NULL before elf_reader_sections */
	size_t section_count;
	char *names; /* owned; names of the sections, NUL at the end; NULL before elf_reader_find */
	size_t names_bytes;
};

/*
 * Reads header and segments. Returns 0; -ENOEXEC (not ELF, or another byte order); -EBADMSG
 * (headers that contradict themselves or point beyond the file); -EFBIG (above a limit); -ENOMEM;
 * -errno of pread(2). Release with elf_reader_done, also on failure.
 */
int elf_reader_open(const struct elf_image *image, struct elf_reader *e);
void elf_reader_done(struct elf_reader *e);

/*
 * Reads the section headers; a file without any is no error. Returns 0, -EBADMSG, -EFBIG, -ENOMEM,
 * or -errno of pread(2).
 */
int elf_reader_sections(struct elf_reader *e);

/*
 * Finds the first section of that name, which the reader owns. Returns 0; -ENOENT; errors of
 * elf_reader_sections.
 */
int elf_reader_find(struct elf_reader *e, const char *name, const Elf64_Shdr **ret_section);

/*
 * Reads a whole section and adds a NUL; the caller frees it. Returns 0; -EFBIG beyond `max` bytes;
 * -EBADMSG (the file has no bytes of it, or it is compressed); errors of elf_reader_sections.
 */
int elf_reader_content(const struct elf_reader *e, const Elf64_Shdr *s, size_t max,
		       uint8_t **ret_data);

/* Returns the executable segment that has the virtual address within its file bytes, or NULL. */
const Elf64_Phdr *elf_reader_code(const struct elf_reader *e, uint64_t address);

/* Computes the virtual address of a file offset. False when no executable segment contains it. */
bool elf_reader_address(const struct elf_reader *e, uint64_t offset, uint64_t *ret_address);

/*
 * Returns the address of the first loaded segment, 0 without one. Addresses in two files of one
 * build differ by the difference of these.
 */
uint64_t elf_reader_base(const struct elf_reader *e);

/* Reads exactly `bytes` bytes at `offset`. -EBADMSG when they are beyond the end of the file. */
int elf_reader_at(const struct elf_image *image, uint64_t offset, void *to, size_t bytes);

/* As elf_reader_at, but copies the first bytes of the file from memory. */
int elf_reader_read(const struct elf_reader *e, uint64_t offset, void *to, size_t bytes);

void elf_reader_widen_symbol(const Elf32_Sym *from, Elf64_Sym *to);

#endif
