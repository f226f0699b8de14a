/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_on.h: finds the object that a thread waits for, from the first argument of its system call.
 * A descriptor is followed in the kernel's own memory to its file, pipe or socket. The thread is in
 * that call, so its descriptor table stays. An object that the kernel frees in the meantime (a file
 * that another thread closes) stays intact until the iterator releases RCU. The addresses of a
 * socket are read only for families that have them. A thread that ran in the meantime is not
 * reported (looks.bpf.c).
 */
#ifndef TROCAR_BPF_WAITS_LOOK_ON_H
#define TROCAR_BPF_WAITS_LOOK_ON_H

#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/wait.h>

#include "bpf/waits/look_child.h"
#include "bpf/waits/look_epoll.h"
#include "bpf/waits/look_lock.h"
#include "bpf/waits/look_path.h"
#include "bpf/waits/look_poll.h"
#include "bpf/waits/look_timer.h"

#define IORING_ENTER_REGISTERED_RING (1u << 4) /* the first argument is not a descriptor */

/* Older headers do not have it. The number is equal on all architectures. */
#ifndef __NR_futex_wait
#define __NR_futex_wait 455
#endif

#define LOOK_CALLS 512 /* limit of the system call numbers in the table */

/* Meaning of the first argument (wait_on.def). */
enum look_argument {
	LOOK_ARGUMENT_NONE,
	LOOK_ARGUMENT_DESCRIPTOR,
	LOOK_ARGUMENT_FUTEX,
	LOOK_ARGUMENT_CHILD,
	LOOK_ARGUMENT_POLL,
	LOOK_ARGUMENT_SELECT,
	LOOK_ARGUMENT_RING,
	LOOK_ARGUMENT_FUTEXES,	  /* a list of struct futex_waitv */
	LOOK_ARGUMENT_CHILD_KIND, /* the second argument selects the children */
	LOOK_ARGUMENT_SLEEP,	  /* a time on CLOCK_MONOTONIC */
	LOOK_ARGUMENT_CLOCK,	  /* the clock of the sleep */
	LOOK_ARGUMENT_SEMAPHORES,
};

static const __u8 look_arguments[LOOK_CALLS] = {
#define WAIT_ON(name, what) [__NR_##name] = LOOK_ARGUMENT_##what,
#include "shared/abi/wait_on.def"
#undef WAIT_ON
};

/* Sets the addresses and ports of an IPv4 or IPv6 socket. */
static __always_inline void look_at_addresses(struct look_on *on, const struct sock *sk)
{
	on->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	on->peer_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (on->family == FAMILY_INET) {
		BPF_CORE_READ_INTO((__u32 *)on->local, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO((__u32 *)on->peer, sk, __sk_common.skc_daddr);
		return;
	}
	BPF_CORE_READ_INTO((struct in6_addr *)on->local, sk, __sk_common.skc_v6_rcv_saddr);
	BPF_CORE_READ_INTO((struct in6_addr *)on->peer, sk, __sk_common.skc_v6_daddr);
}

/*
 * Sets since when a TCP connection that was opened from here waits for the peer's answer. Data that
 * was sent very long ago is a stream, not a request.
 */
static __always_inline void look_at_question(struct looker *l, const struct sock *sk)
{
	struct look_on *on = &l->record.on;
	__u32 ticks;

	if (on->type != TYPE_STREAM || on->protocol != PROTOCOL_TCP ||
	    on->state != STATE_ESTABLISHED || !socket_is_opened(sk) ||
	    !look_is_asked(sk, bpf_jiffies64(), &ticks) || (__u64)ticks * tick_ns > LOOK_ASKED_NS)
		return;
	on->asked = 1;
	on->longest_ns = (__u64)ticks * tick_ns;
}

/* Sets whether the pipe is full: then the thread waits until the other end reads. */
static __always_inline void look_at_pipe(struct look_on *on, const struct file *file)
{
	const struct pipe_inode_info *pipe = BPF_CORE_READ(file, private_data);

	on->kind = LOOK_ON_PIPE;
	on->state = BPF_CORE_READ(pipe, head) - BPF_CORE_READ(pipe, tail) >=
		    BPF_CORE_READ(pipe, max_usage);
}

static __always_inline void look_at_socket(struct looker *l, const struct file *file)
{
	struct look_on *on = &l->record.on;
	const struct socket *socket = (const struct socket *)BPF_CORE_READ(file, private_data);
	const struct sock *sk = BPF_CORE_READ(socket, sk);

	on->kind = LOOK_ON_SOCKET;
	on->type = BPF_CORE_READ(socket, type);
	on->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	on->protocol = BPF_CORE_READ(sk, sk_protocol);
	on->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (on->family == FAMILY_INET || on->family == FAMILY_INET6)
		look_at_addresses(on, sk);
	look_at_question(l, sk);
	if (on->family != FAMILY_UNIX || !bpf_core_type_exists(struct unix_sock))
		return;
	on->unread = look_unix_is_unread(sk);
	look_at_unix((__u64)socket);
}

/*
 * Follows descriptor `fd` of the sampled task, and sets looker.record.on. A global function: the
 * verifier checks it once.
 */
__noinline int look_at_descriptor(__u32 fd)
{
	struct looker *l = looker_get();
	const struct inode *inode;
	const struct file *file;
	struct look_on *on;
	__u32 mode;

	if (!l)
		return 0;
	on = &l->record.on;
	file = look_find_file(l, fd);
	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	on->number = fd;
	on->inode = BPF_CORE_READ(inode, i_ino);
	on->device = BPF_CORE_READ(inode, i_sb, s_dev);
	on->kind = LOOK_ON_OTHER;
	if (mode == S_IFSOCK)
		look_at_socket(l, file);
	else if (mode == S_IFIFO)
		look_at_pipe(on, file);
	else if (mode == S_IFREG || mode == S_IFBLK || mode == S_IFDIR)
		on->kind = LOOK_ON_FILE;
	/* The last part of its path. For eventfd, epoll and similar files it is their kind. */
	if (mode != S_IFSOCK && mode != S_IFIFO) {
		const struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);

		bpf_probe_read_kernel_str(on->name, sizeof(on->name),
					  BPF_CORE_READ(dentry, d_name.name));
	}
	/* Since 6.16 they are regular files, except for their operations. */
	if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC)
		on->kind = look_is_epoll(on) ? LOOK_ON_EPOLL : LOOK_ON_OTHER;
	l->epoll.file = (__u64)file;
	if (on->kind == LOOK_ON_FILE)
		look_at_path((__u64)file);
	if (on->kind == LOOK_ON_OTHER && look_is_timerfd(on)) {
		on->kind = LOOK_ON_TIMER;
		look_at_timerfd(l);
	}
	return 0;
}

/* Reports the lock of the file in looker.epoll.file for which the thread waits. */
static __always_inline void look_at_held_file(__u32 call)
{
	struct looker *l = looker_get();
	const struct file *file;
	__u64 inode;

	if (!l)
		return;
	file = (const void *)l->epoll.file;
	inode = (__u64)BPF_CORE_READ(file, f_inode);
	if (call == CALL_FLOCK || call == __NR_fcntl)
		look_at_file_lock((__u64)file, call);
	else if (inode && is_uninterruptible(l))
		look_at_rwsem(inode + bpf_core_field_offset(struct inode___lock, i_rwsem));
}

/* Reports the first futex of the list at `list` (struct futex_waitv). */
static __always_inline void look_at_futexes(struct look_on *on, __u64 list)
{
	struct looker *l = looker_get();
	const struct task_struct *task;

	if (!l)
		return;
	on->kind = LOOK_ON_FUTEX;
	task = (const void *)l->task;
	l->pgd = (__u64)BPF_CORE_READ(task, mm, pgd);
	/* Only the word: the list entry may span two pages. */
	if (look_fetch(list + offsetof(struct futex_waitv, uaddr), sizeof(__u64)) == 0)
		on->address = l->fetched[0];
}

/* As look_at_argument, for rarer calls. `end`: end of the kernel stack. */
static __always_inline void look_at_rare(struct look_on *on, __u8 what, __u64 argument,
					 __u64 second, __u64 end)
{
	struct looker *looker;

	if (what == LOOK_ARGUMENT_FUTEXES) {
		look_at_futexes(on, argument);
	} else if (what == LOOK_ARGUMENT_CHILD_KIND) {
		on->kind = LOOK_ON_CHILD;
		on->number = argument == P_PID ? second : -1;
		look_at_child();
	} else if (what == LOOK_ARGUMENT_SEMAPHORES) {
		on->kind = LOOK_ON_SEMAPHORES;
		on->number = argument;
	} else if (what == LOOK_ARGUMENT_SLEEP || what == LOOK_ARGUMENT_CLOCK) {
		on->kind = LOOK_ON_TIMER;
		on->number = what == LOOK_ARGUMENT_CLOCK ? argument : CLOCK_MONOTONIC;
		looker = looker_get();
		if (looker)
			looker->stack_end = end;
		look_at_sleep();
	}
}

/*
 * Sets the object that the thread waits for, from the first four arguments of its system call.
 * `end`: end of its kernel stack.
 */
static __always_inline void look_at_argument(struct look_record *r, __u64 argument, __u64 second,
					     __u64 third, __u64 fourth, __u64 end)
{
	__u32 call = r->syscall;
	__u8 what;

	if (call >= LOOK_CALLS)
		return;
	what = look_arguments[call & (LOOK_CALLS - 1)];
	if (what == LOOK_ARGUMENT_FUTEX) {
		r->on.kind = LOOK_ON_FUTEX;
		r->on.address = argument;
		r->on.number = call == __NR_futex_wait ? 0 : second;
		if (call == __NR_futex_wait)
			look_at_lock(argument, FUTEX_WAIT_BITSET, second);
		else
			look_at_lock(argument, second, third);
	} else if (what == LOOK_ARGUMENT_CHILD) {
		r->on.kind = LOOK_ON_CHILD;
		r->on.number = argument;
		look_at_child();
	} else if (what == LOOK_ARGUMENT_DESCRIPTOR) {
		look_at_descriptor(argument);
		if (r->on.kind == LOOK_ON_EPOLL)
			look_at_epoll();
		else if (r->on.kind == LOOK_ON_FILE)
			look_at_held_file(call);
	} else if (what == LOOK_ARGUMENT_RING && !(fourth & IORING_ENTER_REGISTERED_RING)) {
		look_at_descriptor(argument);
	} else if (what == LOOK_ARGUMENT_POLL) {
		look_at_poll(argument, second);
	} else if (what == LOOK_ARGUMENT_SELECT) {
		look_at_select(argument, second, third);
	} else {
		look_at_rare(&r->on, what, argument, second, end);
	}
}

#endif
