/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_address.h: converts IPv4-mapped addresses of IPv6 sockets. */
#ifndef TROCAR_BPF_SOCKETS_SOCKET_ADDRESS_H
#define TROCAR_BPF_SOCKETS_SOCKET_ADDRESS_H

#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

/* Returns whether `address` is an IPv4-mapped IPv6 address: ::ffff:0:0/96. */
static __always_inline bool socket_is_mapped(const __u8 address[16])
{
	const __u32 *words = (const __u32 *)address;

	return !words[0] && !words[1] && words[2] == __builtin_bswap32(0xffff);
}

/* Converts an IPv4-mapped address to its IPv4 address in the first 4 bytes. */
static __always_inline void socket_unmap(__u8 address[16])
{
	__u32 *words = (__u32 *)address;

	words[0] = words[3];
	words[2] = words[3] = 0;
}

#endif
