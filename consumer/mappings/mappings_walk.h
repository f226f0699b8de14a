/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings_walk.h: reads the mappings of many processes in one walk of the `vmas` iterator over all
 * tasks, for kernels that cannot find a process by its pid. The processes are entered in the map
 * `asked`; the iterator stays open between iterations of the main loop. Main thread only.
 */
#ifndef TROCAR_CONSUMER_MAPPINGS_MAPPINGS_WALK_H
#define TROCAR_CONSUMER_MAPPINGS_MAPPINGS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/mappings/mapping_reading.h"
#include "consumer/mappings/mappings.h"

/* A requested process. */
struct walk_entry {
	struct mapping_reading reading;
	uint64_t from;	    /* the next walk continues from here */
	unsigned int walks; /* in which it has taken part */
	int error;	    /* -errno of its reading */
	bool ended;	    /* it is in `ready`, or was */
};

struct mappings_walk {
	const struct pinned_maps *pins; /* borrowed, like symbols */
	struct symbols *symbols;
	struct walk_entry *entries; /* owned, ASKED_MAX; sorted by tgid while the walk runs */
	size_t count;
	struct walk_entry *last;   /* of the last records in this part; NULL: none */
	uint16_t ready[ASKED_MAX]; /* entries that this walk has ended, returned from ready_at on */
	size_t ready_count, ready_at;
	bool open; /* the walk runs */
	int fd;
	uint8_t *buffer; /* owned */
	size_t filled;
	uint64_t read_ns; /* begin of the current part */
	uint64_t walks;	  /* walks begun */
};

/* The result for one process. */
struct mappings_answer {
	struct process_key key;
	int r;		      /* as mappings_read */
	struct mappings maps; /* if r is 0 or -EOVERFLOW: for the caller to release */
};

/* Initialises `w`; nothing of `pins` is read before the first request. */
void mappings_walk_init(struct mappings_walk *w, const struct pinned_maps *pins,
			struct symbols *symbols);
void mappings_walk_done(struct mappings_walk *w);

/* Removes an earlier consumer's leftovers from the map `asked`. */
void mappings_walk_clear(const struct pinned_maps *pins);

/* Returns whether a walk has begun and not ended: no process can be requested then. */
bool mappings_walk_runs(const struct mappings_walk *w);

/*
 * Requests a process in the next walk. Returns 0; -EEXIST if that walk has a process of the same
 * pid; -E2BIG if the map is full; -EBUSY while a walk runs; -ENOMEM; -errno of bpf(2).
 */
int mappings_walk_ask(struct mappings_walk *w, const struct process_key *key);

/*
 * Continues or begins the walk, until until_ns (clock_mono_ns) or until a process has been read. A
 * process that needs several parts stays for the next walk. Returns 1 with *ret_answer; 0 if the
 * time is over, or if the walk has ended and all its results were returned.
 */
int mappings_walk_next(struct mappings_walk *w, uint64_t until_ns,
		       struct mappings_answer *ret_answer);

#endif
