/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/kernel/ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/tools/clock.h"

/*
 * The consumer returns space to the producer after this many bytes: often enough that the producer
 * never runs out.
 */
#define RELEASE_BYTES (128u << 10)

#define LOOK_EACH 16 /* records, between two readings of the exact clock */

int ring_open(int fd, size_t size, struct ring *ret_ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ring ring = { .fd = fd, .size = size };
	uint8_t *rest;

	ring.consumer_pos = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring.consumer_pos == MAP_FAILED)
		return -errno;
	rest = mmap(NULL, page + size, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (rest == MAP_FAILED) {
		int r = -errno;

		munmap(ring.consumer_pos, page);
		return r;
	}
	ring.producer_pos = (const unsigned long *)rest;
	ring.data = rest + page;
	*ret_ring = ring;
	return 0;
}

void ring_done(struct ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (ring->consumer_pos) {
		munmap(ring->consumer_pos, page);
		munmap((void *)(uintptr_t)ring->producer_pos, page + ring->size);
		close(ring->fd);
	}
	free(ring->bounce);
	*ring = (struct ring){ .fd = -1 };
}

size_t ring_used(const struct ring *ring)
{
	unsigned long producer = __atomic_load_n(ring->producer_pos, __ATOMIC_ACQUIRE);

	return MIN(producer - *ring->consumer_pos, ring->size);
}

/* Returns the record at `at` in one piece; NULL when there is no memory for the bounce buffer. */
static const void *whole_record(struct ring *ring, size_t at, size_t bytes)
{
	const uint8_t *start = ring->data + at;
	size_t head = ring->size - at;

	if (bytes <= head)
		return start;
	if (ring->bounce_bytes < bytes) {
		uint8_t *more = realloc(ring->bounce, bytes);

		if (!more)
			return NULL;
		ring->bounce = more;
		ring->bounce_bytes = bytes;
	}
	memcpy(ring->bounce, start, head);
	memcpy(ring->bounce + head, ring->data, bytes - head);
	return ring->bounce;
}

/* The receiver of the records of one drain, and when it must end (clock_mono_ns). */
struct draining {
	ring_call call;
	void *context;
	uint64_t until_ns;
};

/*
 * The coarse clock is free and may be one tick late. The exact one costs 30 ns, as much as passing
 * on a small record, and is read after every LOOK_EACH records.
 */
static bool is_over(const struct ring *ring, const struct draining *d)
{
	return clock_coarse_ns() >= d->until_ns ||
	       (ring->records % LOOK_EACH == 0 && clock_mono_ns() >= d->until_ns);
}

/*
 * Drains up to `producer`, or until the time is over, and returns the new position. Returns space
 * every RELEASE_BYTES.
 */
static unsigned long drain_to(struct ring *ring, unsigned long pos, unsigned long producer,
			      const struct draining *d)
{
	size_t mask = ring->size - 1;
	unsigned long released = pos;

	if (!ring->data)
		return pos;
	/* A record is bounded by the rest, so this check keeps each record within the ring. */
	if (producer - pos > ring->size) {
		ring->bad++;
		return producer;
	}
	while (pos < producer) {
		size_t at = pos & mask, bytes;
		uint32_t header =
			__atomic_load_n((const uint32_t *)(ring->data + at), __ATOMIC_ACQUIRE);

		if (header & BPF_RINGBUF_BUSY_BIT)
			break;
		bytes = header & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		if (bytes > RING_RECORD_MAX ||
		    ALIGN_UP(bytes + BPF_RINGBUF_HDR_SZ, 8) > producer - pos) {
			ring->bad++;
			return producer;
		}
		if (!(header & BPF_RINGBUF_DISCARD_BIT)) {
			const void *record =
				whole_record(ring, (at + BPF_RINGBUF_HDR_SZ) & mask, bytes);

			if (record)
				d->call(d->context, record, bytes);
			else
				ring->bad++;
			ring->records++;
		}
		pos += ALIGN_UP(bytes + BPF_RINGBUF_HDR_SZ, 8);
		if (pos - released >= RELEASE_BYTES || pos - released >= ring->size / 4) {
			__atomic_store_n(ring->consumer_pos, pos, __ATOMIC_RELEASE);
			released = pos;
		}
		if (pos < producer && is_over(ring, d)) {
			ring->cut = true;
			break;
		}
	}
	return pos;
}

/*
 * The kernel wakes the consumer only for a record that is committed when consumer_pos equals the
 * producer's position. A record that was committed between the consumer's last load of producer_pos
 * and its store of consumer_pos causes no wake-up. So the consumer loads producer_pos again after
 * the store; both are sequentially consistent.
 */
size_t ring_drain(struct ring *ring, uint64_t until_ns, ring_call call, void *context)
{
	const struct draining d = { call, context, until_ns };
	unsigned long pos, producer, before;
	uint64_t records = ring->records;

	ring->cut = false;
	if (!ring->size)
		return 0;
	pos = *ring->consumer_pos;
	do {
		before = pos;
		producer = __atomic_load_n(ring->producer_pos, __ATOMIC_SEQ_CST);
		pos = drain_to(ring, pos, producer, &d);
		__atomic_store_n(ring->consumer_pos, pos, __ATOMIC_SEQ_CST);
	} while (pos != before && !ring->cut);
	return (size_t)(ring->records - records);
}
