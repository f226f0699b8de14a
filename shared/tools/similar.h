/* SPDX-License-Identifier: BSD-2-Clause */
/* similar.h: the word that a mistyped one stands for. */
#ifndef TROCAR_SHARED_TOOLS_SIMILAR_H
#define TROCAR_SHARED_TOOLS_SIMILAR_H

#include <stddef.h>

/*
 * Offers a word to the search for the one that `typed` was meant to be: the nearest by letters
 * typed wrong, left out, doubled or exchanged with their neighbour (optimal string alignment), at
 * most one in three of them; or one that begins with all of `typed`, three letters at least. *best
 * is the nearest so far, NULL at first, *distance how far it is. Words of more than 32 bytes are
 * passed over.
 */
void similar_offer(const char *typed, const char *word, const char **best, size_t *distance);

#endif
