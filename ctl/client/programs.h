/* SPDX-License-Identifier: BSD-2-Clause */
/* programs.h: finds the other programs of trocar, which the command starts. */
#ifndef TROCAR_CTL_CLIENT_PROGRAMS_H
#define TROCAR_CTL_CLIENT_PROGRAMS_H

#include <limits.h>

enum program { PROGRAM_LOADER, PROGRAM_CONSUMER, PROGRAM_ACTIVATE };

/*
 * Writes the path of a program: the path in $TROCAR_LOADER or $TROCAR_CONSUMER, else the installed
 * program; else the program next to the command, as in a build tree. Returns `path`, which is the
 * installed path if the program is in none of these places.
 */
const char *program_path(enum program program, char path[PATH_MAX]);

#endif
