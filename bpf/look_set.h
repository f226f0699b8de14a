/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_set.h: judges the files of a set that a thread waits for, of an epoll or of poll: of the TCP
 * connections among them that were opened from here, those on which something was sent since
 * something came wait for an answer of their peer. The set may change meanwhile. RCU, which the
 * iterator holds, keeps files and sockets what they are; a connection that was closed has left its
 * socket by the time that is checked.
 */
#ifndef TROCAR_BPF_LOOK_SET_H
#define TROCAR_BPF_LOOK_SET_H

#include "bpf/look_memory.h"

/* Set by the loader: one jiffy, the unit of the times in a TCP socket. */
const volatile __u32 tick_ns __weak = LOOK_TICK_NS;

#define FAMILY_INET	  2
#define FAMILY_INET6	  10
#define TYPE_STREAM	  1
#define PROTOCOL_TCP	  6
#define STATE_ESTABLISHED 1
#define STATE_SYN_SENT	  2

#define CLIENT_PORTS 32768 /* from here on Linux gives ports to clients */

/* An acknowledgement that comes later is none of what was sent, but the answer to a probe. */
#define ACKNOWLEDGED_NS 1000000000ull

/*
 * Returns whether the connection was opened from here, and not accepted: connect(2) takes a port
 * for itself alone (fastreuse, net/ipv4/inet_hashtables.c), and an accepted one has its listener's.
 * A port that bind(2) gave to a client is told by its number.
 */
static __always_inline bool look_is_opened(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = (const void *)sk;
	signed char reuse = BPF_CORE_READ(icsk, icsk_bind_hash, fastreuse);

	if (reuse < 0)
		return true;
	return BPF_CORE_READ(sk, __sk_common.skc_num) >= CLIENT_PORTS &&
	       __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport)) < CLIENT_PORTS;
}

/*
 * Returns whether something was sent since something came, and sets *ret_ticks to how long ago.
 * Both may have been in one tick. Then what came last tells: an acknowledgement alone, which begins
 * where all data ends, is one of what was sent.
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

/* Judges the socket of a file in the set. */
static __always_inline void look_at_member(struct looker *l, const struct file *file)
{
	const struct socket *socket;
	const struct sock *sk;
	__u32 ticks = 0;
	__u16 family;
	__u8 state;
	bool asked;

	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || BPF_CORE_READ(socket, file) != file ||
	    BPF_CORE_READ(socket, type) != TYPE_STREAM ||
	    BPF_CORE_READ(sk, sk_protocol) != PROTOCOL_TCP)
		return;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if ((family != FAMILY_INET && family != FAMILY_INET6) ||
	    (state != STATE_ESTABLISHED && state != STATE_SYN_SENT) || !look_is_opened(sk))
		return;
	asked = state == STATE_SYN_SENT || look_is_asked(sk, l->epoll.now, &ticks);
	look_read_peer(&l->epoll.peer, sk);
	if (BPF_CORE_READ(socket, sk) != sk)
		return;
	l->record.on.sockets++;
	if (asked && (__u64)ticks * tick_ns <= LOOK_ASKED_NS)
		look_count_peer(l, ticks);
}

/* Begins a set: nobody is asked. */
static __always_inline void look_begin_set(struct looker *l, __u32 kind)
{
	l->record.on.kind = kind;
	l->epoll.now = bpf_jiffies64();
	__builtin_memset(l->epoll.peers, 0, sizeof(l->epoll.peers));
}

/* Makes the peer that most connections wait for the one that is told of; the others are counted. */
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
