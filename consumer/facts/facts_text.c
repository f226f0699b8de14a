/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_text.h"

#include <string.h>

bool facts_text_line(struct facts_text *rest, struct facts_text *ret_line)
{
	const char *end = rest->bytes ? memchr(rest->at, '\n', rest->bytes) : NULL;
	size_t bytes;

	if (!end)
		return false;
	bytes = (size_t)(end - rest->at);
	*ret_line = (struct facts_text){ rest->at, bytes };
	rest->at += bytes + 1;
	rest->bytes -= bytes + 1;
	return true;
}

bool facts_text_word(struct facts_text *rest, char end, struct facts_text *ret_word)
{
	const char *stop;
	size_t bytes;

	while (rest->bytes && *rest->at == end) {
		rest->at++;
		rest->bytes--;
	}
	if (!rest->bytes)
		return false;
	stop = memchr(rest->at, end, rest->bytes);
	bytes = stop ? (size_t)(stop - rest->at) : rest->bytes;
	*ret_word = (struct facts_text){ rest->at, bytes };
	bytes += stop != NULL;
	rest->at += bytes;
	rest->bytes -= bytes;
	return true;
}

bool facts_text_is(struct facts_text text, const char *word)
{
	return text.bytes == strlen(word) && !memcmp(text.at, word, text.bytes);
}

bool facts_text_number(struct facts_text word, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (facts_text_is(word, "max") || facts_text_is(word, "-1")) {
		*ret_number = UINT64_MAX;
		return true;
	}
	for (size_t i = 0; i < word.bytes; i++) {
		char c = word.at[i];

		if (c < '0' || c > '9' || number > (UINT64_MAX - 9) / 10)
			return false;
		number = number * 10 + (uint64_t)(c - '0');
	}
	if (!word.bytes)
		return false;
	*ret_number = number;
	return true;
}
