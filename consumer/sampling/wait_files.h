/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_files.h: the known facts about a file that a thread waits on: its path as the thread sees
 * it, the mount point of its file system, and its device and inode. Pure.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_WAIT_FILES_H
#define TROCAR_CONSUMER_SAMPLING_WAIT_FILES_H

#include <stddef.h>

#include "shared/abi/abi.h"

struct jsonw;

/* The text of a path, with a mark for omitted parts. */
#define WAIT_FILES_PATH_BYTES (LOOK_PATH_BYTES + 64)

/* Sets the path members of `to`: the valid ones of `on` if it is a file, else none. */
void wait_files_plain(const struct look_on *on, struct look_on *to);

/*
 * Writes the path: "/srv/[120 bytes]/base/16384" if it was too long, "(unreachable)/x" if its file
 * system is mounted nowhere, "[...]/x" if it has more components than were read. Returns its
 * length; 0 if it is unknown.
 */
size_t wait_files_path(const struct look_on *on, char text[WAIT_FILES_PATH_BYTES]);

/* Writes " on the file PATH", or the last part of the path; as snprintf(3). */
int wait_files_say(const struct look_on *on, char *text, size_t space);

/* Writes the members of a file. */
void wait_files_write(const struct look_on *on, struct jsonw *w);

#endif
