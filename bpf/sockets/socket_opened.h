/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_opened.h: distinguishes an outgoing connection from an accepted one. */
#ifndef TROCAR_BPF_SOCKETS_SOCKET_OPENED_H
#define TROCAR_BPF_SOCKETS_SOCKET_OPENED_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"

#define CLIENT_PORTS 32768 /* the first port that Linux assigns to clients */

/*
 * Returns whether this side opened the connection: connect(2) takes a port for itself alone
 * (fastreuse, net/ipv4/inet_hashtables.c), while an accepted connection has the port of its
 * listener. A client port that came from bind(2) is recognised by its number.
 */
static __always_inline bool socket_is_opened(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = (const void *)sk;
	signed char reuse = BPF_CORE_READ(icsk, icsk_bind_hash, fastreuse);

	if (reuse < 0)
		return true;
	return BPF_CORE_READ(sk, __sk_common.skc_num) >= CLIENT_PORTS &&
	       __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport)) < CLIENT_PORTS;
}

#endif
