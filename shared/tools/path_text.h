/* SPDX-License-Identifier: BSD-2-Clause */
/* path_text.h: compares paths, and cuts paths that are too long in the middle. Pure. */
#ifndef TROCAR_SHARED_TOOLS_PATH_TEXT_H
#define TROCAR_SHARED_TOOLS_PATH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define PATH_TEXT_LEAST 48 /* bytes: space for both ends and the number between */

/*
 * Writes the path, NUL-terminated, into `to`, of `space` bytes (at least PATH_TEXT_LEAST). A longer
 * path keeps a third of `space` at its begin and the rest at its end. It is cut between names if
 * these are not too long, and never within a UTF-8 sequence. Between the two parts is the number of
 * omitted bytes: "/srv/[1200 bytes]/base/16384". Returns the number of omitted bytes.
 */
size_t path_text_cut(const char *path, size_t bytes, char *to, size_t space);

/* Returns whether `path` is the directory `above`, without a '/' at its end, or is below it. */
bool path_text_is_within(const char *path, const char *above);

#endif
