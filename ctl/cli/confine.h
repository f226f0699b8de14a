/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine.h: before the first foreign byte (an answer of the agent, a line of a file) the program
 * gives up all but reading and writing what is open.
 */
#ifndef TROCAR_CTL_CLI_CONFINE_H
#define TROCAR_CTL_CLI_CONFINE_H

enum confine {
	CONFINE_READER,	  /* reads and writes what is open */
	CONFINE_OPENER,	  /* opens files to read them, too, and starts resolvers */
	CONFINE_RESOLVER, /* such a process: reads what it was given and answers */
};

/* Sets what confine_now does; without it, as in unit tests, nothing. */
void confine_by(int (*call)(enum confine what));

/* Does it, the first time of each kind. 0, or what the call returned: then nothing foreign may be
 * read. */
int confine_now(enum confine what);

#endif
