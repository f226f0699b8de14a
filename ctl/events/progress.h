/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress.h: prints the progress of reading files on one line of a terminal, once it takes longer
 * than a second. Without a terminal nothing is printed.
 */
#ifndef TROCAR_CTL_EVENTS_PROGRESS_H
#define TROCAR_CTL_EVENTS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	FILE *err;	       /* borrowed; NULL: not a terminal */
	uint64_t all_bytes;    /* of all files; 0: not known */
	uint64_t before_bytes; /* of the files already read */
	uint64_t began_ns, said_ns;
	bool said;
};

/* Begins now; prints only if `err` is a terminal. */
void progress_init(struct progress *p, FILE *err, uint64_t all_bytes);

/* Prints the number of bytes read of the current file, unless it was printed a moment ago. */
void progress_say(struct progress *p, uint64_t file_bytes);

/* Ends the current file, of which `file_bytes` bytes were read. */
void progress_next(struct progress *p, uint64_t file_bytes);

/* Erases the line. */
void progress_done(struct progress *p);

#endif
