/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preflight_btf.h: asks the kernel's own BTF whether it has a type or a function. libbpf reads it
 * from the one file PREFLIGHT_BTF_PATH, because btf__load_vmlinux_btf() takes an image below /boot
 * where the kernel itself has no BTF. Source: Documentation/bpf/btf.rst.
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

/*
 * Reads PREFLIGHT_BTF_PATH, the first time. Returns 0; -ENOENT: the kernel has none; else -errno.
 */
int preflight_btf_load(struct preflight_btf *b);
void preflight_btf_done(struct preflight_btf *b);

/* Returns the length of the file; 0 before it is read. */
uint32_t preflight_btf_bytes(const struct preflight_btf *b);

/*
 * Returns the id of the type of that BTF_KIND_* and name. -ENOENT: there is none; errors of
 * preflight_btf_load.
 */
int preflight_btf_find(struct preflight_btf *b, uint32_t kind, const char *name);

/* Returns whether it has a struct of that name with at least one member. */
bool preflight_btf_has_members(struct preflight_btf *b, const char *name);

/*
 * Returns whether a pointer to a function is named so (btf_trace_NAME: what a tracepoint calls) and
 * its argument of that number, from 0, is a pointer.
 */
bool preflight_btf_takes_pointer(struct preflight_btf *b, const char *name, unsigned int argument);

/* Returns how many arguments such a function has; 0: there is none of that name. */
unsigned int preflight_btf_arguments(struct preflight_btf *b, const char *name);

#endif
