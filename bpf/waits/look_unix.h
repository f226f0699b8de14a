/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_unix.h: reports the address of a unix socket, or that of the other end, and the process that
 * opened the other end. A socket keeps its peer, and the peer its address, for the lifetime of the
 * connection: it drops the peer before it frees anything. So the values are valid if the socket has
 * the same peer and address afterwards. RCU, which the iterator holds, keeps pids and tasks intact.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_UNIX_H
#define TROCAR_BPF_WAITS_LOOK_UNIX_H

#include "bpf/kernel/kernel_unix.h"
#include "bpf/waits/look_memory.h"
#include "bpf/watch/scope.h"

#define FAMILY_UNIX 1

/* Offset and size of sun_path in struct sockaddr_un (uapi linux/un.h). */
#define SUN_PATH_OFFSET 2
#define SUN_PATH_BYTES	108

_Static_assert(SUN_PATH_BYTES < LOOK_PATH_BYTES, "a path has no room for its NUL");

/*
 * Returns which end of a connection the socket is. An accepted socket has its listener's address;
 * the connecting socket mostly has none.
 */
static __always_inline __u8 look_unix_end(const struct unix_sock *sk)
{
	const struct unix_sock *peer = (const void *)BPF_CORE_READ(sk, peer);

	if (BPF_CORE_READ(sk, addr))
		return LOOK_END_SERVED;
	return peer && BPF_CORE_READ(peer, addr) ? LOOK_END_OPENED : LOOK_END_UNKNOWN;
}

/*
 * Returns whether the other end has not read all sent data: unread data is charged to the sender.
 */
static __always_inline bool look_unix_is_unread(const struct sock *sk)
{
	const struct sock___unix *fields = (const void *)sk;

	return BPF_CORE_READ(fields, sk_wmem_alloc.refs.counter) > 1;
}

/* Reads an address. The first byte of an abstract address, which is 0, becomes '@'. */
static __always_inline void look_read_path(struct look_on *on, const struct unix_address *address)
{
	const char *path = (const char *)address + bpf_core_field_offset(struct unix_address, name);
	__u64 bytes = BPF_CORE_READ(address, len) - SUN_PATH_OFFSET;

	asm volatile("" : "+r"(bytes));
	if (!bytes || bytes > SUN_PATH_BYTES)
		return;
	if (bpf_probe_read_kernel(on->path, bytes, path + SUN_PATH_OFFSET))
		on->path[0] = on->path[1] = 0;
	else if (!on->path[0])
		on->path[0] = '@';
}

/*
 * Reads which process opened the other end: the one that connected, listened, or created the pair.
 */
static __always_inline void look_read_opener(struct look_on *on, const struct sock *sk)
{
	const struct sock___unix *fields = (const void *)sk;
	const struct pid *pid = BPF_CORE_READ(fields, sk_peer_pid);
	const struct hlist_node *node;
	const struct task_struct *task;

	if (!pid)
		return;
	on->peer_pid = BPF_CORE_READ(pid, numbers[0].nr);
	node = BPF_CORE_READ(pid, tasks[PID_OF_PROCESS].first);
	if (!node)
		return;
	task = (const void *)node -
	       bpf_core_field_offset(struct task_struct___pids, pid_links[PID_OF_PROCESS]);
	BPF_CORE_READ_INTO(&on->peer_comm, task, comm);
}

static __always_inline void look_forget_unix(struct look_on *on)
{
	on->end = LOOK_END_UNKNOWN;
	on->peer_pid = 0;
	__builtin_memset(on->path, 0, sizeof(on->path));
	__builtin_memset(on->peer_comm, 0, sizeof(on->peer_comm));
}

/*
 * Sets end, path, peer_pid and peer_comm of looker.record.on from the struct socket at `where`,
 * which is a unix socket. With a scope the opener is not reported, because it may be outside. A
 * global function: the verifier checks it once.
 */
__noinline int look_at_unix(__u64 where)
{
	struct looker *l = looker_get();
	const struct socket *socket = (const void *)where;
	const struct sock *sk = BPF_CORE_READ(socket, sk);
	const struct sock___unix *fields = (const void *)sk;
	const struct unix_sock *own = (const void *)sk;
	const struct unix_address *address, *named;
	const struct unix_sock *peer;
	struct look_on *on;

	if (!l || !sk || !bpf_core_type_exists(struct unix_sock))
		return 0;
	on = &l->record.on;
	look_forget_unix(on);
	peer = (const void *)BPF_CORE_READ(own, peer);
	address = BPF_CORE_READ(own, addr);
	named = address;
	if (!named && peer)
		named = BPF_CORE_READ(peer, addr);
	on->end = address ? LOOK_END_SERVED : named ? LOOK_END_OPENED : LOOK_END_UNKNOWN;
	if (named)
		look_read_path(on, named);
	if (!scoped)
		look_read_opener(on, sk);
	if (BPF_CORE_READ(socket, sk) != sk || BPF_CORE_READ(fields, sk_socket) != socket ||
	    (const void *)BPF_CORE_READ(own, peer) != peer || BPF_CORE_READ(own, addr) != address)
		look_forget_unix(on);
	return 0;
}

#endif
