/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_rows.h: has the kernel side learn where the kernel's own unwind tables are (bpf/orc.h). */
#ifndef TROCAR_LOADER_KERNEL_ROWS_H
#define TROCAR_LOADER_KERNEL_ROWS_H

#include <stdbool.h>

struct trocar;

/*
 * Reads the kernel's symbols once, in the kernel, and takes the tables of the modules that are
 * loaded. `skeleton` is loaded. Returns false where the kernel has no such tables, or hides them:
 * it is then asked for each of its stacks. Some 20 ms.
 */
bool kernel_rows_learn(const struct trocar *skeleton);

#endif
