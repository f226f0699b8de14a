/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kept_lines.h: keeps the lines of the last sessions in memory, in addition to the output, for
 * control clients that connect afterwards. The total size is limited, and shared by session: the
 * oldest lines of the sessions with the most bytes are dropped first, and counted by session.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_KEPT_LINES_H
#define TROCAR_CONSUMER_OUTPUT_KEPT_LINES_H

#include <stddef.h>
#include <stdint.h>

struct jsonw;

#define KEPT_LINES_SESSIONS 32 /* last sessions with counted lost lines */

struct kept_lines;

/* Keeps at most `bytes` bytes, which are allocated with the first line. 0 or -ENOMEM. */
int kept_lines_new(size_t bytes, struct kept_lines **ret_kept);
void kept_lines_free(struct kept_lines *kept);

/* Keeps those of the whole lines that belong to a session. Any thread. */
void kept_lines_put(void *kept, const char *data, size_t bytes, uint64_t lines);

/*
 * Writes the keys session, lines (an array of its lines, in order) and omitted (the number of
 * dropped lines) of the one session with an id that begins with `session`; NULL: of the last
 * session that ended. Returns 0; -ENOENT: there is none; -EEXIST: there are several.
 */
int kept_lines_write(struct kept_lines *kept, const char *session, struct jsonw *w);

#endif
