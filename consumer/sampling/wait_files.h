/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_files.h: the known facts about a file that a thread waits on: its path as the thread itself
 * names it, where its file system is mounted, and which file it is of that. Pure.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_WAIT_FILES_H
#define TROCAR_CONSUMER_SAMPLING_WAIT_FILES_H

#include <stddef.h>

#include "shared/abi/abi.h"

struct jsonw;

/* The text of a path, with a mark for left-out parts. */
#define WAIT_FILES_PATH_BYTES (LOOK_PATH_BYTES + 64)

/* Sets the path members of `to`: what is sound in `on` where that is a file, else nothing. */
void wait_files_plain(const struct look_on *on, struct look_on *to);

/*
 * Writes the path, "/srv/[120 bytes]/base/16384" where it was too long; "(unreachable)/x" where
 * its file system is mounted nowhere, "[...]/x" where it has more names than were read. Returns its
 * length; 0: it is not known.
 */
size_t wait_files_path(const struct look_on *on, char text[WAIT_FILES_PATH_BYTES]);

/* Writes " on the file PATH", or the last part of the path; as snprintf(3). */
int wait_files_say(const struct look_on *on, char *text, size_t space);

/* Writes the members of a file. */
void wait_files_write(const struct look_on *on, struct jsonw *w);

#endif
