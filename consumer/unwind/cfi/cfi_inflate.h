/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_inflate.h: inflates a compressed section. Go's linker compresses .debug_frame by default, and
 * Go programs have their call frame information nowhere else.
 */
#ifndef TROCAR_CONSUMER_UNWIND_CFI_CFI_INFLATE_H
#define TROCAR_CONSUMER_UNWIND_CFI_CFI_INFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"

#define CFI_INFLATE_MAX (32u << 20) /* bytes of a section, compressed or not */

/*
 * Reads the whole section `s` of `e`, which is compressed by SHF_COMPRESSED (gABI chapter 4), or,
 * with a name .zdebug_*, by its content ("ZLIB" and a length, binutils and Go before 1.19). Returns
 * 0 and *ret_data, which the caller frees; -EFBIG (the section, or the length that it declares,
 * exceeds CFI_INFLATE_MAX); -EPROTONOSUPPORT (compressed by another method than zlib's, such as
 * zstd); -EBADMSG (corrupt, or of another length than declared); -ENOMEM; -errno of pread(2).
 */
int cfi_inflate(const struct elf_reader *e, const Elf64_Shdr *s, uint8_t **ret_data,
		size_t *ret_bytes);

#endif
