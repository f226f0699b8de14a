/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_section.h: finds and reads a file's call frame information: the part that PT_GNU_EH_FRAME
 * points at (needs no section headers: LSB Core 5.0 section 10.6.2), else the section .eh_frame;
 * and .debug_frame, which has all functions of a Go program, and in a C program those of objects
 * compiled without .eh_frame. It reads by pread(2) up to the end of the entries and never maps the
 * file, for the reasons in elf_symbols.h.
 */
#ifndef TROCAR_CONSUMER_UNWIND_CFI_CFI_SECTION_H
#define TROCAR_CONSUMER_UNWIND_CFI_CFI_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"

#define CFI_SECTION_MAX (32u << 20) /* bytes of call frame information of one file */
#define CFI_ENTRY_MAX	(1u << 20)  /* of one entry: no function needs a longer one */

struct cfi_section {
	uint8_t *data; /* owned */
	size_t bytes;  /* whole entries, without the terminator */
	uint64_t address;
	bool debug; /* .debug_frame: other ids, and offsets from the section's start */
};

/*
 * Reads .eh_frame of `e`, and its section headers if needed. Returns 0; -ENODATA (the file has
 * none, or an empty one); -EBADMSG (an entry extends beyond it, or beyond CFI_ENTRY_MAX); -EFBIG
 * beyond CFI_SECTION_MAX; -ENOMEM; -errno of pread(2). Release with cfi_section_done.
 */
int cfi_section_read(struct elf_reader *e, struct cfi_section *ret_section);

/*
 * Reads .debug_frame of `e`, or .zdebug_frame. Results as cfi_section_read; also the errors of
 * cfi_inflate if it is compressed.
 */
int cfi_section_read_debug(struct elf_reader *e, struct cfi_section *ret_section);
void cfi_section_done(struct cfi_section *s);

#endif
