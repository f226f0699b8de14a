// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * socket.bpf.c: reports the TCP sockets that the processes of watched cgroups have descriptors of.
 * socket_state.bpf.c counts events between two of these socket snapshots.
 *
 * The iterator walks the descriptor table of each process (descriptor_walk.h). It takes no lock of
 * a socket: iter/tcp locks each socket, which its process may hold for as long as its memory
 * faults. A file names its socket; the program compares that name again after it has read all
 * members.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/maps/task_keys.h"
#include "bpf/sockets/descriptor_walk.h"
#include "bpf/sockets/socket_opened.h"
#include "bpf/sockets/socket_sums.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_captured.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Limits of one pass over all processes. Tests set lower ones. */
const volatile __u32 socket_files = SOCKET_FILES_MAX;
const volatile __u32 socket_pass_files = SOCKET_PASS_FILES;
const volatile __u32 socket_pass_sockets = SOCKET_PASS_SOCKETS;

/* Socket snapshots of the last read. The consumer drains it after each read. */
RING_MAP(socket_looks, SOCKET_LOOKS_BYTES);

/* A pass over all processes. */
struct socket_walk {
	struct descriptor_walk walk;
	__u64 inode;	/* of the current descriptor's file */
	__u32 reported; /* sockets of the pass so far */
	__u32 pad;
	struct socket_ends ends;
	struct socket_counted counted;
	struct socket_key key;
	struct socket_record record;
};

/* One element per reading thread, because iterators are preemptible. */
TASK_MAP(socket_walks, struct socket_walk);

static const struct socket_open no_socket;

static __always_inline __u32 since_ms(__u32 tick)
{
	__u32 ticks = (__u32)bpf_jiffies64() - tick;

	return (__s32)ticks < 0 ? 0 : (__u64)ticks * tick_ns / 1000000;
}

static __always_inline __u32 above_zero(__u32 difference)
{
	return (__s32)difference < 0 ? 0 : difference;
}

/* Sets the lengths of a connection's queues, the times of its last data, and its full flags. */
static __always_inline void fill_queues(struct socket_record *r, const void *socket)
{
	const struct tcp_sock___socket *tcp = socket;
	const struct inet_connection_sock___socket *icsk = socket;
	__u32 next = BPF_CORE_READ(tcp, rcv_nxt), sent = BPF_CORE_READ(tcp, snd_nxt);
	__u32 room = BPF_CORE_READ(tcp, rcv_wup) + BPF_CORE_READ(tcp, rcv_wnd) - next;
	bool is_full;

	r->unread = above_zero(next - BPF_CORE_READ(tcp, copied_seq));
	if (r->unread && socket_has_end(socket))
		r->unread--;
	r->unsent = above_zero(BPF_CORE_READ(tcp, write_seq) - sent);
	r->unacked = above_zero(sent - BPF_CORE_READ(tcp, snd_una));
	r->srtt_us = BPF_CORE_READ(tcp, srtt_us) >> 3;
	r->rtt_least_us = BPF_CORE_READ(tcp, rtt_min.s[0].v);
	r->in_ms = since_ms(BPF_CORE_READ(icsk, icsk_ack.lrcvtime));
	r->out_ms = since_ms(BPF_CORE_READ(tcp, lsndtime));
	socket_full_ticks(socket, &is_full);
	if (is_full)
		r->flags |= SOCKET_PEER_FULL;
	if (r->unread && above_zero(room) < BPF_CORE_READ(icsk, icsk_ack.rcv_mss))
		r->flags |= SOCKET_OWN_FULL;
}

static __always_inline void fill_listener(struct socket_record *r, const void *socket)
{
	const struct sock___socket *sk = socket;
	const struct inet_connection_sock___socket *icsk = socket;

	r->queue = BPF_CORE_READ(sk, sk_ack_backlog);
	r->queue_max = BPF_CORE_READ(sk, sk_max_ack_backlog);
	r->syn_queue = BPF_CORE_READ(icsk, icsk_accept_queue.qlen.counter);
}

/*
 * Returns whether the cgroup that created the socket has another nearest watch than the one in slot
 * `index`, or none.
 */
static __always_inline bool is_foreign(const struct sock___socket *sk, __u32 index)
{
	__u64 id;
	__u32 other;

	if (!bpf_core_field_exists(sk->sk_cgrp_data.cgroup))
		return true;
	id = BPF_CORE_READ(sk, sk_cgrp_data.cgroup, kn, id);
	return !watch_lookup(id, &other) || other != index;
}

/* Sets all members of a socket's record except `begun_ns` and `way`. */
static __always_inline void fill_record(struct socket_walk *w, const void *socket)
{
	const struct sock___socket *sk = socket;
	struct socket_record *r = &w->record;

	r->inode = w->inode;
	r->bytes_in = w->counted.bytes_in;
	r->bytes_out = w->counted.bytes_out;
	r->segments = w->counted.segments;
	r->retransmits = w->counted.retransmits;
	r->drops = w->counted.drops;
	r->net = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	r->local_port = w->ends.local_port;
	r->peer_port = w->ends.peer_port;
	r->family = w->ends.family;
	__builtin_memcpy(r->local, w->ends.local, sizeof(r->local));
	__builtin_memcpy(r->peer, w->ends.peer, sizeof(r->peer));
	if (is_foreign(sk, r->slot))
		r->flags |= SOCKET_FOREIGN;
	if (r->state == TCP_LISTEN)
		fill_listener(r, socket);
	else if (r->state != TCP_SYN_SENT)
		fill_queues(r, socket);
}

static __always_inline __u8 way_of(const void *socket, __u8 state)
{
	if (state == TCP_LISTEN)
		return SOCKET_LISTENS;
	return state == TCP_SYN_SENT || socket_is_opened(socket) ? SOCKET_OPENED : SOCKET_ACCEPTED;
}

/* Starts to follow a socket. Returns NULL if `socket_open` has no space. */
static __always_inline struct socket_open *begin_following(const struct socket_walk *w,
							   __u64 address)
{
	int error;
	struct socket_open *open =
		table_get(&socket_open, TABLES_, NO_SLOT, &address, &no_socket, &error);

	if (!open) {
		socket_count_unfollowed(w->record.slot, error);
		return 0;
	}
	open->counted = w->counted;
	open->slot = w->record.slot;
	open->way = w->record.way;
	return open;
}

/* Adds the socket's new counts to the sums, and sets the known begin in the record. */
static __always_inline void settle_socket(struct socket_walk *w, struct socket_open *open)
{
	struct socket_record *r = &w->record;

	open->reading = w->walk.reading;
	r->begun_ns = open->begun_ns;
	if (r->way != SOCKET_LISTENS && open->way != SOCKET_LISTENS)
		r->way = open->way;
	socket_make_key(&w->ends, open->slot, r->way, &w->key);
	socket_settle(open, &w->key, &w->counted);
}

/* Reads all members of the record of a connection or listener. */
static __always_inline void read_socket(struct socket_walk *w, const struct sock *sk, __u8 state)
{
	struct socket_record *r = &w->record;
	__u64 slot_and_tgid = *(const __u64 *)&r->slot;

	socket_read_ends(sk, &w->ends);
	if (state == TCP_LISTEN)
		socket_read_listener(sk, &w->counted);
	else
		socket_read_counted(sk, state, &w->counted);
	__builtin_memset(r, 0, offsetof(struct socket_record, comm));
	*(__u64 *)&r->slot = slot_and_tgid;
	r->state = state;
	r->way = way_of(sk, state);
	fill_record(w, sk);
	/* bytes_acked counts the acknowledgement that established the connection as one byte. */
	if (r->way == SOCKET_OPENED && r->bytes_out)
		r->bytes_out--;
}

/* Reports the TCP socket of `socket` once per pass: several processes may share it. */
static __always_inline void tell_socket(struct socket_walk *w, const struct socket *socket,
					const struct sock *sk, __u8 state)
{
	__u64 address = (__u64)sk;
	struct socket_open *open = bpf_map_lookup_elem(&socket_open, &address);

	if (open && open->reading == w->walk.reading)
		return;
	if (w->reported >= socket_pass_sockets) {
		socket_count_lost(w->record.slot, SOCKET_LOST_SOCKETS, 1);
		return;
	}
	read_socket(w, sk, state);
	/* The socket was closed in the meantime: the values may belong to another socket. */
	if (BPF_CORE_READ(socket, sk) != sk)
		return;
	if (!open)
		open = begin_following(w, address);
	if (open)
		settle_socket(w, open);
	w->reported++;
	if (bpf_ringbuf_output(&socket_looks, &w->record, sizeof(w->record), BPF_RB_NO_WAKEUP))
		socket_count_lost(w->record.slot, SOCKET_LOST_SOCKETS, 1);
}

/*
 * Reports the file of descriptor `fd` of the walked process if it is a TCP socket. A global
 * function: the verifier checks it once, and not in each walk.
 */
__noinline int socket_at(__u32 fd)
{
	struct socket_walk *w =
		bpf_task_storage_get(&socket_walks, bpf_get_current_task_btf(), 0, 0);
	const struct socket *socket;
	const struct sock *sk;
	const struct file *file = w ? descriptor_walk_file(&w->walk, fd) : 0;
	const struct inode *inode;
	__u16 family;
	__u8 state;

	if (!w || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (!sk || BPF_CORE_READ(socket, file) != file ||
	    (family != FAMILY_INET && family != FAMILY_INET6) ||
	    BPF_CORE_READ(sk, sk_protocol) != PROTOCOL_TCP)
		return 0;
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	w->inode = BPF_CORE_READ(inode, i_ino);
	if (state && state != TCP_CLOSE)
		tell_socket(w, socket, sk, state);
	return 0;
}

/* Visits the next descriptor, or takes the next bitmap word. Returns 1 after the last one. */
static long walk_next(__u32 i, void *context)
{
	struct socket_walk *w = *(struct socket_walk **)context;
	__s32 fd = descriptor_walk_next(&w->walk, socket_files, socket_pass_files);

	if (w->walk.left_out) {
		socket_count_lost(w->record.slot, SOCKET_LOST_FILES, w->walk.left_out);
		w->walk.left_out = 0;
	}
	if (fd >= 0)
		socket_at(fd);
	return fd == DESCRIPTOR_END;
}

/* Starts a pass and ends its first read. Without a session (`wanted` is 0) it empties both maps. */
static __always_inline int begin_reading(struct socket_walk *w, __u64 reading, __u32 wanted)
{
	descriptor_walk_begin(&w->walk, reading);
	w->reported = 0;
	if (!wanted)
		socket_forget_all();
	return 1;
}

/* Reports the sockets of a process. Returns whether some are left for the next read. */
static __always_inline bool look_at_process(struct socket_walk *w, struct task_struct *task)
{
	__u64 files = descriptor_walk_files(&w->walk, task);
	__u32 index;

	if (!files || !watch_lookup(task_keys_read_cgroup(task), &index) ||
	    !watch_is_captured(index) || !scope_allows_task(task))
		return false;
	descriptor_walk_enter(&w->walk, task, files);
	w->record.slot = index;
	w->record.tgid = task->tgid;
	BPF_CORE_READ_INTO(&w->record.comm, task, group_leader, comm);
	return descriptor_walk_run(&w->walk, &w, walk_next);
}

/*
 * Reports all TCP sockets of watches that have a session. Returning 1 ends the read(2), and the
 * next one starts with the same task (bpf_seq_read in kernel/bpf/bpf_iter.c).
 */
SEC("iter/task")
int sockets(struct bpf_iter__task *ctx)
{
	const struct control *c = control_get();
	struct task_struct *task = ctx->task;
	struct socket_walk *w = map_of_thread(&socket_walks);

	if (!task || !c || !w)
		return 0;
	if (w->walk.reading != ctx->meta->session_id)
		return begin_reading(w, ctx->meta->session_id, READ_WORD(c->sockets));
	if (!READ_WORD(c->sockets) || !READ_WORD(c->armed))
		return 0;
	if (descriptor_walk_has_room(&w->walk) && !look_at_process(w, task))
		return 0;
	return descriptor_walk_pause(&w->walk);
}
