/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h: reads the event lines of files, one file after the other, into a store. Foreign data is
 * bounded: a line by LINES_MAX_BYTES, the kept data by the store's budget. Lines of other programs
 * are counted and skipped, faulty event lines are reported and skipped, repeated lines are skipped.
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
	struct store *store; /* borrowed, as the next three */
	const struct select *select;
	const char *name; /* of the file, for faults */
	FILE *err;
	uint64_t faults;     /* faulty event lines, and files not read to their end */
	uint64_t others;     /* lines of other programs */
	uint64_t left_out;   /* messages that journalctl left out */
	uint64_t again;	     /* repeated lines */
	uint64_t events;     /* lines that are events */
	uint64_t stacks;     /* selected stack lines */
	uint64_t unselected; /* unselected stack lines */
	uint64_t not_asked;  /* of these: unselected only by the signal, which the command chose */
	int error;	     /* error that ends the reading: -ENOMEM, -ENOSPC */
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
 * Reads all lines of `fd`, the file `name`. 0, also if it could not be read to its end, which is
 * printed on `err` and counted as a fault; else -ENOMEM, -ENOSPC, also printed on `err`.
 */
int reader_read(struct reader *r, int fd, const char *name, struct progress *progress);

/* Prints the numbers of skipped lines of all files on `err`. */
void reader_end(const struct reader *r);

#endif
