/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/similar.h"

#include <string.h>

#include "shared/tools/macro.h"

#define WORD_MAX     32
#define PREFIX_BYTES 3

/*
 * Returns the number of edits between two words; swapping two neighbouring letters is one edit.
 * Keeps the last three rows of the table of distances between the beginnings of the words.
 */
static size_t measure_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	size_t rows[3][WORD_MAX + 1];

	for (size_t k = 0; k <= b_bytes; k++)
		rows[0][k] = k;
	for (size_t i = 1; i <= a_bytes; i++) {
		size_t *above2 = rows[(i + 1) % 3], *above = rows[(i - 1) % 3], *row = rows[i % 3];

		row[0] = i;
		for (size_t k = 1; k <= b_bytes; k++) {
			size_t wrong = a[i - 1] != b[k - 1];

			row[k] = MIN(above[k], row[k - 1]) + 1;
			row[k] = MIN(row[k], above[k - 1] + wrong);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = MIN(row[k], above2[k - 2] + 1);
		}
	}
	return rows[a_bytes % 3][b_bytes];
}

void similar_offer(const char *typed, const char *word, const char **best, size_t *distance)
{
	size_t typed_bytes = strlen(typed), word_bytes = strlen(word), found;

	if (typed_bytes > WORD_MAX || word_bytes > WORD_MAX || !typed_bytes)
		return;
	found = measure_distance(typed, typed_bytes, word, word_bytes);
	if (typed_bytes >= PREFIX_BYTES && !strncmp(typed, word, typed_bytes))
		found = 0;
	else if (found * 3 > MAX(typed_bytes, word_bytes))
		return;
	if (*best && found >= *distance)
		return;
	*best = word;
	*distance = found;
}
