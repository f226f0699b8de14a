/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_go.h: function names from the table that every Go program carries for its own stack traces
 * (.gopclntab), stripped or not. Source: Go's debug/gosym/pclntab.go and runtime/symtab.go; the
 * layouts of Go 1.2, 1.16, 1.18 and 1.20 on. 64-bit programs.
 */
#ifndef TROCAR_SHARED_ELF_ELF_GO_H
#define TROCAR_SHARED_ELF_ELF_GO_H

#include "shared/elf/elf_gather.h"

/* Takes Go's functions into `g`. 0, also when it is no Go program; errors as elf_symbols_read. */
int elf_go_read(struct elf_gather *g);

#endif
