/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_read.h: reads the members of a TCP socket, without its lock: its peer, and its counts so
 * far. Members that belong together may be of two moments, some nanoseconds apart, as in the queues
 * that `ss` shows.
 */
#ifndef TROCAR_BPF_SOCKETS_SOCKET_READ_H
#define TROCAR_BPF_SOCKETS_SOCKET_READ_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_socket.h"
#include "shared/abi/abi.h"

/* Set by the loader: one jiffy, the unit of the times in a TCP socket. */
const volatile __u32 tick_ns __weak = LOOK_TICK_NS;

/* What a socket has counted since it is there. */
struct socket_counted {
	__u64 bytes_in, bytes_out;
	__u32 segments, retransmits;
	__u32 full_ticks; /* jiffies in which the peer had no room */
	__u32 drops;	  /* of a listener */
};

/* The identity of a socket. */
struct socket_ends {
	__u8 local[16], peer[16];
	__u16 local_port, peer_port;
	__u8 family, pad[3];
};

/* Returns whether an address is one of 4 bytes that IPv6 maps: ::ffff:0:0/96. */
static __always_inline bool socket_is_mapped(const __u8 address[16])
{
	const __u32 *words = (const __u32 *)address;

	return !words[0] && !words[1] && words[2] == __builtin_bswap32(0xffff);
}

/* Makes a mapped address one of 4 bytes. */
static __always_inline void socket_unmap(__u8 address[16])
{
	__u32 *words = (__u32 *)address;

	words[0] = words[3];
	words[2] = words[3] = 0;
}

/*
 * Sets both ends. The own port is read where it stays: at the end of a connection skc_num is 0
 * already (inet_put_port).
 */
static __always_inline void socket_read_ends(const void *socket, struct socket_ends *ends)
{
	const struct sock *sk = socket;
	const struct inet_sock *inet = socket;

	__builtin_memset(ends, 0, sizeof(*ends));
	ends->local_port = __builtin_bswap16(BPF_CORE_READ(inet, inet_sport));
	ends->peer_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	ends->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (ends->family == FAMILY_INET) {
		BPF_CORE_READ_INTO((__u32 *)ends->local, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO((__u32 *)ends->peer, sk, __sk_common.skc_daddr);
		return;
	}
	BPF_CORE_READ_INTO((struct in6_addr *)ends->local, sk, __sk_common.skc_v6_rcv_saddr);
	BPF_CORE_READ_INTO((struct in6_addr *)ends->peer, sk, __sk_common.skc_v6_daddr);
	if (!socket_is_mapped(ends->peer))
		return;
	ends->family = FAMILY_INET;
	socket_unmap(ends->peer);
	if (socket_is_mapped(ends->local))
		socket_unmap(ends->local);
	else
		__builtin_memset(ends->local, 0, sizeof(ends->local));
}

/* Sets the key of the counts of such sockets. */
static __always_inline void socket_make_key(const struct socket_ends *ends, __u32 slot, __u8 way,
					    struct socket_key *key)
{
	key->slot = slot;
	key->port = way == SOCKET_OPENED ? ends->peer_port : ends->local_port;
	key->family = ends->family;
	key->way = way;
	if (way == SOCKET_LISTENS)
		__builtin_memcpy(key->address, ends->local, sizeof(key->address));
	else
		__builtin_memcpy(key->address, ends->peer, sizeof(key->address));
}

/* Returns the jiffies in which data waited for room at the peer. */
static __always_inline __u32 socket_full_ticks(const void *socket, bool *ret_is_full)
{
	const struct tcp_sock___socket *tcp = socket;
	__u32 ticks = BPF_CORE_READ(tcp, chrono_stat[TCP_CHRONO_RWND_LIMITED - 1]);
	__u32 type = BPF_CORE_READ_BITFIELD_PROBED(tcp, chrono_type);

	*ret_is_full = type == TCP_CHRONO_RWND_LIMITED;
	if (*ret_is_full)
		ticks += (__u32)bpf_jiffies64() - BPF_CORE_READ(tcp, chrono_start);
	return ticks;
}

/* Returns whether the end of the peer's stream has come, which TCP counts as a byte. */
static __always_inline bool socket_has_end(const void *socket)
{
	const struct sock___socket *sk = socket;

	return BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DONE;
}

/* Returns whether the own end of the stream is sent, in a state in which that may be. */
static __always_inline bool socket_end_is_sent(const void *socket, __u8 state)
{
	const struct tcp_sock___socket *tcp = socket;

	return (state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_TIME_WAIT ||
		state == TCP_LAST_ACK || state == TCP_CLOSING) &&
	       BPF_CORE_READ(tcp, snd_nxt) == BPF_CORE_READ(tcp, write_seq);
}

/*
 * Sets the counts of a connection in `state`. The sent bytes are the acknowledged and the
 * unacknowledged ones: bytes_sent also has bytes that the own queues dropped. The end of a stream
 * is no byte.
 */
static __always_inline void socket_read_counted(const void *socket, __u8 state,
						struct socket_counted *counted)
{
	const struct tcp_sock___socket *tcp = socket;
	bool is_full;

	counted->bytes_in = BPF_CORE_READ(tcp, bytes_received);
	if (counted->bytes_in && socket_has_end(socket))
		counted->bytes_in--;
	counted->bytes_out = BPF_CORE_READ(tcp, bytes_acked);
	counted->bytes_out += (__u32)(BPF_CORE_READ(tcp, snd_nxt) - BPF_CORE_READ(tcp, snd_una));
	if (state == TCP_SYN_SENT)
		counted->bytes_out = 0;
	if (counted->bytes_out && socket_end_is_sent(socket, state))
		counted->bytes_out--;
	counted->segments = BPF_CORE_READ(tcp, data_segs_out);
	counted->retransmits = BPF_CORE_READ(tcp, total_retrans);
	counted->full_ticks = socket_full_ticks(socket, &is_full);
	counted->drops = 0;
}

/* The same of a listener. */
static __always_inline void socket_read_listener(const void *socket, struct socket_counted *counted)
{
	const struct sock___socket *sk = socket;

	__builtin_memset(counted, 0, sizeof(*counted));
	counted->drops = BPF_CORE_READ(sk, sk_drops.counter);
}

#endif
