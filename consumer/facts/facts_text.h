/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_text.h: cuts the text of a kernel's file into lines, words and numbers, within its bounds.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_TEXT_H
#define TROCAR_CONSUMER_FACTS_FACTS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a text, not terminated. */
struct facts_text {
	const char *at;
	size_t bytes;
};

/*
 * Removes the next line that ends in '\n' from `rest`. Returns false at the end; an incomplete line
 * is none.
 */
bool facts_text_line(struct facts_text *rest, struct facts_text *ret_line);

/*
 * Removes the next word from `rest`: up to `end`, or the whole rest. Skips `end` before the word.
 * Returns false if nothing is left.
 */
bool facts_text_word(struct facts_text *rest, char end, struct facts_text *ret_word);

/* Returns whether `text` equals `word`. */
bool facts_text_is(struct facts_text text, const char *word);

/*
 * Reads a whole number; "max" and "-1" are UINT64_MAX, which means no limit. Returns false for
 * anything else.
 */
bool facts_text_number(struct facts_text word, uint64_t *ret_number);

#endif
