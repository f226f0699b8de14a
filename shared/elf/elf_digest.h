/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_digest.h: distinguishes copies of one file from other files with the same build-id. A
 * build-id cannot: linkers have given one id to different programs (mold 872), and --build-id=0x...
 * does so on request. A digest covers the file's size, header, segments and sections, and the parts
 * from which names or rows are made. Files with the same digest differ in nothing that matters.
 */
#ifndef TROCAR_SHARED_ELF_ELF_DIGEST_H
#define TROCAR_SHARED_ELF_ELF_DIGEST_H

#include <stdint.h>

#include "shared/elf/elf_reader.h"

#define ELF_DIGEST_BYTES_MAX (256ULL << 20) /* bytes that are read of one file */

enum elf_digest_of {
	ELF_DIGEST_NAMES, /* symbol tables, strings, relocations, and other sources of names */
	ELF_DIGEST_ROWS,  /* call frame information, and 1 MiB of code */
};

/*
 * Computes the digest. It is valid in this process only: it includes a secret of this process, so
 * that an attacker cannot make a file with the digest of another file. 0; -EFBIG beyond
 * ELF_DIGEST_BYTES_MAX; errors of elf_reader_open and elf_reader_sections.
 */
int elf_digest_read(const struct elf_image *image, enum elf_digest_of of, uint64_t *ret_digest);

#endif
