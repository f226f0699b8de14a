/* SPDX-License-Identifier: BSD-2-Clause */
/* answer.c: any bytes as a resolver's answer: what is taken is within its walls, and can be written
 * and taken again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/symbolize/answer.h"
#include "shared/tools/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_text(const char *text, size_t max)
{
	if (text && (!*text || strlen(text) >= max))
		abort();
}

static bool same(const char *a, const char *b)
{
	return !a == !b && (!a || !strcmp(a, b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static char room[ANSWER_BYTES];
	_cleanup_free_ char *own = malloc(bytes + 1); /* what is read beyond is seen */
	struct answer answer, again;

	if (!own)
		abort();
	memcpy(own, data, bytes);
	if (answer_read(own, bytes, &answer) < 0)
		return 0;
	if (!answer.n || answer.n > ANSWER_PLACES || answer.unnamed >= UNNAMED_COUNT_)
		abort();
	check_text(answer.raw, ANSWER_NAME_BYTES);
	for (unsigned int i = 0; i < answer.n; i++) {
		check_text(answer.places[i].fn, ANSWER_NAME_BYTES);
		check_text(answer.places[i].file, ANSWER_FILE_BYTES);
	}
	if (answer_read(room, answer_write(&answer, room), &again) < 0 || again.n != answer.n ||
	    !same(again.raw, answer.raw))
		abort();
	for (unsigned int i = 0; i < answer.n; i++)
		if (!same(again.places[i].fn, answer.places[i].fn) ||
		    !same(again.places[i].file, answer.places[i].file) ||
		    again.places[i].line != answer.places[i].line)
			abort();
	return 0;
}
