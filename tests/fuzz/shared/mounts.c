/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of /proc/PID/mountinfo: each row lies within the text, and its words can be printed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/files/mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_word(const char *text, size_t bytes, struct mounts_text word)
{
	char plain[16];
	size_t n;

	if (word.at < text || word.at + word.bytes > text + bytes ||
	    memchr(word.at, ' ', word.bytes) || memchr(word.at, '\n', word.bytes))
		abort();
	memset(plain, 0xa5, sizeof(plain));
	n = mounts_unescape(word, plain, sizeof(plain));
	if (n > word.bytes || !memchr(plain, '\0', sizeof(plain)) ||
	    (n < sizeof(plain) && plain[n] != '\0'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = calloc(1, bytes + 1);
	const char *at = text;
	struct mounts_row row;

	if (!text)
		return 0;
	memcpy(text, data, bytes);
	while (mounts_next(&at, &row)) {
		const struct mounts_text words[] = { row.root, row.point, row.type, row.source };

		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			check_word(text, strlen(text), words[i]);
	}
	if (*at)
		abort();
	free(text);
	return 0;
}
