/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hidden_address.h: derives a key from the address of a kernel object, for a table that the
 * consumer can read. The key is SipHash-1-3 of the address with a secret. The loader draws the
 * secret at each load, and no pin gives access to it. So an object always has the same key, and no
 * key reveals an address.
 */
#ifndef TROCAR_BPF_MAPS_HIDDEN_ADDRESS_H
#define TROCAR_BPF_MAPS_HIDDEN_ADDRESS_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

/* The loader sets it. */
const volatile __u64 address_secret[2] __weak = {};

#define HIDDEN_ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

/* A round of SipHash (Aumasson, Bernstein 2012). */
static __always_inline void hidden_round(__u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = HIDDEN_ROTATE(v[1], 13) ^ v[0];
	v[3] = HIDDEN_ROTATE(v[3], 16) ^ v[2];
	v[0] = HIDDEN_ROTATE(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = HIDDEN_ROTATE(v[1], 17) ^ v[2];
	v[3] = HIDDEN_ROTATE(v[3], 21) ^ v[0];
	v[2] = HIDDEN_ROTATE(v[2], 32);
}

/*
 * Returns the key of the object at `address`. Its top bit is 0, unlike that of any kernel address.
 * A global function: the verifier checks it once.
 */
__weak __noinline __u64 hidden_address(__u64 address)
{
	__u64 v[4] = { address_secret[0] ^ 0x736f6d6570736575,
		       address_secret[1] ^ 0x646f72616e646f6d,
		       address_secret[0] ^ 0x6c7967656e657261,
		       address_secret[1] ^ 0x7465646279746573 ^ address };

	hidden_round(v);
	v[0] ^= address;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		hidden_round(v);
	return (v[0] ^ v[1] ^ v[2] ^ v[3]) >> 1;
}

/*
 * As hidden_address, for a tracepoint argument: the verifier refuses arithmetic on such a pointer,
 * but accepts it on a copy of its bytes.
 */
static __always_inline __u64 hidden_address_of(const void *object)
{
	__u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &object);
	return hidden_address(address);
}

#endif
