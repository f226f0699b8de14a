/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * debug_file.h: finds and opens the separate debug file of a stripped file: by build-id below
 * ROOT/.build-id, or by the name in .gnu_debuglink next to the file, in .debug/ there, and in ROOT
 * followed by the file's folder (GDB's manual, "Separate Debug Files"). Accepts only a regular file
 * of the same build-id; without a build-id, one with the CRC of the link.
 */
#ifndef TROCAR_SHARED_ELF_DEBUG_FILE_H
#define TROCAR_SHARED_ELF_DEBUG_FILE_H

#include "shared/elf/elf_symbols.h"

#define DEBUG_FILE_ROOT "/usr/lib/debug"

/*
 * Longest debug file that is read whole for its CRC. Only a file without a build-id needs the CRC.
 */
#define DEBUG_FILE_CRC_MAX (1u << 30)

/* The stripped file for which a debug file is searched. */
struct debug_file {
	const char *root; /* DEBUG_FILE_ROOT */
	const char *path; /* absolute, of the stripped file on the host; else the search is by
			     build-id only */
};

/* As elf_finder.open; `context` is a struct debug_file. -ENOENT: there is none. */
int debug_file_open(void *context, const struct elf_links *links, struct elf_image *ret_image);

#endif
