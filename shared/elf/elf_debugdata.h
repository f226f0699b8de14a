/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_debugdata.h: unpacks the symbol table that a stripped file contains, compressed by xz
 * (.gnu_debugdata, "MiniDebugInfo" in GDB's manual).
 */
#ifndef TROCAR_SHARED_ELF_ELF_DEBUGDATA_H
#define TROCAR_SHARED_ELF_ELF_DEBUGDATA_H

#include <stddef.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"

#define ELF_DEBUGDATA_IN_MAX	 (16u << 20) /* bytes of the section */
#define ELF_DEBUGDATA_OUT_MAX	 (32u << 20) /* bytes of the unpacked section */
#define ELF_DEBUGDATA_MEMORY_MAX (20u << 20) /* of the decoder; xz -6 needs 9 MiB */

/*
 * Unpacks the section to an ELF file in memory; the caller frees it. Uses malloc(3) and starts no
 * thread. Returns 0; -EBADMSG (not valid xz); -EFBIG (a bound above); -ENOMEM; errors of
 * elf_reader_content.
 */
int elf_debugdata_read(const struct elf_reader *e, const Elf64_Shdr *s, uint8_t **ret_data,
		       size_t *ret_bytes);

#endif
