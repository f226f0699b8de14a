/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine.h: before the program reads the first foreign byte (an answer of the agent, a line of a
 * file), it gives up all rights except reading and writing open descriptors.
 */
#ifndef TROCAR_CTL_CLI_CONFINE_H
#define TROCAR_CTL_CLI_CONFINE_H

enum confine {
	CONFINE_READER,	  /* reads and writes open descriptors */
	CONFINE_OPENER,	  /* also opens files for reading, and starts resolvers */
	CONFINE_RESOLVER, /* a resolver process: reads its descriptors and answers */
};

/* Sets the action of confine_now. Without this call, as in unit tests, confine_now does nothing. */
void confine_by(int (*call)(enum confine what));

/*
 * Performs the action, at the first call for each kind. 0, or the value of the action: then the
 * caller must not read foreign bytes.
 */
int confine_now(enum confine what);

#endif
