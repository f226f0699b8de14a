/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_section.h: finds and reads a file's call frame information: what PT_GNU_EH_FRAME points at
 * (needs no section headers: LSB Core 5.0 section 10.6.2), else the section .eh_frame; and
 * .debug_frame, where Go has that of all its functions, and a C program that of objects which were
 * compiled without the first. It reads by pread(2) as far as the entries reach and never maps the
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
 * Reads .eh_frame of `e`, and its section headers if it needs them. 0; -ENODATA (the file has none,
 * or an empty one); -EBADMSG (an entry reaches beyond it, or CFI_ENTRY_MAX); -EFBIG beyond
 * CFI_SECTION_MAX; -ENOMEM; -errno of pread(2). Release with cfi_section_done.
 */
int cfi_section_read(struct elf_reader *e, struct cfi_section *ret_section);

/*
 * Reads .debug_frame of `e`, or .zdebug_frame. Results as cfi_section_read; errors of cfi_inflate
 * where it is compressed.
 */
int cfi_section_read_debug(struct elf_reader *e, struct cfi_section *ret_section);
void cfi_section_done(struct cfi_section *s);

#endif
