/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue_histogram.h: waits for a CPU by length, in the kernel side's buckets (QUEUE_BUCKETS), and
 * their percentiles. Pure.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_QUEUE_HISTOGRAM_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_QUEUE_HISTOGRAM_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct jsonw;

/* Sums over threads. */
struct queue_histogram {
	uint64_t waits[QUEUE_BUCKETS];
	uint64_t behind_ns[QUEUE_BEHIND_];
};

/* Adds the waits of one thread. */
void queue_histogram_add(struct queue_histogram *h, const struct thread_queue *queue);

/* Adds `more` to `h`. */
void queue_histogram_merge(struct queue_histogram *h, const struct queue_histogram *more);

/* Returns the number of waits. */
uint64_t queue_histogram_count(const struct queue_histogram *h);

/* Returns the total time of all waits, in ns. */
uint64_t queue_histogram_sum_ns(const struct queue_histogram *h);

/* Returns the word of queue_behind.def. */
const char *queue_histogram_behind_name(enum queue_behind behind);

/*
 * Writes the keys of a `histogram` line: unit, the buckets that are not empty, count, sum, p50,
 * p90, p99, behind. An unknown bound is null.
 */
void queue_histogram_write(const struct queue_histogram *h, struct jsonw *w);

#endif
