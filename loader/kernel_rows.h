/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_rows.h: makes the kernel side find the kernel's own unwind tables (bpf/stack/orc.h). */
#ifndef TROCAR_LOADER_KERNEL_ROWS_H
#define TROCAR_LOADER_KERNEL_ROWS_H

#include <stdbool.h>

struct bpf_program;

/*
 * Reads the kernel's symbols once, in the kernel, and the tables of the loaded modules. `symbols`
 * and `learn` are the loaded programs orc_symbols and orc_learn. Returns false if the kernel has no
 * such tables or hides them: the kernel's own unwinder then walks each kernel stack. Takes about 20
 * ms.
 */
bool kernel_rows_learn(const struct bpf_program *symbols, const struct bpf_program *learn);

#endif
