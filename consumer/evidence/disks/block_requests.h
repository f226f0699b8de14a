/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block_requests.h: the disk requests of a session's cgroup, the time they were queued and the time
 * the disk took, and the other users of the disk: the difference of two readings. Pure, except for
 * the names of cgroups.
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
#include "consumer/signals/slot_nest.h"

#define BLOCK_DISKS	 16 /* pairs of disk and operation with a line; the others are one sum */
#define BLOCK_NEIGHBOURS 5  /* pairs of disk and cgroup with a line; the others are one sum */

/* Completed requests. */
struct block_times {
	uint64_t requests, bytes, queue_ns, service_ns, longest_ns, errors, merges;
	uint64_t error_ns; /* part of queue_ns and service_ns: requests with errors */
	uint64_t unseen;   /* part of `requests`: made before attach, so without times */
	uint64_t queue[QUEUE_BUCKETS], service[QUEUE_BUCKETS]; /* time_histogram.h */
};

/* Requests of the cgroup to one disk, of one operation. */
struct block_disk {
	uint32_t device; /* as in struct block_key */
	enum block_op op;
	struct block_times all;
	struct block_times sizes[BLOCK_SIZES];	   /* parts of `all` */
	uint64_t written_back, written_back_bytes; /* part of `all`: by the kernel's threads */
	uint64_t open, open_ns; /* unfinished requests, and the age of the oldest */
	uint64_t open_issued;	/* part of `open`: already issued to the disk */
	/* Requests of all cgroups, including unknown ones. */
	uint64_t everybody_requests, everybody_bytes, everybody_service_ns;
	uint64_t device_service_ns; /* time of all cgroups and all operations */
};

/* Another cgroup that used a disk of the session. */
struct block_neighbour {
	struct neighbour_row row;
	uint32_t device;
	uint64_t requests, bytes, service_ns;
	uint64_t disk_service_ns; /* of all cgroups, including service_ns */
};

struct block_requests {
	struct block_disk *items; /* owned; the most time first */
	size_t count;		  /* items with a line: at most BLOCK_DISKS */
	size_t rest; /* number of other pairs, summed in rest_times without histograms */
	struct block_times rest_times;
	struct block_neighbour *neighbours; /* owned; by cgroup until block_requests_close */
	size_t n_neighbours;	/* at most BLOCK_NEIGHBOURS after the close, the most time first */
	size_t more_neighbours; /* number of other pairs of disk and cgroup */
	struct block_neighbour more; /* sum of the other pairs; no path and no device */
	struct ledger ledger;	     /* of the session's requests, including unfinished ones */
};

/*
 * Sets *ret_requests to the counts from `before` to `now`; `owner` has the test for the session's
 * slots. Returns 0 or -ENOMEM. Release with block_requests_done.
 */
int block_requests_make(const struct block_reading *before, const struct block_reading *now,
			const struct slot_owner *owner, struct block_requests *ret_requests);

/* Makes the rows of the neighbours. Call once. */
void block_requests_close(struct block_requests *all, const struct neighbour_names *names);
void block_requests_done(struct block_requests *all);

/* Returns the operation's word from block_ops.def. */
const char *block_requests_op_name(enum block_op op);

/* Returns the largest request of a size class, in bytes; 0: no limit. */
uint64_t block_requests_size_bytes(unsigned int size);

/* Returns the sum over all disks and operations, without histograms. */
struct block_times block_requests_sum(const struct block_requests *all);

/*
 * Returns the block requests of a session's signals, which the session owns; NULL if it has none.
 */
static inline const struct block_requests *
block_requests_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_BLOCK);
}

#endif
