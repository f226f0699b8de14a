/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_set.h: examines the files of a set that a thread waits for in epoll, poll or select: their
 * kinds, and the peers of the sockets. Among the outgoing TCP connections, those with data sent
 * since data last arrived wait for an answer of their peer. The set may change during the walk.
 * RCU, which the iterator holds, keeps files and sockets intact. A closed connection has left its
 * socket before the socket is compared again.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_SET_H
#define TROCAR_BPF_WAITS_LOOK_SET_H

#include "bpf/sockets/socket_opened.h"
#include "bpf/waits/look_unix.h"

/* Length of one jiffy, the unit of the times in a TCP socket. The loader sets it. */
const volatile __u32 tick_ns __weak = LOOK_TICK_NS;

#define FAMILY_INET	  2
#define FAMILY_INET6	  10
#define TYPE_STREAM	  1
#define TYPE_DATAGRAM	  2
#define PROTOCOL_TCP	  6
#define PROTOCOL_UDP	  17
#define STATE_ESTABLISHED 1
#define STATE_SYN_SENT	  2

#define ANON_INODE_FS_MAGIC 0x09041934ul

/* A later acknowledgement is not for the data: it answers a probe. */
#define ACKNOWLEDGED_NS 1000000000ull

/*
 * Returns whether data was sent since data last arrived, and sets *ret_ticks to the time since.
 * Both may have happened in one tick. Then the last segment decides: a pure acknowledgement, which
 * begins where all data ends, is for the data sent.
 */
static __always_inline bool look_is_asked(const struct sock *sk, __u32 now, __u32 *ret_ticks)
{
	const struct inet_connection_sock *icsk = (const void *)sk;
	const struct tcp_sock *tcp = (const void *)sk;
	__u32 sent = BPF_CORE_READ(tcp, lsndtime);
	__s32 later = sent - BPF_CORE_READ(icsk, icsk_ack.lrcvtime);

	*ret_ticks = now - sent;
	if (later < 0 || !BPF_CORE_READ(tcp, data_segs_out))
		return false;
	if (later > 0 || !BPF_CORE_READ(tcp, data_segs_in) || BPF_CORE_READ(tcp, packets_out))
		return true;
	return BPF_CORE_READ(tcp, snd_wl1) == BPF_CORE_READ(tcp, rcv_nxt) &&
	       (__u64)(BPF_CORE_READ(tcp, rcv_tstamp) - sent) * tick_ns < ACKNOWLEDGED_NS;
}

/* Reads the peer's address and port. */
static __always_inline void look_read_peer(struct look_peer *peer, const struct sock *sk)
{
	__builtin_memset(peer, 0, sizeof(*peer));
	peer->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	peer->port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (peer->family == FAMILY_INET)
		BPF_CORE_READ_INTO((__u32 *)peer->address, sk, __sk_common.skc_daddr);
	else
		BPF_CORE_READ_INTO((struct in6_addr *)peer->address, sk, __sk_common.skc_v6_daddr);
}

static __always_inline bool look_is_same_peer(const struct look_peer *a, const struct look_peer *b)
{
	return a->address[0] == b->address[0] && a->address[1] == b->address[1] &&
	       a->port == b->port && a->family == b->family;
}

/* Counts a connection that waits for an answer of looker.epoll.peer. */
static __always_inline void look_count_peer(struct looker *l, __u32 ticks)
{
	const struct look_peer *peer = &l->epoll.peer;

	for (__u32 i = 0; i < LOOK_PEERS; i++) {
		struct look_peer *at = &l->epoll.peers[i];

		if (at->connections && !look_is_same_peer(at, peer))
			continue;
		if (!at->connections)
			*at = *peer;
		at->connections++;
		if (ticks > at->longest_ticks)
			at->longest_ticks = ticks;
		return;
	}
	l->record.on.others++;
}

/* Examines a TCP connection in the set. */
static __always_inline void look_at_connection(struct looker *l, const struct socket *socket,
					       const struct sock *sk)
{
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	__u32 ticks = 0;
	bool asked;

	if ((state != STATE_ESTABLISHED && state != STATE_SYN_SENT) || !socket_is_opened(sk))
		return;
	asked = state == STATE_SYN_SENT || look_is_asked(sk, l->epoll.now, &ticks);
	look_read_peer(&l->epoll.peer, sk);
	if (BPF_CORE_READ(socket, sk) != sk)
		return;
	l->record.on.sockets++;
	if (asked && (__u64)ticks * tick_ns <= LOOK_ASKED_NS)
		look_count_peer(l, ticks);
}

/* Counts a unix socket of the set, and reports the first outgoing one. */
static __always_inline void look_at_local(struct looker *l, const struct socket *socket,
					  const struct sock *sk)
{
	struct look_on *on = &l->record.on;

	if (!bpf_core_type_exists(struct unix_sock))
		return;
	if (look_unix_is_unread(sk))
		on->unread++;
	if (look_unix_end((const void *)sk) != LOOK_END_OPENED)
		return;
	on->unix_opened++;
	if (on->end != LOOK_END_OPENED)
		look_at_unix((__u64)socket);
}

/* Examines a socket of the set, and returns its kind (enum look_member). */
static __always_inline __u32 look_at_set_socket(struct looker *l, const struct file *file)
{
	const struct socket *socket = BPF_CORE_READ(file, private_data);
	const struct sock *sk = BPF_CORE_READ(socket, sk);
	__u16 family, protocol;
	__s16 type;

	if (!sk || BPF_CORE_READ(socket, file) != file)
		return LOOK_MEMBER_SOCKET;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	protocol = BPF_CORE_READ(sk, sk_protocol);
	type = BPF_CORE_READ(socket, type);
	if (family == FAMILY_UNIX) {
		look_at_local(l, socket, sk);
		return LOOK_MEMBER_UNIX;
	}
	if (family != FAMILY_INET && family != FAMILY_INET6)
		return LOOK_MEMBER_SOCKET;
	if (type == TYPE_STREAM && protocol == PROTOCOL_TCP) {
		look_at_connection(l, socket, sk);
		return LOOK_MEMBER_TCP;
	}
	if (type != TYPE_DATAGRAM || protocol != PROTOCOL_UDP)
		return LOOK_MEMBER_SOCKET;
	look_read_peer(&l->epoll.peer, sk);
	if (BPF_CORE_READ(socket, sk) == sk && l->epoll.peer.port)
		l->epoll.udp = l->epoll.peer;
	return LOOK_MEMBER_UDP;
}

/*
 * Returns the kind of an anonymous inode, from the first 8 bytes of its name. The kernel sets the
 * name.
 */
static __always_inline __u32 look_name_member(const struct file *file)
{
	static const struct {
		char name[8];
		__u64 member;
	} rows[] = {
		{ "[eventfd", LOOK_MEMBER_EVENT },
		{ "[timerfd", LOOK_MEMBER_TIMER },
		{ "[signalf", LOOK_MEMBER_SIGNAL },
		{ "[eventpo", LOOK_MEMBER_EPOLL },
	};
	const struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	__u64 name = 0;

	bpf_probe_read_kernel(&name, sizeof(name), BPF_CORE_READ(dentry, d_name.name));
	for (__u32 i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (*(const __u64 *)rows[i].name == name)
			return rows[i].member;
	return LOOK_MEMBER_OTHER;
}

/*
 * Examines the file at `where`, which is in the set of looker.record.on. A global function: the
 * verifier checks it once, and not in each walk over a set.
 */
__noinline int look_at_member(__u64 where)
{
	struct looker *l = looker_get();
	const struct file *file = (const void *)where;
	const struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u32 mode = BPF_CORE_READ(inode, i_mode) & S_IFMT, member = LOOK_MEMBER_OTHER;

	if (!l)
		return 0;
	if (mode == S_IFSOCK)
		member = look_at_set_socket(l, file);
	else if (mode == S_IFIFO)
		member = LOOK_MEMBER_PIPE;
	else if (mode == S_IFCHR)
		member = LOOK_MEMBER_DEVICE;
	/* Since 6.16 anonymous inodes are regular files. */
	else if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_FS_MAGIC)
		member = look_name_member(file);
	else if (mode == S_IFREG || mode == S_IFDIR || mode == S_IFBLK)
		member = LOOK_MEMBER_FILE;
	if (member < LOOK_MEMBERS_)
		l->record.on.kinds[member]++;
	return 0;
}

/* Begins a set without any peers. */
static __always_inline void look_begin_set(struct looker *l, __u32 kind)
{
	l->record.on.kind = kind;
	l->epoll.now = bpf_jiffies64();
	__builtin_memset(l->epoll.peers, 0, sizeof(l->epoll.peers));
	l->epoll.udp.port = 0;
	look_forget_unix(&l->record.on);
}

/* Reports the peer that most connections wait for. The others are only counted. */
static __always_inline void look_choose_peer(struct looker *l)
{
	struct look_on *on = &l->record.on;

	for (__u32 i = 0; i < LOOK_PEERS; i++) {
		const struct look_peer *at = &l->epoll.peers[i];

		if (at->connections <= on->asked) {
			on->others += at->connections;
			continue;
		}
		on->others += on->asked;
		on->asked = at->connections;
		on->longest_ns = (__u64)at->longest_ticks * tick_ns;
		on->family = at->family;
		on->protocol = PROTOCOL_TCP;
		on->peer_port = at->port;
		__builtin_memcpy(on->peer, at->address, sizeof(on->peer));
	}
}

#endif
