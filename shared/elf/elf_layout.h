/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_layout.h: finds the original file offsets of the segments of a debug file, in the file from
 * which it was split. objcopy(1) empties the segments and moves them; eu-strip(1) leaves their
 * headers as they were.
 */
#ifndef TROCAR_SHARED_ELF_ELF_LAYOUT_H
#define TROCAR_SHARED_ELF_ELF_LAYOUT_H

#include "shared/elf/elf_reader.h"

/*
 * Sets offset and length of the loaded segments of `e`, an open debug file, to those in the file
 * that ran. It computes them as linkers place segments: each at the next offset that is equal to
 * its address modulo the page size. After writable data that is not completely in the file, offsets
 * cannot be computed: the segments there are emptied. 0; -ENODATA: no executable segment has a
 * known offset, and `e` is of no use any more.
 */
int elf_layout_restore(struct elf_reader *e);

#endif
