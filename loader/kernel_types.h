/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_types.h: copies the kernel types that the programs use into a small BTF. libbpf scans all
 * 120,000 types of the kernel's BTF for each of the 90 structs that the programs read
 * (bpf_core_add_cands in libbpf.c), which took a quarter of a load. This file scans them once.
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
 * libbpf.h; libbpf reads it during the load). -errno of memfd_create(2).
 */
int kernel_types_open(char ret_path[static KERNEL_TYPES_PATH_BYTES]);

/*
 * Copies from `kernel` each struct, union and enum with a name that `programs` has too
 * ("task_struct" for its "task_struct___lock"), with all members and the types in them; targets of
 * pointers are left out. The type ids of the copies differ from the kernel's. -ENOMEM; -E2BIG:
 * types are nested deeper than in any kernel; -errno of write(2).
 */
int kernel_types_fill(int fd, const struct btf *kernel, const struct btf *programs);

#endif
