/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_call.h: distinguishes return addresses left by a call from return addresses written by other
 * code: the kernel for a signal handler, makecontext(3), a runtime for its fibres. A call is before
 * an address of the first kind; an address of the second kind is the first byte of a function.
 */
#ifndef TROCAR_SHARED_ELF_ELF_CALL_H
#define TROCAR_SHARED_ELF_ELF_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/elf/elf_reader.h"

/*
 * Whether a call instruction may end at a file offset. True also if that is not known: for another
 * machine than x86 and arm64, or bytes that cannot be read. Reads at most 40 bytes.
 */
bool elf_call_ends_at(const struct elf_image *image, uint64_t offset);

#endif
