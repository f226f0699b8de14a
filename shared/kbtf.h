/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kbtf.h: just enough of the kernel's own BTF to ask whether it has a type or a function, without
 * libbpf. The text comes from the kernel and is walked under its own lengths all the same.
 * Source: Documentation/bpf/btf.rst.
 */
#ifndef TROCAR_SHARED_KBTF_H
#define TROCAR_SHARED_KBTF_H

#include <stddef.h>
#include <stdint.h>

#define KBTF_PATH      "/sys/kernel/btf/vmlinux"
#define KBTF_BYTES_MAX (64u << 20) /* kernels have 4 to 10 MiB */

struct kbtf {
	char *data; /* owned */
	size_t bytes;
	const char *strings;
	size_t strings_bytes;
	const char *types;
	size_t types_bytes;
};

/* Reads and checks KBTF_PATH; release with kbtf_done. -ENOENT: the kernel has none; -EBADMSG. */
int kbtf_open(struct kbtf *ret_btf);

/* The same over `bytes` bytes of text, which is taken over also on failure. */
int kbtf_take(char *data, size_t bytes, struct kbtf *ret_btf);
void kbtf_done(struct kbtf *btf);

/*
 * Finds the type of that BTF_KIND_* and name. *ret_id is its type id, *ret_members the number of
 * its members (vlen); either may be NULL. 0, -ENOENT, -EBADMSG.
 */
int kbtf_find(const struct kbtf *btf, uint32_t kind, const char *name, uint32_t *ret_id,
	      uint32_t *ret_members);

#endif
