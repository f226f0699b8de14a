/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block_requests.h: what a session's cgroup asked of disks, how long its requests waited for their
 * disk and how long the disk took, and who else had that disk: the difference of two readings. Pure
 * but for the paths of cgroups.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_BLOCK_REQUESTS_H
#define TROCAR_CONSUMER_SIGNALS_BLOCK_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/delegated.h"
#include "consumer/signals/block_maps.h"
#include "consumer/signals/ledger.h"

#define BLOCK_DISKS	 16 /* pairs of a disk and an operation that are told; the rest is one sum */
#define BLOCK_NEIGHBOURS 5  /* pairs of a disk and a cgroup that are told; likewise */

/* Requests that are over. */
struct block_times {
	uint64_t requests, bytes, queue_ns, service_ns, longest_ns, errors, merges;
	uint64_t error_ns; /* of queue_ns and service_ns: of those with errors */
	uint64_t unseen;   /* of `requests`: made before anybody looked; they have no times */
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
	/* Requests of all cgroups, and of nobody that is known. */
	uint64_t everybody_requests, everybody_bytes, everybody_service_ns;
};

/*
 * Another cgroup that used a disk of the session; or a directory of a user, with all of his cgroups
 * below it that did (delegated.h).
 */
struct block_neighbour {
	uint32_t device;
	uint64_t cgroup_id;
	uint64_t requests, bytes, service_ns;
	uint64_t disk_service_ns;   /* of all cgroups: what service_ns is a part of */
	char *path;		    /* owned; NULL: it is not known */
	const char *unnamed;	    /* why that is so; a literal */
	size_t cgroups;		    /* how many: above 1, it is a directory */
	uint32_t uid;		    /* of the user, 0: none */
	const struct delegated *of; /* NULL, but while it is made */
};

struct block_requests {
	struct block_disk *items; /* owned; the most time first */
	size_t count;		  /* of `items` that are told: at most BLOCK_DISKS */
	size_t rest;		  /* so many more pairs, in rest_times without histograms */
	struct block_times rest_times;
	struct block_neighbour neighbours[BLOCK_NEIGHBOURS]; /* the most service time first */
	size_t n_neighbours;
	size_t more_neighbours;	     /* pairs of a disk and a cgroup beside these */
	struct block_neighbour more; /* their sum; no path and no device */
	struct ledger ledger;	     /* of the session's requests, open ones too */
};

/*
 * Tells whether a slot's watch is the session's, or within it (slot_nest_has), and what a cgroup is
 * called: a path to be freed by free(3), or NULL.
 */
struct block_names {
	bool (*is_own)(const void *context, uint32_t slot);
	char *(*path)(const void *context, uint64_t cgroup_id);
	const void *context;
	/* Returns the user's directory that the path is in or below, borrowed; NULL: it is in none.
	 * The pointer may be NULL. */
	const struct delegated *(*owner)(const void *context, const char *path);
};

/*
 * Makes *ret_requests of what was counted from `before` to `now`. 0 or -ENOMEM. Release with
 * block_requests_done.
 */
int block_requests_make(const struct block_reading *before, const struct block_reading *now,
			const struct block_names *names, struct block_requests *ret_requests);
void block_requests_done(struct block_requests *all);

/* Returns the word of block_ops.def. */
const char *block_requests_op_name(enum block_op op);

/* Returns the largest request of a size class, in bytes; 0: there is no limit. */
uint64_t block_requests_size_bytes(unsigned int size);

/* Returns the sum over all disks and operations, without histograms. */
struct block_times block_requests_sum(const struct block_requests *all);

#endif
