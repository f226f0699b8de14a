/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_unix.h: the members of unix sockets and of their openers that are read, beside kernel.h.
 * Only by BPF_CORE_READ.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_UNIX_H
#define TROCAR_BPF_KERNEL_KERNEL_UNIX_H

#include "bpf/kernel/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct upid {
	int nr;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct pid {
	struct hlist_head tasks[4]; /* by PIDTYPE_ */
	struct upid numbers[1];	    /* the first is that of the machine */
};

struct task_struct___pids {
	struct hlist_node pid_links[4]; /* by PIDTYPE_ */
};

struct refcount_struct {
	atomic_t refs;
};

struct sock___unix {
	struct refcount_struct sk_wmem_alloc; /* bytes that were sent and are not read, and more */
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
};

struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};

struct unix_address {
	int len; /* of the name */
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

#pragma clang attribute pop

#endif
