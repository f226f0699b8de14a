/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reason_text.h: checks the reason in a request for a session: an alert, a probe, a person. The
 * reason appears in lines that people read, so it has no control characters.
 */
#ifndef TROCAR_SHARED_TOOLS_REASON_TEXT_H
#define TROCAR_SHARED_TOOLS_REASON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define REASON_TEXT_BYTES 201 /* with its NUL */

/* The right form of a reason, for a message after "must be" or "want". */
#define REASON_TEXT_RIGHT "1 to 200 bytes of UTF-8 without control characters"

/*
 * Returns whether `bytes` bytes, which need no NUL after them, are a valid reason. Control
 * characters are those of utf8_is_control.
 */
bool reason_text_is_right(const char *text, size_t bytes);

#endif
