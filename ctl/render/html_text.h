/* SPDX-License-Identifier: BSD-2-Clause */
/* html_text.h: text of a report as HTML. */
#ifndef TROCAR_CTL_RENDER_HTML_TEXT_H
#define TROCAR_CTL_RENDER_HTML_TEXT_H

#include <stdio.h>

/*
 * Writes `bytes` bytes of text: what HTML reads as markup is escaped, the styles of terminal.h
 * become spans, "\x1b[31m" one of the class c31, each closed within the text. Other escape
 * sequences and control characters but line ends and tabs are left out.
 */
void html_text_put(const char *text, size_t bytes, FILE *out);

/*
 * Writes a report as sections: each begins behind an empty line, its first line up to ": " is its
 * heading. `behind` is called once, after the section with the heading `last`, or at the end; the
 * sections until there are sentences, which the browser folds (class "words"); lines of the others
 * have at most `columns`. 0 or -ENOMEM.
 */
int html_text_sections(const char *report, unsigned int columns, const char *last,
		       void (*behind)(void *context), void *context, FILE *out);

/* Writes bytes as base64 (RFC 4648), without line ends. */
void html_text_base64(const char *data, size_t bytes, FILE *out);

#endif
