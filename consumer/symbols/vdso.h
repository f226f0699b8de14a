/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vdso.h: finds the vDSO, the kernel's shared code page. Every process of this word size has the
 * same image.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_VDSO_H
#define TROCAR_CONSUMER_SYMBOLS_VDSO_H

#include "shared/elf/elf_symbols.h"

/* Returns this process's vDSO as an image in memory (vdso(7)). 0; -ENOENT without one; -EBADMSG. */
int vdso_image(struct elf_image *ret_image);

#endif
