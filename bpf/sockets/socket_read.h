/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_read.h: reads the members of a TCP socket without its lock: both addresses, and its counts
 * so far. Members that belong together may be some nanoseconds apart, as in the queues that `ss`
 * shows.
 */
#ifndef TROCAR_BPF_SOCKETS_SOCKET_READ_H
#define TROCAR_BPF_SOCKETS_SOCKET_READ_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_socket.h"
#include "bpf/sockets/socket_address.h"
#include "shared/abi/abi.h"

/* Length of one jiffy, the unit of the times in a TCP socket. The loader sets it. */
const volatile __u32 tick_ns __weak = LOOK_TICK_NS;

/* The counts of a socket since its creation. */
struct socket_counted {
	__u64 bytes_in, bytes_out;
	__u32 segments, retransmits;
	__u32 full_ticks; /* jiffies in which the peer's receive window was full */
	__u32 drops;	  /* of a listener only */
};

/* The local and the peer address of a socket, and its ports in host byte order. */
struct socket_ends {
	__u8 local[16], peer[16];
	__u16 local_port, peer_port;
	__u8 family, pad[3];
};

/*
 * Sets the addresses and ports of both ends. The local port is from inet_sport, because skc_num is
 * already 0 at the end of a connection (inet_put_port).
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

/* Sets the key in `socket_sums` of a socket with these ends. See struct socket_key. */
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

/* Returns the jiffies in which data waited for space in the peer's receive window. */
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

/* Returns whether the peer's FIN has arrived, which TCP counts as a byte. */
static __always_inline bool socket_has_end(const void *socket)
{
	const struct sock___socket *sk = socket;

	return BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DONE;
}

/* Returns whether the own FIN is sent, in a state that allows it. */
static __always_inline bool socket_end_is_sent(const void *socket, __u8 state)
{
	const struct tcp_sock___socket *tcp = socket;

	return (state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_TIME_WAIT ||
		state == TCP_LAST_ACK || state == TCP_CLOSING) &&
	       BPF_CORE_READ(tcp, snd_nxt) == BPF_CORE_READ(tcp, write_seq);
}

/*
 * Sets the counts of a connection in `state`. Sent bytes are the acknowledged plus the
 * unacknowledged ones: bytes_sent also counts bytes that the host's own queues dropped. A FIN does
 * not count as a byte.
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

/* Sets the counts of a listener: only `drops` is not 0. */
static __always_inline void socket_read_listener(const void *socket, struct socket_counted *counted)
{
	const struct sock___socket *sk = socket;

	__builtin_memset(counted, 0, sizeof(*counted));
	counted->drops = BPF_CORE_READ(sk, sk_drops.counter);
}

#endif
