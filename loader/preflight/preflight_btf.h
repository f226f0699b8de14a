/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preflight_btf.h: the kernel's own BTF, asked whether it has a type or a function. libbpf reads
 * it; the one file is named, because btf__load_vmlinux_btf() takes an image below /boot where the
 * kernel itself has none. Source: Documentation/bpf/btf.rst.
 */
#ifndef TROCAR_LOADER_PREFLIGHT_PREFLIGHT_BTF_H
#define TROCAR_LOADER_PREFLIGHT_PREFLIGHT_BTF_H

#include <stdbool.h>
#include <stdint.h>

#define PREFLIGHT_BTF_PATH "/sys/kernel/btf/vmlinux"

struct btf;

/* All 0 before the first question. */
struct preflight_btf {
	struct btf *btf; /* owned; NULL: not read yet, or not there */
	int error;	 /* why it is not there, an errno */
};

/* Reads PREFLIGHT_BTF_PATH, the first time. 0; -ENOENT: the kernel has none; else -errno. */
int preflight_btf_load(struct preflight_btf *b);
void preflight_btf_done(struct preflight_btf *b);

/* How long its text is; 0 before it is read. */
uint32_t preflight_btf_bytes(const struct preflight_btf *b);

/* The id of the type of that BTF_KIND_* and name. -ENOENT: there is none; as preflight_btf_load. */
int preflight_btf_find(struct preflight_btf *b, uint32_t kind, const char *name);

/* Has it a struct of that name, and this any member? */
bool preflight_btf_has_members(struct preflight_btf *b, const char *name);

#endif
