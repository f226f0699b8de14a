/* SPDX-License-Identifier: BSD-2-Clause */
/* html_text.h: writes the text of a report as HTML. */
#ifndef TROCAR_CTL_RENDER_HTML_TEXT_H
#define TROCAR_CTL_RENDER_HTML_TEXT_H

#include <stdio.h>

/*
 * Writes `bytes` bytes of text: markup is escaped; the styles of terminal.h become spans
 * ("\x1b[31m": a span of the class c31), each closed within the text. Other escape sequences, and
 * control characters except line ends and tabs, are dropped.
 */
void html_text_put(const char *text, size_t bytes, FILE *out);

/*
 * Writes a report as sections: each begins after an empty line, and its first line up to ": " is
 * its heading. `behind` is called once, after the section with the heading `last`, or at the end.
 * The sections up to that one are sentences, which the browser wraps (class "words"); lines of the
 * later ones have at most `columns`. 0 or -ENOMEM.
 */
int html_text_sections(const char *report, unsigned int columns, const char *last,
		       void (*behind)(void *context), void *context, FILE *out);

/* Writes bytes as base64 (RFC 4648), without line ends. */
void html_text_base64(const char *data, size_t bytes, FILE *out);

#endif
