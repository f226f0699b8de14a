/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_compile.h: compiles a file's call frame information into rows and rules. The file is
 * untrusted and may be hostile: it is read by pread(2), every count has a limit, and no file costs
 * more than running UNWIND_STEPS_MAX bytes of instructions. Fuzzed (tests/fuzz/unwind/unwind.c),
 * compared with libdw (tests/unit/consumer/unwind/libdw.c).
 */
#ifndef TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_COMPILE_H
#define TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_COMPILE_H

#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"
#include "shared/elf/elf_symbols.h"

#define UNWIND_ENTRIES_MAX (1u << 20)  /* FDEs of one file */
#define UNWIND_STEPS_MAX   (64u << 20) /* bytes of instructions run and CIEs read, for one file */
#define UNWIND_GAP_BYTES   64 /* a narrower gap between functions counts as padding of the first */

/*
 * Compiles `image`, an ELF file of x86-64. 0; -ENODATA (no call frame information, or none for
 * executable text); -ENOEXEC (not ELF, or of another byte order); -ENOTSUP (of another machine);
 * -EBADMSG (headers or entries that point outside); -EPROTONOSUPPORT (compressed by another method
 * than zlib's); -EFBIG (file, CFI_SECTION_MAX); -E2BIG
 * (UNWIND_ENTRIES_MAX); -EOVERFLOW (UNWIND_ROWS_MAX); -ENOSPC (the dictionary,
 * UNWIND_FILE_RULES_MAX); -ETIME (UNWIND_STEPS_MAX); -ENOMEM; -errno of pread(2). On failure
 * `rules` is as before. Release with unwind_table_done.
 */
int unwind_compile(const struct elf_image *image, struct unwind_rules *rules,
		   struct unwind_table *ret_table);

#endif
