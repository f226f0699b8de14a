/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_types.h: the kernel's types that the programs name, in a small BTF of their own. libbpf
 * goes through all types of the kernel's BTF, 120,000 of them, for each of the 90 structs that the
 * programs read (bpf_core_add_cands in libbpf.c); that took a quarter of a load. Here they are gone
 * through once.
 */
#ifndef TROCAR_LOADER_KERNEL_TYPES_H
#define TROCAR_LOADER_KERNEL_TYPES_H

#include <stddef.h>

struct btf;

/* Large enough for the path that kernel_types_open sets. */
#define KERNEL_TYPES_PATH_BYTES 32

/*
 * Opens an empty file in memory for the types. Returns its descriptor, the caller's to close, and
 * sets the path under which libbpf reads the file while the descriptor is open (btf_custom_path in
 * libbpf.h; it does so when it loads). -errno of memfd_create(2).
 */
int kernel_types_open(char ret_path[static KERNEL_TYPES_PATH_BYTES]);

/*
 * Copies from `kernel` each struct, union and enum with a name that `programs` has too
 * ("task_struct" for its "task_struct___lock"), with all members and the types in them; what a
 * pointer points to is left out. The copies have other numbers than the kernel's. -ENOMEM; -E2BIG:
 * types lie in types deeper than in any kernel; -errno of write(2).
 */
int kernel_types_fill(int fd, const struct btf *kernel, const struct btf *programs);

#endif
