/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_file_testing.h: writes call frame information by hand and wraps it into the smallest ELF file
 * that has text and a way to find it. The text's bytes are not there: they are not read.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_CFI_FILE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_CFI_FILE_TESTING_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/elf/elf_symbols.h"

#define WRAP_TEXT	0x10000000u /* address of the text */
#define WRAP_TEXT_BYTES 0x100000u   /* of it */
#define WRAP_DATA	0x10000u    /* address of the segment that holds the file */
#define WRAP_HEADER	0x1f0u	    /* offset of .eh_frame_hdr */
#define WRAP_FRAMES	0x200u	    /* offset of the frames */
#define WRAP_NAMES	"\0.debug_frame\0.eh_frame\0.zdebug_frame"

enum wrap_way {
	WRAP_BY_HEADER = 0, /* PT_GNU_EH_FRAME, no section headers */
	WRAP_DEBUG = 1,	    /* section .debug_frame alone */
	WRAP_BY_NAME = 2,   /* section .eh_frame alone */
	WRAP_WAYS,
};

/* The section header of a wrapped file's frames, to be changed. */
static inline Elf64_Shdr *wrapped_section(const struct elf_image *image)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)image->memory;

	return (Elf64_Shdr *)(image->memory + e->e_shoff) + 1;
}

/* Section headers behind the frames: none, the frames, the names. */
static inline void wrap_sections(uint8_t *file, Elf64_Ehdr *e, size_t bytes, enum wrap_way way)
{
	size_t names = (WRAP_FRAMES + bytes + 7) & ~(size_t)7, at = names + 64;
	Elf64_Shdr s[3] = {
		[1] = { .sh_name = way == WRAP_DEBUG ? 1 : 14,
			.sh_type = SHT_PROGBITS,
			.sh_addr = way == WRAP_DEBUG ? 0 : WRAP_DATA + WRAP_FRAMES,
			.sh_offset = WRAP_FRAMES,
			.sh_size = bytes },
		[2] = { .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = sizeof(WRAP_NAMES) },
	};

	memcpy(file + names, WRAP_NAMES, sizeof(WRAP_NAMES));
	memcpy(file + at, s, sizeof(s));
	e->e_shoff = at;
	e->e_shentsize = sizeof(*s);
	e->e_shnum = 3;
	e->e_shstrndx = 2;
}

/* An image in memory of `bytes` bytes of frames; the caller's to free (image.memory). */
static inline struct elf_image wrap(const void *frames, size_t bytes, enum wrap_way way)
{
	size_t size = ((WRAP_FRAMES + bytes + 7) & ~(size_t)7) + 64 + 3 * sizeof(Elf64_Shdr);
	uint8_t *file = calloc(1, size);
	Elf64_Ehdr e = { .e_ident = ELFMAG,
			 .e_machine = EM_X86_64,
			 .e_type = ET_DYN,
			 .e_phoff = sizeof(e),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 3 };
	Elf64_Phdr p[3] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_vaddr = WRAP_TEXT,
		  .p_filesz = WRAP_TEXT_BYTES },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R,
		  .p_vaddr = WRAP_DATA,
		  .p_filesz = WRAP_FRAMES + bytes },
		{ .p_type = way == WRAP_BY_HEADER ? PT_GNU_EH_FRAME : PT_NULL,
		  .p_offset = WRAP_HEADER,
		  .p_vaddr = WRAP_DATA + WRAP_HEADER,
		  .p_filesz = 12 },
	};
	/* Version; encodings of the pointer (relative, 4 bytes), of count and table (none). */
	static const uint8_t header[] = { 1, 0x1b, 0xff, 0xff, 0x0c, 0, 0, 0 };

	if (!file)
		abort();
	e.e_ident[EI_CLASS] = ELFCLASS64;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	e.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(file + sizeof(e), p, sizeof(p));
	memcpy(file + WRAP_HEADER, header, sizeof(header));
	if (bytes > 0)
		memcpy(file + WRAP_FRAMES, frames, bytes);
	if (way != WRAP_BY_HEADER)
		wrap_sections(file, &e, bytes, way);
	memcpy(file, &e, sizeof(e));
	return (struct elf_image){ .fd = -1, .memory = file, .bytes = size };
}

/* Frames while they are written. */
struct frames {
	uint8_t data[1u << 16];
	size_t bytes;
	size_t cie; /* where the last CIE is */
};

static inline void frames_put(struct frames *f, uint64_t word, size_t bytes)
{
	if (f->bytes + bytes > sizeof(f->data))
		abort();
	memcpy(f->data + f->bytes, &word, bytes);
	f->bytes += bytes;
}

static inline void frames_bytes(struct frames *f, const void *bytes, size_t count)
{
	if (f->bytes + count > sizeof(f->data))
		abort();
	memcpy(f->data + f->bytes, bytes, count);
	f->bytes += count;
}

/* Fills in the length of the entry that began at `at`. */
static inline void frames_end(struct frames *f, size_t at)
{
	uint32_t length = (uint32_t)(f->bytes - at - 4);

	memcpy(f->data + at, &length, 4);
}

/* "zR" with 4-byte relative pointers, or "zRS"; CFA = rsp + 8, return address at CFA - 8. */
static inline void frames_cie(struct frames *f, bool signal)
{
	static const uint8_t program[] = { 0x0c, 7, 8, 0x90, 1 };
	size_t at = f->bytes;

	f->cie = at;
	frames_put(f, 0, 4);
	frames_put(f, 0, 4);
	frames_put(f, 1, 1);
	frames_bytes(f, signal ? "zRS" : "zR", signal ? 4 : 3);
	frames_put(f, 1, 1);	/* code alignment */
	frames_put(f, 0x78, 1); /* data alignment: -8 */
	frames_put(f, 16, 1);	/* return address */
	frames_put(f, 1, 1);
	frames_put(f, 0x1b, 1);
	frames_bytes(f, program, sizeof(program));
	frames_end(f, at);
}

/* An FDE of the last CIE for `bytes` bytes of text from `start` on. */
static inline void frames_fde(struct frames *f, uint64_t start, uint32_t bytes,
			      const uint8_t *program, size_t count)
{
	size_t at = f->bytes;

	frames_put(f, 0, 4);
	frames_put(f, f->bytes - f->cie, 4);
	frames_put(f, (uint32_t)(start - (WRAP_DATA + WRAP_FRAMES + f->bytes)), 4);
	frames_put(f, bytes, 4);
	frames_put(f, 0, 1);
	frames_bytes(f, program, count);
	frames_end(f, at);
}

#define FRAMES_FDE(f, start, bytes, ...)                                 \
	frames_fde(f, start, bytes, (const uint8_t[]){ 0, __VA_ARGS__ }, \
		   sizeof((const uint8_t[]){ 0, __VA_ARGS__ }))

#endif
