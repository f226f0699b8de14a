/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * environment.h: selects the variables that our program receives from the environment of the
 * program that starts it. The environment of a root shell holds keys, passwords and sockets; the
 * consumer parses hostile files.
 */
#ifndef TROCAR_SHARED_TOOLS_ENVIRONMENT_H
#define TROCAR_SHARED_TOOLS_ENVIRONMENT_H

#define ENVIRONMENT_ROOM 8

/*
 * Fills `small` with the variables of `all`, NULL at its end, that our programs read: PATH, LANG,
 * TERM, and those of a passed socket (sd_listen_fds(3)). The strings are borrowed from `all`.
 * Returns `small`, NULL at its end.
 */
char *const *environment_small(char *const *all, char *small[ENVIRONMENT_ROOM]);

#endif
