/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h: drains a BPF ring buffer (kernel/bpf/ringbuf.c) from an mmap. It maps the data area once,
 * not twice as usual, which halves the resident memory; a bounce buffer holds a record that wraps.
 * Positions and lengths come from the kernel, yet each is checked against the ring's size.
 */
#ifndef TROCAR_CONSUMER_KERNEL_RING_H
#define TROCAR_CONSUMER_KERNEL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/tools/macro.h"

struct ring {
	int fd;
	size_t size; /* bytes of data, power of two */
	unsigned long *consumer_pos;
	const unsigned long *producer_pos;
	const uint8_t *data;
	uint8_t *bounce; /* for a record that wraps; grows up to RING_RECORD_MAX */
	size_t bounce_bytes;
	uint64_t records; /* drained so far */
	uint64_t bad;	  /* impossible lengths: the ring is then skipped to its end */
	bool cut;	  /* the last drain ran out of time and left records */
};

#define RING_RECORD_MAX (64u << 10)

#define RING_ENDLESSLY UINT64_MAX /* until_ns of a drain without a time limit */

/* Maps the ring `fd` (taken over), which has `size` bytes of data. 0 or -errno. */
int ring_open(int fd, size_t size, struct ring *ret_ring);
void ring_done(struct ring *ring);

typedef void (*ring_call)(void *context, const void *record, size_t bytes);

/*
 * Passes committed records to `call` until none is left, or until until_ns (clock_mono_ns; at least
 * one record). In the latter case sets ring->cut, and the caller must call again soon, because
 * there is no wake-up for the rest. Frees the space in batches. The record is aligned to 8 and
 * valid during the call only. Returns the number of records; 0 for a ring that is not open.
 */
size_t ring_drain(struct ring *ring, uint64_t until_ns, ring_call call, void *context);

/* Returns the number of unread bytes in the ring. */
size_t ring_used(const struct ring *ring);

#endif
