/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings_walk.h: reads the mappings of many processes in one walk of the `vmas` iterator over all
 * tasks, for kernels that find no process by its pid. The processes are entered in the map `asked`;
 * the iterator stays open between turns of the main loop. Main thread only.
 */
#ifndef TROCAR_CONSUMER_MAPPINGS_MAPPINGS_WALK_H
#define TROCAR_CONSUMER_MAPPINGS_MAPPINGS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/mappings/mapping_reading.h"
#include "consumer/mappings/mappings.h"

/* A process that is asked for. */
struct walk_entry {
	struct mapping_reading reading;
	uint64_t from;	    /* where the next walk continues it */
	unsigned int walks; /* that it has taken part in */
	int error;	    /* -errno of its reading */
	bool ended;	    /* it is in `ready`, or was */
};

struct mappings_walk {
	const struct pinned_maps *pins; /* borrowed, as symbols */
	struct symbols *symbols;
	struct walk_entry *entries; /* owned, ASKED_MAX; sorted by tgid while the walk runs */
	size_t count;
	struct walk_entry *last;   /* of the last records in this part; NULL: none */
	uint16_t ready[ASKED_MAX]; /* entries that this walk has ended, given from ready_at on */
	size_t ready_count, ready_at;
	bool open; /* the walk runs */
	int fd;
	uint8_t *buffer; /* owned */
	size_t filled;
	uint64_t read_ns; /* when the present part began */
	uint64_t walks;	  /* that were begun */
};

/* What was read of one process. */
struct mappings_answer {
	struct process_key key;
	int r;		      /* as mappings_read */
	struct mappings maps; /* with r 0 and -EOVERFLOW: for the caller to release */
};

/* Initialises it; nothing of `pins` is read before the first process is asked for. */
void mappings_walk_init(struct mappings_walk *w, const struct pinned_maps *pins,
			struct symbols *symbols);
void mappings_walk_done(struct mappings_walk *w);

/* Removes an earlier consumer's leftovers from the map `asked`. */
void mappings_walk_clear(const struct pinned_maps *pins);

/* Whether a walk has begun and not ended: no process can be asked for then. */
bool mappings_walk_runs(const struct mappings_walk *w);

/*
 * Asks for a process in the next walk. 0; -EEXIST when that walk has a process of the same pid;
 * -E2BIG when the map has no room; -EBUSY while a walk runs; -ENOMEM; -errno of bpf(2).
 */
int mappings_walk_ask(struct mappings_walk *w, const struct process_key *key);

/*
 * Goes on with the walk, or begins it, until until_ns (clock_mono_ns) or until a process has been
 * read. A process that comes in parts stays for the next walk. 1 with *ret_answer; 0 when the time
 * is over, or the walk has ended and all that it had were given.
 */
int mappings_walk_next(struct mappings_walk *w, uint64_t until_ns,
		       struct mappings_answer *ret_answer);

#endif
