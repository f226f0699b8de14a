/* SPDX-License-Identifier: BSD-2-Clause */
/* symbols_hash.h: the hash for finding modules by file or build-id. */
#ifndef TROCAR_CONSUMER_SYMBOLS_SYMBOLS_HASH_H
#define TROCAR_CONSUMER_SYMBOLS_SYMBOLS_HASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns FNV-1a of `bytes` bytes from this run's seed, which no other process can guess; never 0.
 */
static inline uint64_t symbols_hash(uint64_t seed, const void *data, size_t bytes)
{
	uint64_t h = seed ^ 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3ULL;
	return h ? h : 1;
}

#endif
