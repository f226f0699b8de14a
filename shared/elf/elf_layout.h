/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_layout.h: finds where the segments of a debug file lay in the file that it was split off.
 * objcopy(1) empties the segments and moves them; eu-strip(1) leaves their headers as they were.
 */
#ifndef TROCAR_SHARED_ELF_ELF_LAYOUT_H
#define TROCAR_SHARED_ELF_ELF_LAYOUT_H

#include "shared/elf/elf_reader.h"

/*
 * Sets offset and length of the loaded segments of `e`, an open debug file, to those in the file
 * that ran. They are counted as linkers lay segments down: each at the next offset that agrees with
 * its address in the page. Behind writable data that is not all in the file the offsets cannot be
 * counted: what lies there is emptied. 0; -ENODATA: no executable segment has a known offset, and
 * `e` is of no more use.
 */
int elf_layout_restore(struct elf_reader *e);

#endif
