/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwrap.h: where in a line of a log the event is. Log pipelines put something before it (a time
 * and a name, as syslog, kubectl and container runtimes do), or make it a string in an object of
 * their own (journalctl -o json, Docker's json-file, Fluent Bit, Vector).
 */
#ifndef TROCAR_CTL_EVENTS_UNWRAP_H
#define TROCAR_CTL_EVENTS_UNWRAP_H

#include <stdbool.h>
#include <stddef.h>

enum unwrap_what {
	UNWRAP_NOTHING,	 /* no event line: a message of another program, an empty line */
	UNWRAP_EVENT,	 /* an event, or the rest of one */
	UNWRAP_LEFT_OUT, /* journalctl left the message out, because it is long: it needs -a */
};

struct unwrap {
	char *text; /* an event with escaped quotes */
};

struct unwrapped {
	const char *text; /* in the line, or in struct unwrap until the next call */
	size_t bytes;
	size_t column; /* of the line, where it begins; 0 where its quotes were escaped */
};

/* 0 or -ENOMEM. Release with unwrap_done. */
int unwrap_init(struct unwrap *u);
void unwrap_done(struct unwrap *u);

/* Finds the event in a line of at most LINES_MAX_BYTES; *ret_found is set for UNWRAP_EVENT. */
enum unwrap_what unwrap_line(struct unwrap *u, const char *line, size_t bytes,
			     struct unwrapped *ret_found);

#endif
