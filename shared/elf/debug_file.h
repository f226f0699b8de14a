/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * debug_file.h: the separate debug file of a stripped one: by build-id below ROOT/.build-id, or by
 * the name of .gnu_debuglink beside the file, in .debug/ there, and below ROOT followed by the
 * file's folder (GDB's manual, "Separate Debug Files"). What is opened is a regular file of the
 * same build-id; of one without a build-id the CRC must be the one that the link says.
 */
#ifndef TROCAR_SHARED_ELF_DEBUG_FILE_H
#define TROCAR_SHARED_ELF_DEBUG_FILE_H

#include "shared/elf/elf_symbols.h"

#define DEBUG_FILE_ROOT "/usr/lib/debug"

/* Whose debug file is looked for. */
struct debug_file {
	const char *root; /* DEBUG_FILE_ROOT */
	const char *path; /* of the stripped file, on the host; others are looked for by build-id */
};

/* As elf_finder.open; `context` is a struct debug_file. -ENOENT when there is none. */
int debug_file_open(void *context, const struct elf_links *links, struct elf_image *ret_image);

#endif
