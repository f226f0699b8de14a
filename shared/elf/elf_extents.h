/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_extents.h: finds the ends of functions with symbols without a size. Assemblers leave the size
 * out unless the source has .size. Such a symbol must not reach to the next symbol: a stripped file
 * has none for the static functions between them.
 */
#ifndef TROCAR_SHARED_ELF_ELF_EXTENTS_H
#define TROCAR_SHARED_ELF_ELF_EXTENTS_H

#include "shared/elf/elf_gather.h"

#define ELF_EXTENTS_CODE_MAX \
	(32ULL << 20) /* bytes of code followed in one file, with 1 KiB per symbol */

/*
 * Sets the size of each open entry: up to the end of the FDE that covers it; without such an FDE,
 * up to the next FDE at most. An entry without an FDE also ends where its code ends (x86_flow.h),
 * unless g->local: a whole symbol table has the next function. If none of these ends is known, the
 * size is 0: the symbol has a place, but names no address. Beyond ELF_EXTENTS_CODE_MAX the size is
 * also 0, and g->cut is set. Reads the code of g->file. 0, or -ENOMEM.
 */
int elf_extents_bound(struct elf_gather *g);

#endif
