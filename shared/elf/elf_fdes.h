/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_fdes.h: finds the begins and ends of the functions of a file by its call frame information,
 * also in a stripped file. Source: the sorted table of .eh_frame_hdr (LSB Core 5.0 section 10.6.2),
 * in the encoding that every linker uses for it; a table in another encoding is ignored.
 */
#ifndef TROCAR_SHARED_ELF_ELF_FDES_H
#define TROCAR_SHARED_ELF_ELF_FDES_H

#include <stddef.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"

#define ELF_FDES_MAX 4000000u /* rows of the table, 8 bytes each */

struct elf_fdes {
	int32_t *rows; /* owned; per FDE its first code address and its own address, both from
			  `base` on */
	size_t count;
	uint64_t base;
};

/*
 * Reads the table of an opened file. 0; -ENODATA: no usable table; -EBADMSG; -EFBIG (ELF_FDES_MAX);
 * -ENOMEM; -errno of pread(2). Release with elf_fdes_done.
 */
int elf_fdes_read(const struct elf_reader *e, struct elf_fdes *ret_fdes);
void elf_fdes_done(struct elf_fdes *f);

/*
 * Returns the end of the FDE that covers `address`; 0 when there is none, or its length is unknown.
 */
uint64_t elf_fdes_end(const struct elf_fdes *f, const struct elf_reader *e, uint64_t address);

/* Returns the first address above `address` at which an FDE begins, or 0. */
uint64_t elf_fdes_next(const struct elf_fdes *f, uint64_t address);

#endif
