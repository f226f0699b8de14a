/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_rows.h: has the kernel side learn where the kernel's own unwind tables are
 * (bpf/stack/orc.h). */
#ifndef TROCAR_LOADER_KERNEL_ROWS_H
#define TROCAR_LOADER_KERNEL_ROWS_H

#include <stdbool.h>

struct bpf_program;

/*
 * Reads the kernel's symbols once, in the kernel, and takes the tables of the modules that are
 * loaded. `symbols` and `learn` are the programs orc_symbols and orc_learn, loaded. Returns false
 * where the kernel has no such tables, or hides them: it is then asked for each of its stacks. Some
 * 20 ms.
 */
bool kernel_rows_learn(const struct bpf_program *symbols, const struct bpf_program *learn);

#endif
