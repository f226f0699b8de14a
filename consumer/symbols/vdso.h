/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdso.h: finds the vDSO, the kernel's shared code page. Every process of this word size has the
 * same image. 32-bit processes have another one, of which the agent has no copy.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_VDSO_H
#define TROCAR_CONSUMER_SYMBOLS_VDSO_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/elf/elf_file.h"
#include "shared/elf/elf_symbols.h"

#define VDSO_PATH "[vdso]"

/*
 * Returns this process's vDSO as an image in memory (vdso(7)). Returns 0; -ENOENT without one;
 * -EBADMSG.
 */
int vdso_image(struct elf_image *ret_image);

/*
 * Returns the identity of the image that a process has mapped at [start, end), for a module of path
 * VDSO_PATH. It is all 0 for the image of vdso_image, which is above 4 GiB and has its size;
 * otherwise `bytes` is the size of the mapping.
 */
struct file_identity vdso_identity(uint64_t start, uint64_t end);

/* Returns whether the identity is that of vdso_image. */
static inline bool vdso_is_own(const struct file_identity *identity)
{
	return identity->bytes == 0;
}

#endif
