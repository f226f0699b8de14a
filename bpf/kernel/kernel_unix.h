/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_unix.h: the members of unix sockets and of the processes that opened them, declared as in
 * kernel.h. Read them with BPF_CORE_READ only.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_UNIX_H
#define TROCAR_BPF_KERNEL_KERNEL_UNIX_H

#include "bpf/kernel/kernel_pid.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct refcount_struct {
	atomic_t refs;
};

struct sock___unix {
	struct refcount_struct sk_wmem_alloc; /* sent bytes that are not read yet, plus overhead */
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
};

struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};

struct unix_address {
	int len; /* length of the name */
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

#pragma clang attribute pop

#endif
