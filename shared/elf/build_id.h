/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build_id.h: reads the GNU build-id of an ELF file, by a few small pread(2) calls with the limits
 * below, before any library opens the file. Sources: elf(5); gABI chapters 4 and 5;
 * include/uapi/linux/elf.h for the notes. Fuzzed (tests/fuzz/shared/elf/build_id.c).
 */
#ifndef TROCAR_SHARED_ELF_BUILD_ID_H
#define TROCAR_SHARED_ELF_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"

#define BUILD_ID_BYTES_MAX 64
#define BUILD_ID_BYTES_MIN 8 /* shortest one that identifies a build: less was made by hand */
#define BUILD_ID_NOTE_MAX  (64u << 10) /* searched bytes of one part with notes */
#define BUILD_ID_NOTES_MAX 64	       /* parts with notes */

struct build_id {
	uint8_t bytes[BUILD_ID_BYTES_MAX];
	uint8_t n;	  /* 0: the file has none */
	bool code;	  /* the file has instructions; false: a debug file */
	uint64_t address; /* virtual address of the first byte, by the program headers */
};

/*
 * Searches the note segments, which are mapped with the file. The kernel searches there too
 * (lib/buildid.c). Returns 0, with ret_id->n 0 when there is no build-id; -EBADMSG (a segment
 * beyond the file, or more of them than BUILD_ID_NOTES_MAX); -ENOMEM; -errno of pread(2). Does not
 * set `code`.
 */
int build_id_find_mapped(const struct elf_reader *e, struct build_id *ret_id);

/*
 * As build_id_find_mapped, for a file that is not open yet. Also returns the errors of
 * elf_reader_open.
 */
int build_id_read_mapped(const struct elf_image *image, struct build_id *ret_id);

/*
 * Searches the note sections first, then the note segments: the segments of a debug file may
 * describe the file from which it was split. Skips sections outside of the file. Returns 0 with
 * ret_id->n at least 1; -ENODATA (the file has none); errors of build_id_find_mapped,
 * elf_reader_open and elf_reader_sections. `address` is valid only if there are no note sections.
 */
int build_id_read(const struct elf_image *image, struct build_id *ret_id);

/* Returns whether both are present and have the same bytes. */
bool build_id_same(const struct build_id *a, const struct build_id *b);

/* Returns whether `id` has the bytes of `digits` hex digits of an event line. */
bool build_id_is(const struct build_id *id, const char *hex, size_t digits);

#endif
