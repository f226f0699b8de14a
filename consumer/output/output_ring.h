/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * output_ring.h: lines in a ring of bytes. Positions only grow and are taken modulo the ring's
 * size.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_OUTPUT_RING_H
#define TROCAR_CONSUMER_OUTPUT_OUTPUT_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct output_ring {
	char *data; /* owned by the queue */
	size_t space;
};

/* The contents of the queue at its end. */
struct output_queue_left {
	uint64_t lines; /* including a partly written line */
	uint64_t bytes;
	uint64_t sessions; /* of the lines session.end */
};

/* Maps `n` bytes from position `at` to iov; returns the number of pieces. */
int output_ring_pieces(const struct output_ring *ring, size_t at, size_t n, struct iovec iov[2]);

/*
 * Counts the lines that end within `n` bytes from `at`; sets *ret_whole to the end of the last one.
 */
uint64_t output_ring_lines(const struct output_ring *ring, size_t at, size_t n, size_t *ret_whole);

/* Returns the bytes from `at` to the end of its line, at most `n`. */
size_t output_ring_line(const struct output_ring *ring, size_t at, size_t n);

/* Counts `bytes` bytes of whole lines from `head` on. */
struct output_queue_left output_ring_left(const struct output_ring *ring, size_t head,
					  size_t bytes);

#endif
