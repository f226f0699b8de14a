/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kept_lines.h: keeps the lines of the last sessions in memory, beside the output, for clients of
 * the control socket that come afterwards. Its bytes are bounded, and shared by session: the oldest
 * lines of the sessions with the most bytes go first, and are counted by session.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_KEPT_LINES_H
#define TROCAR_CONSUMER_OUTPUT_KEPT_LINES_H

#include <stddef.h>
#include <stdint.h>

struct jsonw;

#define KEPT_LINES_SESSIONS 32 /* with counted lost lines, the last that began */

struct kept_lines;

/* Keeps at most `bytes` bytes, which are allocated with the first line. 0 or -ENOMEM. */
int kept_lines_new(size_t bytes, struct kept_lines **ret_kept);
void kept_lines_free(struct kept_lines *kept);

/* Keeps those of the whole lines that are of a session. Any thread. */
void kept_lines_put(void *kept, const char *data, size_t bytes, uint64_t lines);

/*
 * Writes the keys session, lines (an array of its lines, in order) and omitted (how many are not
 * kept any more) of the one session with an id that begins with `session`; NULL: of the last that
 * ended. 0; -ENOENT: there is none; -EEXIST: there are more.
 */
int kept_lines_write(struct kept_lines *kept, const char *session, struct jsonw *w);

#endif
