/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block_requests.h: the disk requests of a session's cgroup, how long they waited for their disk
 * and how long the disk took, and the other users of that disk: the difference of two readings.
 * Pure but for the names of cgroups.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_DISKS_BLOCK_REQUESTS_H
#define TROCAR_CONSUMER_EVIDENCE_DISKS_BLOCK_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/disks/block_maps.h"
#include "consumer/signals/ledger.h"
#include "consumer/signals/neighbour_rows.h"
#include "consumer/signals/signals.h"

#define BLOCK_DISKS	 16 /* pairs of a disk and an operation with a line; the rest is one sum */
#define BLOCK_NEIGHBOURS 5  /* pairs of a disk and a cgroup with a line; likewise */

/* Requests that are over. */
struct block_times {
	uint64_t requests, bytes, queue_ns, service_ns, longest_ns, errors, merges;
	uint64_t error_ns; /* of queue_ns and service_ns: of those with errors */
	uint64_t unseen;   /* of `requests`: made before the programs were attached; they have no
			      times */
	uint64_t queue[QUEUE_BUCKETS], service[QUEUE_BUCKETS]; /* time_histogram.h */
};

/* What the cgroup asked of one disk, of one operation. */
struct block_disk {
	uint32_t device; /* as in struct block_key */
	enum block_op op;
	struct block_times all;
	struct block_times sizes[BLOCK_SIZES];	   /* of `all` */
	uint64_t written_back, written_back_bytes; /* of `all`: by the kernel's threads */
	uint64_t open, open_ns; /* requests that are not over, and how old the oldest is */
	uint64_t open_issued;	/* of `open`: that the disk has */
	/* Requests of all cgroups, and of unknown ones. */
	uint64_t everybody_requests, everybody_bytes, everybody_service_ns;
	uint64_t device_service_ns; /* the same, of all operations */
};

/* Others that used a disk of the session. */
struct block_neighbour {
	struct neighbour_row row;
	uint32_t device;
	uint64_t requests, bytes, service_ns;
	uint64_t disk_service_ns; /* of all cgroups: what service_ns is a part of */
};

struct block_requests {
	struct block_disk *items; /* owned; the most time first */
	size_t count;		  /* of `items` with a line: at most BLOCK_DISKS */
	size_t rest;		  /* so many more pairs, in rest_times without histograms */
	struct block_times rest_times;
	struct block_neighbour *neighbours; /* owned; by cgroup until block_requests_close */
	size_t n_neighbours;	     /* from then on at most BLOCK_NEIGHBOURS, the most first */
	size_t more_neighbours;	     /* pairs of a disk and a cgroup beside these */
	struct block_neighbour more; /* their sum; no path and no device */
	struct ledger ledger;	     /* of the session's requests, open ones too */
};

/*
 * Makes *ret_requests of the counts from `before` to `now`. `is_own` returns whether a slot's watch
 * is the session's, or within it (slot_nest_has). 0 or -ENOMEM. Release with block_requests_done.
 */
int block_requests_make(const struct block_reading *before, const struct block_reading *now,
			bool (*is_own)(const void *context, uint32_t slot), const void *context,
			struct block_requests *ret_requests);

/* Makes the rows of the neighbours, once. */
void block_requests_close(struct block_requests *all, const struct neighbour_names *names);
void block_requests_done(struct block_requests *all);

/* Returns the word of block_ops.def. */
const char *block_requests_op_name(enum block_op op);

/* Returns the largest request of a size class, in bytes; 0: there is no limit. */
uint64_t block_requests_size_bytes(unsigned int size);

/* Returns the sum over all disks and operations, without histograms. */
struct block_times block_requests_sum(const struct block_requests *all);

/* Returns those of a session's signals; the session owns them. NULL: it has none. */
static inline const struct block_requests *
block_requests_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_BLOCK);
}

#endif
