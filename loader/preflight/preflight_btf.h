/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preflight_btf.h: asks the kernel's own BTF whether it has a type or a function. It reads only the
 * file PREFLIGHT_BTF_PATH by libbpf, because btf__load_vmlinux_btf() uses an image below /boot if
 * the kernel itself has no BTF. Source: Documentation/bpf/btf.rst.
 */
#ifndef TROCAR_LOADER_PREFLIGHT_PREFLIGHT_BTF_H
#define TROCAR_LOADER_PREFLIGHT_PREFLIGHT_BTF_H

#include <stdbool.h>
#include <stdint.h>

#define PREFLIGHT_BTF_PATH "/sys/kernel/btf/vmlinux"

struct btf;

/* All 0 before the first question. */
struct preflight_btf {
	struct btf *btf; /* owned; NULL: not read yet, or the kernel has none */
	int error;	 /* why `btf` is NULL, an errno */
};

/*
 * Reads PREFLIGHT_BTF_PATH on the first call. Returns 0; -ENOENT: the kernel has no BTF; else
 * -errno.
 */
int preflight_btf_load(struct preflight_btf *b);
void preflight_btf_done(struct preflight_btf *b);

/* Returns the length of the file; 0 before it is read. */
uint32_t preflight_btf_bytes(const struct preflight_btf *b);

/*
 * Returns the id of the type with the kind `kind` (BTF_KIND_*) and the name `name`. -ENOENT: there
 * is none; errors of preflight_btf_load.
 */
int preflight_btf_find(struct preflight_btf *b, uint32_t kind, const char *name);

/* Returns whether the kernel has a struct `name` with at least one member. */
bool preflight_btf_has_members(struct preflight_btf *b, const char *name);

/*
 * Returns whether `name` is a pointer to a function (btf_trace_NAME: the function that a tracepoint
 * calls) and its argument number `argument`, counted from 0, is a pointer.
 */
bool preflight_btf_takes_pointer(struct preflight_btf *b, const char *name, unsigned int argument);

/* Returns the number of arguments of such a function; 0: there is no function of that name. */
unsigned int preflight_btf_arguments(struct preflight_btf *b, const char *name);

#endif
