/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_end.h: the members that lead from a wait to the process at its other end, declared as in
 * kernel.h. Read them with BPF_CORE_READ only. Sources: include/linux/{fs,sched,nsproxy}.h and
 * fs/fuse/fuse_i.h of Linux 6.1 to 7.2.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_END_H
#define TROCAR_BPF_KERNEL_KERNEL_END_H

#include "bpf/kernel/kernel.h"

/* Bits of file.f_mode. */
#define FMODE_READ  0x1u
#define FMODE_WRITE 0x2u

/* inode.i_rdev of /dev/fuse: character device 10:229. */
#define FUSE_DEVICE (10u << 20 | 229)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common___end {
	unsigned int inum;
};

struct user_namespace {
	int level; /* 0: the initial one */
};

struct net___end {
	struct ns_common___end ns;
	struct user_namespace *user_ns; /* its root may set addresses there */
};

struct nsproxy {
	struct net___end *net_ns;
};

struct task_struct___end {
	struct nsproxy *nsproxy;
	struct list_head children, sibling;
};

struct file___end {
	unsigned int f_mode;
};

struct inode___end {
	__u32 i_rdev;
};

/* With CONFIG_FUSE_FS; of a module, if it was there at the load. Since 7.3 `fc` is not there. */
struct fuse_conn {
	__u32 dev;
};

struct fuse_dev {
	struct fuse_conn *fc;
};

#pragma clang attribute pop

#endif
