/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress.h: how far the reading of files is, on one line of a terminal, once it takes longer than
 * a second. Elsewhere nothing is printed.
 */
#ifndef TROCAR_CTL_EVENTS_PROGRESS_H
#define TROCAR_CTL_EVENTS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	FILE *err;	       /* borrowed; NULL: no terminal */
	uint64_t all_bytes;    /* of all files; 0: not known */
	uint64_t before_bytes; /* of those that are read */
	uint64_t began_ns, said_ns;
	bool said;
};

/* Begins now; `err` decides whether it is a terminal. */
void progress_init(struct progress *p, FILE *err, uint64_t all_bytes);

/* Prints the number of bytes read of the present file, unless it was printed a moment ago. */
void progress_say(struct progress *p, uint64_t file_bytes);

/* A file of so many bytes is read. */
void progress_next(struct progress *p, uint64_t file_bytes);

/* Takes the line away. */
void progress_done(struct progress *p);

#endif
