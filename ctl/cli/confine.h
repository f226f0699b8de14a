/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine.h: before the first foreign byte (an answer of the agent, a line of a file) the program
 * gives up all but reading and writing open descriptors.
 */
#ifndef TROCAR_CTL_CLI_CONFINE_H
#define TROCAR_CTL_CLI_CONFINE_H

enum confine {
	CONFINE_READER,	  /* reads and writes open descriptors */
	CONFINE_OPENER,	  /* opens files to read them, too, and starts resolvers */
	CONFINE_RESOLVER, /* such a process: reads its descriptors and answers */
};

/* Sets the action of confine_now; without it, as in unit tests, nothing. */
void confine_by(int (*call)(enum confine what));

/*
 * Does it, the first time of each kind. 0, or the value of the call: then nothing foreign may be
 * read.
 */
int confine_now(enum confine what);

#endif
