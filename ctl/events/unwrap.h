/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwrap.h: finds the event in a line of a log. Log pipelines put a prefix before it (a time and a
 * name: syslog, kubectl, container runtimes), or put it as a string into their own object
 * (journalctl -o json, Docker's json-file, Fluent Bit, Vector).
 */
#ifndef TROCAR_CTL_EVENTS_UNWRAP_H
#define TROCAR_CTL_EVENTS_UNWRAP_H

#include <stdbool.h>
#include <stddef.h>

enum unwrap_what {
	UNWRAP_NOTHING,	 /* not an event line: a message of another program, an empty line */
	UNWRAP_EVENT,	 /* an event, or the rest of one */
	UNWRAP_LEFT_OUT, /* journalctl omitted the message, because it is long: needs -a */
};

struct unwrap {
	char *text; /* buffer for an event with escaped quotes */
};

struct unwrapped {
	const char *text; /* in the line, or in struct unwrap until the next call */
	size_t bytes;
	size_t column; /* where it begins in the line; 0 if its quotes were escaped */
};

/* 0 or -ENOMEM. Release with unwrap_done. */
int unwrap_init(struct unwrap *u);
void unwrap_done(struct unwrap *u);

/* Finds the event in a line of at most LINES_MAX_BYTES; *ret_found is set for UNWRAP_EVENT. */
enum unwrap_what unwrap_line(struct unwrap *u, const char *line, size_t bytes,
			     struct unwrapped *ret_found);

#endif
