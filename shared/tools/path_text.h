/* SPDX-License-Identifier: BSD-2-Clause */
/* path_text.h: paths that are too long for their place, cut in the middle. Pure. */
#ifndef TROCAR_SHARED_TOOLS_PATH_TEXT_H
#define TROCAR_SHARED_TOOLS_PATH_TEXT_H

#include <stddef.h>

#define PATH_TEXT_LEAST                                                           \
	48 /* bytes of room: less has none for both ends and what is said between \
	    */

/*
 * Writes the path, NUL-terminated, into `to`, of `space` bytes (PATH_TEXT_LEAST at least). A longer
 * one keeps a third of that at its begin and the rest at its end, from one name to another where
 * names are not too long, and never a part of a UTF-8 sequence; between them stands how much is
 * left out: "/srv/[1200 bytes]/base/16384". Returns how many bytes are left out.
 */
size_t path_text_cut(const char *path, size_t bytes, char *to, size_t space);

#endif
