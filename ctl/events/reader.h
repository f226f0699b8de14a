/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h: event lines from a descriptor into a store. What is foreign is bounded: a line by
 * LINES_MAX_BYTES, all that is kept by the store's budget. Faulty lines are named and passed over.
 */
#ifndef TROCAR_CTL_EVENTS_READER_H
#define TROCAR_CTL_EVENTS_READER_H

#include <stdio.h>

#include "ctl/events/lines.h"
#include "ctl/events/select.h"
#include "ctl/events/store.h"

#define READER_FAULTS_SHOWN 10
#define READER_OPEN_MAX	    16 /* stacks whose parts are still to come */

/* A stack that comes in parts, of which some are still missing. */
struct reader_open {
	struct store_key key;
	struct store_value value;
	uint32_t id;	      /* its stack_id, a text of the store */
	uint64_t next, parts; /* the part that must come now, 0: a free place; and how many */
	uint32_t frames[STORE_FRAMES_MAX], n;
};

struct reader {
	struct store *store; /* borrowed, as are these */
	const struct select *select;
	const char *name; /* of the file, for faults */
	FILE *err;
	uint64_t faults;     /* lines */
	uint64_t stacks;     /* lines that were selected */
	uint64_t unselected; /* stack lines that were not */
	int error;	     /* what ends the reading: -ENOMEM, -ENOSPC */
	bool passed;	     /* the frames of this line are not wanted */
	uint32_t frames[STORE_FRAMES_MAX], n;
	struct reader_open *open; /* READER_OPEN_MAX */
	struct pool_budget known_budget;
	struct pool known; /* frames as they stand in lines, for speed alone */
	struct reader_known {
		uint32_t frame; /* its number in the store */
		uint32_t rest;	/* a text of `known` + 1: what stands behind the first '}' */
	} * known_frames;	/* one per text; those that are a rest have none */
	uint32_t known_space;
};

/* 0 or -ENOMEM. Release with reader_done. */
int reader_init(struct reader *r, struct store *store, const struct select *select,
		const char *name, FILE *err);
void reader_done(struct reader *r);

/* Reads the line of that number. Faults go to `err` and are counted. 0, -ENOMEM, -ENOSPC. */
int reader_line(struct reader *r, const struct lines_line *line, uint64_t number);

/* Reads all lines of `fd`. 0; else, said on `err`: -ENOMEM, -ENOSPC, what read(2) says. */
int reader_read(struct reader *r, int fd);

#endif
