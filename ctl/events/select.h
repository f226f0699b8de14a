/* SPDX-License-Identifier: BSD-2-Clause */
/* select.h: selects lines of an event file. */
#ifndef TROCAR_CTL_EVENTS_SELECT_H
#define TROCAR_CTL_EVENTS_SELECT_H

#include "ctl/cli/options.h"
#include "ctl/events/event.h"

/* A value of --signal that no line has. */
#define SELECT_WALL "wall"

struct select {
	const char *session;	   /* its first digits; borrowed, as all texts; NULL: any */
	const char *rule, *cgroup; /* cgroup: the cgroup and all cgroups below it */
	const char *host;
	const char *signal, *phase, *comm;
	bool by_default; /* the command chose the signal, not the command line */
	bool wall;	 /* instead of `signal`: oncpu and offcpu, with times that add up */
	bool has_pid;
	uint64_t pid;
	uint64_t since_ns, until_ns; /* of the session's earliest line */
};

/* Reads the selection from the command line; prints a fault on its `err`. 0 or -EINVAL. */
int select_options(const struct options *options, struct select *ret_select);

/*
 * Returns whether this may be a wanted stack line, by the keys that are known so far; with `all`
 * the selected keys must be present.
 */
bool select_stack(const struct select *s, const struct event *event, bool all);

/* Returns whether only the signal, which the command chose, excludes this stack line. */
bool select_lacks_signal(const struct select *s, const struct event *event);

/* Returns whether the session of this line is wanted, given that it began at `time_ns`. */
bool select_session(const struct select *s, const struct event *event, uint64_t time_ns);

/* Returns whether a line without a session and with the time `time_ns` is wanted. */
bool select_other(const struct select *s, const struct event *event, uint64_t time_ns);

#endif
