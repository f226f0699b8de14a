/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_go.h: reads function names from the table that every Go program, stripped or not, carries for
 * its own stack traces (.gopclntab). Source: Go's debug/gosym/pclntab.go and runtime/symtab.go; the
 * layouts of Go 1.2, 1.16, 1.18, 1.20 and 1.26 on. 64-bit programs.
 */
#ifndef TROCAR_SHARED_ELF_ELF_GO_H
#define TROCAR_SHARED_ELF_ELF_GO_H

#include "shared/elf/elf_gather.h"

/*
 * Adds Go's functions to `g`. Returns 0, also for a program that is not Go; -ENODATA: the addresses
 * of the functions are not known; errors of elf_symbols_read.
 */
int elf_go_read(struct elf_gather *g);

#endif
