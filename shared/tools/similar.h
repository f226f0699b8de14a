/* SPDX-License-Identifier: BSD-2-Clause */
/* similar.h: finds the word that the user of a mistyped word meant. */
#ifndef TROCAR_SHARED_TOOLS_SIMILAR_H
#define TROCAR_SHARED_TOOLS_SIMILAR_H

#include <stddef.h>

/*
 * Adds a candidate to the search for the word meant by `typed`. The result is the nearest word by
 * the number of letters that are wrong, missing, doubled or exchanged with their neighbour (optimal
 * string alignment), at most one in three letters; or a word that begins with all of `typed`, at
 * least three letters. *best is the nearest word so far, NULL at first; *distance is its distance.
 * Words of more than 32 bytes are skipped.
 */
void similar_offer(const char *typed, const char *word, const char **best, size_t *distance);

#endif
