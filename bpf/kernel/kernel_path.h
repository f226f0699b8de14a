/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_path.h: the structures of file names and mounts that the programs read, declared as in
 * kernel.h. Sources: include/linux/{dcache,fs,fs_struct,mount,path}.h and fs/mount.h of Linux 6.1
 * to 7.2.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_PATH_H
#define TROCAR_BPF_KERNEL_KERNEL_PATH_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seqcount {
	unsigned int sequence;
};

struct seqcount_spinlock {
	struct seqcount seqcount;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev; /* NULL: in no list, so a lookup no longer finds the name */
};

struct qstr___path {
	__u32 len;
	const unsigned char *name;
};

struct dentry_operations {
	void *d_dname; /* makes the name of a file that is in no directory */
};

struct dentry___path {
	const struct dentry_operations *d_op;
	struct seqcount_spinlock d_seq; /* odd during a rename */
	struct hlist_bl_node d_hash;
	struct dentry___path *d_parent; /* itself if it has no parent */
	struct qstr___path d_name;
};

struct vfsmount {
	struct dentry___path *mnt_root;
};

struct mnt_namespace;

struct mount {
	struct mount *mnt_parent; /* itself: the root of its namespace, or unmounted */
	struct dentry___path *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns; /* NULL: unmounted; error pointer: kernel-internal */
};

struct path___mount {
	struct vfsmount *mnt;
	struct dentry___path *dentry;
};

struct file___path {
	struct path___mount f_path;
};

struct fs_struct {
	struct path___mount root;
};

struct task_struct___path {
	struct fs_struct *fs;
};

struct file_system_type {
	const char *name;
};

struct super_block___path {
	struct file_system_type *s_type;
};

#pragma clang attribute pop

/* Returns the mount whose member mnt is at this address. */
static __always_inline struct mount *mount_of(__u64 vfsmount)
{
	return (struct mount *)(vfsmount - __builtin_preserve_field_info(((struct mount *)0)->mnt,
									 BPF_FIELD_BYTE_OFFSET));
}

#endif
