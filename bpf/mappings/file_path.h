/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * file_path.h: builds the path of a mapped file as bpf_d_path would, from its end to its front.
 * Newer verifiers refuse bpf_d_path here: they do not trust the file of a mapping. The walk reads
 * kernel memory as bytes, so it accepts any pointer. RCU, which the iterator holds, keeps names and
 * mounts intact. A path may be a mixture if a part of it is renamed during the walk; the members
 * that identify the file (file_version.h) then show that another file has this path.
 */
#ifndef TROCAR_BPF_MAPPINGS_FILE_PATH_H
#define TROCAR_BPF_MAPPINGS_FILE_PATH_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_path.h"
#include "shared/abi/abi.h"

#define FILE_NAME_BYTES 256	     /* more than NAME_MAX */
#define FILE_PATH_STEPS 600	     /* names of two bytes with their slash, and mounts */
#define FILE_REMOVED	" (deleted)" /* the suffix of fs/d_path.c, here with its NUL */

/* A walk from a file to the root of its mount namespace. In map memory. */
struct file_path {
	__u64 dentry, mount; /* where it is */
	__u32 at;	     /* the path begins here */
	__u32 cut;	     /* 1: a name does not fit, or cannot be read */
	/* The path ends at MAPPING_PATH_BYTES; the rest is room for the verifier, and stays 0. */
	char text[MAPPING_PATH_BYTES + FILE_NAME_BYTES];
};

/* Writes the name of `dentry`, with a slash, in front of the path. Returns false, and sets cut. */
static __always_inline bool file_path_prepend(struct file_path *p,
					      const struct dentry___path *dentry)
{
	__u32 n = BPF_CORE_READ(dentry, d_name.len);
	__u64 at;

	if (n >= FILE_NAME_BYTES || n + 1 > p->at) {
		p->cut = 1;
		return false;
	}
	p->at -= n + 1;
	at = p->at & (MAPPING_PATH_BYTES - 1);
	p->text[at] = '/';
	p->cut = bpf_probe_read_kernel(&p->text[at + 1], n & (FILE_NAME_BYTES - 1),
				       BPF_CORE_READ(dentry, d_name.name)) != 0;
	return !p->cut;
}

/* Moves up by one name or one mount. Callback of bpf_loop: returning 1 ends the loop. */
static long file_path_step(__u32 i, void *context)
{
	struct file_path *p = *(struct file_path **)context;
	const struct dentry___path *dentry = (const void *)p->dentry, *parent;
	struct mount *mount = (void *)p->mount, *above;

	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		above = BPF_CORE_READ(mount, mnt_parent);
		p->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
		p->mount = (__u64)above;
		return above == mount;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	p->dentry = (__u64)parent;
	return parent == dentry || !file_path_prepend(p, dentry);
}

/*
 * Writes the suffix of a file without a name in any directory, and the name of one that never had
 * one, such as a memfd.
 */
static __always_inline void file_path_begin(struct file_path *p, const struct dentry___path *dentry)
{
	const __u32 end = MAPPING_PATH_BYTES - sizeof(FILE_REMOVED);
	bool top = BPF_CORE_READ(dentry, d_parent) == dentry;

	p->cut = 0;
	p->text[MAPPING_PATH_BYTES - 1] = '\0';
	p->at = MAPPING_PATH_BYTES - 1;
	if (top ? !BPF_CORE_READ(dentry, d_op, d_dname) : !!BPF_CORE_READ(dentry, d_hash.pprev))
		return;
	__builtin_memcpy(&p->text[end], FILE_REMOVED, sizeof(FILE_REMOVED));
	p->at = end;
	if (top)
		file_path_prepend(p, dentry);
}

/*
 * Builds the path of `file` in `p`. Returns its bytes with the NUL, at most MAPPING_PATH_BYTES,
 * before &p->text[MAPPING_PATH_BYTES]; 0 if it is longer or cannot be read.
 */
static __always_inline __u32 file_path_build(struct file_path *p, const struct file *pointer)
{
	const struct file___path *file = (const void *)pointer;
	const struct dentry___path *dentry = BPF_CORE_READ(file, f_path.dentry);

	p->dentry = (__u64)dentry;
	p->mount = (__u64)mount_of((__u64)BPF_CORE_READ(file, f_path.mnt));
	file_path_begin(p, dentry);
	if (bpf_loop(FILE_PATH_STEPS, file_path_step, &p, 0) >= FILE_PATH_STEPS || p->cut)
		return 0;
	if (p->at == MAPPING_PATH_BYTES - 1)
		return 0;
	return MAPPING_PATH_BYTES - p->at;
}

#endif
