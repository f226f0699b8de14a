/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_plt.h: names the stubs of the procedure linkage table: "write@plt". Each stub jumps through a
 * slot of the global offset table; the relocation of that slot has the name. The stubs are decoded
 * as instructions, so that all layouts of linkers (.plt, .plt.sec, .plt.got, lazy or not) are one
 * case. Supports x86-64 and arm64. Source: psABI of each, chapter "Dynamic Linking".
 */
#ifndef TROCAR_SHARED_ELF_ELF_PLT_H
#define TROCAR_SHARED_ELF_ELF_PLT_H

#include "shared/elf/elf_gather.h"

#define ELF_PLT_BYTES_MAX  (4u << 20)  /* of all stubs of one section */
#define ELF_PLT_SLOTS_MAX  65536       /* relocations that name a function */
#define ELF_PLT_RELOCS_MAX (16u << 20) /* bytes of one relocation section */

/* Adds the stubs to `g`. Returns 0, also without any; errors of elf_symbols_read. */
int elf_plt_read(struct elf_gather *g);

#endif
