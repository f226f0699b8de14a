/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_symbols.h: the function names and the build-id of one ELF file, 32 or 64 bits, of this
 * machine's byte order. An own reader instead of libelf: foreign files are hostile, libelf maps
 * them (a file that shrinks under a mapping kills the reader with SIGBUS) or allocates whatever a
 * header claims. Here every byte comes by pread(2) into buffers under the walls below, every count
 * and offset from the file is checked against them and the file's size, and no loop runs longer
 * than they allow. Memory while reading: at most the strings, the kept names and 32 bytes per
 * symbol. Fuzzed (tests/fuzz/shared/elf/elf.c). Sources: elf(5); gABI chapters 4 and 5;
 * include/uapi/linux/elf.h for the notes.
 */
#ifndef TROCAR_SHARED_ELF_SYMBOLS_H
#define TROCAR_SHARED_ELF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "shared/elf/name_table.h"

#define ELF_FILE_MAX	  (1ULL << 30) /* bytes of a file: its offsets fit the tables' 32-bit keys */
#define ELF_STRINGS_MAX	  (64ULL << 20)	       /* bytes of all string tables of a file */
#define ELF_SYMBOLS_MAX	  NAME_TABLE_COUNT_MAX /* entries of all symbol tables, functions or not */
#define ELF_SECTIONS_MAX  65536
#define ELF_SEGMENTS_MAX  256
#define ELF_NOTE_MAX	  (64u << 10) /* bytes of one note segment that are looked through */
#define ELF_BUILD_ID_MAX  64
#define ELF_NAMES_MAX	  (4u << 20) /* bytes of all section names */
#define ELF_DEBUGLINK_MAX 256	     /* bytes of a debug file's name, NUL included */

/* Where the bytes come from: a descriptor, or memory when `memory` is set. Both borrowed. */
struct elf_image {
	int fd;
	const uint8_t *memory;
	uint64_t bytes;
};

/* What a file says about where the symbols are that were split off it. */
struct elf_links {
	uint8_t build_id[ELF_BUILD_ID_MAX];
	uint8_t build_id_bytes;		   /* 0: none */
	char debuglink[ELF_DEBUGLINK_MAX]; /* a name without "/"; "" when there is none */
	uint32_t crc;			   /* of the file that debuglink names */
};

/*
 * Opens the debug file of a stripped one, checked to be of the same build; image.fd is the
 * caller's to close. 0 or -errno. Called for files without .symtab only.
 */
struct elf_finder {
	int (*open)(void *context, const struct elf_links *links, struct elf_image *ret_image);
	void *context;
};

struct elf_symbols {
	struct name_table names; /* keys are file offsets */
	uint8_t build_id[ELF_BUILD_ID_MAX];
	uint8_t build_id_bytes; /* 0: none */
};

/*
 * Reads the GNU build-id alone: three or four small reads. 0 with *ret_bytes 0 when there is none;
 * -ENOEXEC (not ELF, or of another byte order); -EBADMSG (headers that contradict themselves or
 * point beyond the file); -EFBIG; -errno of pread(2).
 */
int elf_symbols_build_id(const struct elf_image *image, uint8_t id[ELF_BUILD_ID_MAX],
			 uint8_t *ret_bytes);

/*
 * Reads functions from all name sources, and the build-id. A file without symbols gives an empty
 * table. `finder` (or NULL) is asked for a debug file. What is broken beyond the headers, .symtab
 * and .dynsym is passed over. Errors as elf_symbols_build_id, and -ENOMEM; -EFBIG when a wall above
 * is exceeded. Release with elf_symbols_free.
 */
int elf_symbols_read(const struct elf_image *image, const struct elf_finder *finder,
		     struct elf_symbols **ret_symbols);
void elf_symbols_free(struct elf_symbols *s);

/* The function that holds file offset `offset`, *ret_start its own offset; NULL when none does. */
const char *elf_symbols_find(const struct elf_symbols *s, uint64_t offset, uint64_t *ret_start);

/* Bytes of heap. */
size_t elf_symbols_bytes(const struct elf_symbols *s);

#endif
