/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h: event lines of files, one behind the other, into a store. What is foreign is bounded: a
 * line by LINES_MAX_BYTES, all that is kept by the store's budget. Lines of other programs are
 * counted, faulty event lines named, and both passed over; so are lines that come again.
 */
#ifndef TROCAR_CTL_EVENTS_READER_H
#define TROCAR_CTL_EVENTS_READER_H

#include <stdio.h>

#include "ctl/events/asides.h"
#include "ctl/events/known_frames.h"
#include "ctl/events/lines.h"
#include "ctl/events/offers.h"
#include "ctl/events/parts.h"
#include "ctl/events/progress.h"
#include "ctl/events/seen.h"
#include "ctl/events/select.h"
#include "ctl/events/store.h"
#include "ctl/events/unwrap.h"

#define READER_FAULTS_SHOWN 10

struct reader {
	struct store *store; /* borrowed, as are these */
	const struct select *select;
	const char *name; /* of the file, for faults */
	FILE *err;
	uint64_t faults;     /* event lines, and files that could not be read to their end */
	uint64_t others;     /* lines of other programs */
	uint64_t left_out;   /* messages that journalctl left out */
	uint64_t again;	     /* lines that were there before */
	uint64_t events;     /* lines that are events */
	uint64_t stacks;     /* lines that were selected */
	uint64_t unselected; /* stack lines that were not */
	uint64_t not_asked;  /* of these: for the signal alone, which the command chose */
	int error;	     /* what ends the reading: -ENOMEM, -ENOSPC */
	bool passed;	     /* the frames of this line are not wanted */
	uint32_t frames[STORE_FRAMES_MAX], n;
	struct known_frames known;
	struct parts parts;
	struct unwrap unwrap;
	struct seen seen;
	struct asides asides;
	struct offers offers;
};

/* 0 or -ENOMEM. Release with reader_done. */
int reader_init(struct reader *r, struct store *store, const struct select *select, FILE *err);
void reader_done(struct reader *r);

/* Reads the line of that number. Faults go to `err` and are counted. 0, -ENOMEM, -ENOSPC. */
int reader_line(struct reader *r, const struct lines_line *line, uint64_t number);

/*
 * Reads all lines of `fd`, a file of that name. 0, also where it could not be read to its end,
 * which is printed on `err` and counted as a fault; else, printed on `err`: -ENOMEM, -ENOSPC.
 */
int reader_read(struct reader *r, int fd, const char *name, struct progress *progress);

/* Prints the skipped lines of all files on `err`. */
void reader_end(const struct reader *r);

#endif
