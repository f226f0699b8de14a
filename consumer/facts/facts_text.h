/* SPDX-License-Identifier: BSD-2-Clause */
/* facts_text.h: cuts the text of a kernel's file into lines, words and numbers, within its bounds.
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

/* Cuts off the next line that ends in '\n'. False at the end; a line that was cut is none. */
bool facts_text_line(struct facts_text *rest, struct facts_text *ret_line);

/*
 * Cuts off the next word: up to `end`, or all that is left. Passes over `end` before it. False when
 * nothing is left.
 */
bool facts_text_word(struct facts_text *rest, char end, struct facts_text *ret_word);

/* Whether it is these characters. */
bool facts_text_is(struct facts_text text, const char *word);

/*
 * Reads a whole number; "max" and "-1" are UINT64_MAX, which is no limit. False for anything else.
 */
bool facts_text_number(struct facts_text word, uint64_t *ret_number);

#endif
