/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine.h: before the first foreign byte (an answer of the agent, a line of a file) the program
 * gives up all but reading and writing what is open.
 */
#ifndef TROCAR_CTL_CONFINE_H
#define TROCAR_CTL_CONFINE_H

/* Sets what confine_now does; without it, as in unit tests, nothing. */
void confine_by(int (*call)(void));

/* Does it, the first time. 0, or what the call returned: then nothing foreign may be read. */
int confine_now(void);

#endif
