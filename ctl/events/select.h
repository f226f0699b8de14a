/* SPDX-License-Identifier: BSD-2-Clause */
/* select.h: which lines of an event file count. */
#ifndef TROCAR_CTL_EVENTS_SELECT_H
#define TROCAR_CTL_EVENTS_SELECT_H

#include "ctl/cli/options.h"
#include "ctl/events/event.h"

/* The option --signal has it, and no line. */
#define SELECT_WALL "wall"

struct select {
	const char *session;	   /* its first digits; borrowed, as all; NULL: any */
	const char *rule, *cgroup; /* cgroup: it and all below it */
	const char *host;
	const char *signal, *phase, *comm;
	bool by_default; /* the command chose the signal, and not the command line */
	bool wall;	 /* in place of `signal`: oncpu and offcpu, with times that add up */
	bool has_pid;
	uint64_t pid;
	uint64_t since_ns, until_ns; /* of the session's earliest line */
};

/* From the command line; prints a fault on its `err`. 0 or -EINVAL. */
int select_options(const struct options *options, struct select *ret_select);

/*
 * Whether this may be a wanted stack line, going by the keys that are known so far; with `all` the
 * wanted ones must be there.
 */
bool select_stack(const struct select *s, const struct event *event, bool all);

/* Whether this stack line is not wanted for its signal alone, which the command chose. */
bool select_lacks_signal(const struct select *s, const struct event *event);

/* Whether the session of this line is wanted, when it began at `time_ns`. */
bool select_session(const struct select *s, const struct event *event, uint64_t time_ns);

/* Whether a line of that time that is of no session is wanted. */
bool select_other(const struct select *s, const struct event *event, uint64_t time_ns);

#endif
