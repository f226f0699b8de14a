/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_reader.h: reads the headers of one foreign ELF file, 32 or 64 bits, of this machine's byte
 * order. An own reader instead of libelf: foreign files are hostile, libelf maps them (a file that
 * shrinks under a mapping kills the reader with SIGBUS) or allocates whatever a header claims. Here
 * every byte comes by pread(2) into buffers under the walls below, and every count and offset from
 * the file is checked against them and the file's size. Files of 32 bits are widened once, so that
 * the rest knows one form. Sources: elf(5); gABI chapters 4 and 5.
 */
#ifndef TROCAR_SHARED_ELF_ELF_READER_H
#define TROCAR_SHARED_ELF_ELF_READER_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The start of a file, which has its header, its segments and mostly its build-id too. */
#define ELF_HEAD_BYTES 1024u

#define ELF_SECTIONS_MAX 65536
#define ELF_SEGMENTS_MAX 256
#define ELF_NAMES_MAX	 (4u << 20) /* bytes of all section names */

/* Where the bytes come from: a descriptor, or memory when `memory` is set. Both borrowed. */
struct elf_image {
	int fd;
	const uint8_t *memory;
	uint64_t bytes;
};

struct elf_reader {
	const struct elf_image *image;
	uint8_t head[ELF_HEAD_BYTES];
	size_t head_bytes; /* that were read; 0: none */
	bool wide;	   /* ELFCLASS64 */
	Elf64_Ehdr header;
	Elf64_Phdr *segments; /* owned */
	size_t segment_count;
	Elf64_Shdr *sections; /* owned; NULL before elf_reader_sections */
	size_t section_count;
	char *names; /* owned; of the sections, NUL at the end; NULL before elf_reader_find */
	size_t names_bytes;
};

/*
 * Reads header and segments. 0; -ENOEXEC (not ELF, or of another byte order); -EBADMSG (headers
 * that contradict themselves or point beyond the file); -EFBIG (a wall above); -ENOMEM; -errno of
 * pread(2). Release with elf_reader_done, also on failure.
 */
int elf_reader_open(const struct elf_image *image, struct elf_reader *e);
void elf_reader_done(struct elf_reader *e);

/* Reads the section headers; none is no error. 0, -EBADMSG, -EFBIG, -ENOMEM, -errno of pread(2). */
int elf_reader_sections(struct elf_reader *e);

/* The first section of that name. 0; -ENOENT; errors as above. The section is the reader's. */
int elf_reader_find(struct elf_reader *e, const char *name, const Elf64_Shdr **ret_section);

/*
 * Reads a whole section, with a NUL behind it; the caller's to free. 0; -EFBIG beyond `max` bytes;
 * -EBADMSG (nothing of it in the file, or compressed); errors as above.
 */
int elf_reader_content(const struct elf_reader *e, const Elf64_Shdr *s, size_t max,
		       uint8_t **ret_data);

/* The executable segment whose bytes in the file hold the virtual address, or NULL. */
const Elf64_Phdr *elf_reader_code(const struct elf_reader *e, uint64_t address);

/* The virtual address of a file offset; false when it lies in no executable segment. */
bool elf_reader_address(const struct elf_reader *e, uint64_t offset, uint64_t *ret_address);

/* The address of the first loaded segment, 0 without: by what addresses of two files of one build
 * differ. */
uint64_t elf_reader_base(const struct elf_reader *e);

/* Reads exactly `bytes` bytes at `offset`; -EBADMSG when they lie beyond the file. */
int elf_reader_at(const struct elf_image *image, uint64_t offset, void *to, size_t bytes);

/* The same, but what lies in the start of the file, which is in memory already, is not read again.
 */
int elf_reader_read(const struct elf_reader *e, uint64_t offset, void *to, size_t bytes);

void elf_reader_widen_symbol(const Elf32_Sym *from, Elf64_Sym *to);

#endif
