/* SPDX-License-Identifier: BSD-2-Clause */
/* programs.h: where the other programs of trocar are that the command starts. */
#ifndef TROCAR_CTL_CLIENT_PROGRAMS_H
#define TROCAR_CTL_CLIENT_PROGRAMS_H

#include <limits.h>

enum program { PROGRAM_LOADER, PROGRAM_CONSUMER, PROGRAM_ACTIVATE };

/*
 * Writes the path of a program: the path in $TROCAR_LOADER or $TROCAR_CONSUMER, else the installed
 * one; where it is not, beside the command, as a built tree has it. Returns `path`, which names the
 * installed place where the program is nowhere.
 */
const char *program_path(enum program program, char path[PATH_MAX]);

#endif
