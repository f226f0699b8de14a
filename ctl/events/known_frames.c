/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/known_frames.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_BYTES (64u << 20)

void known_frames_init(struct known_frames *k)
{
	*k = (struct known_frames){ .budget = { .max_bytes = KNOWN_BYTES } };
	pool_init(&k->texts, &k->budget);
}

void known_frames_done(struct known_frames *k)
{
	pool_done(&k->texts);
	free(k->frames);
	k->frames = NULL;
	k->space = 0;
	k->budget.used_bytes = 0;
}

/*
 * Returns the bytes of the text by which a frame is looked up: up to its first '}', of any object.
 */
static size_t measure_prefix(const char *text, size_t bytes)
{
	const char *end = memchr(text, '}', bytes);

	return end ? (size_t)(end + 1 - text) : 0;
}

/*
 * A frame with a known text is that frame, because the end of a JSON object does not depend on the
 * text after it. So a known frame is not parsed again. With source lines a frame contains other
 * objects; of several frames with the same text up to the end of the first inner object, only the
 * last one is known.
 */
bool known_frames_take(const struct known_frames *k, struct json_reader *json, uint32_t *ret_frame)
{
	size_t left = (size_t)(json->end - json->at), prefix = measure_prefix(json->at, left),
	       rest_bytes = 0;
	const struct known_frame *known;
	uint32_t number;

	if (!prefix || *json->at != '{' || !k->frames ||
	    pool_find(&k->texts, json->at, prefix, &number) < 0)
		return false;
	known = &k->frames[number];
	if (known->rest) {
		const void *rest = pool_get(&k->texts, known->rest - 1, &rest_bytes);

		if (left - prefix < rest_bytes || memcmp(json->at + prefix, rest, rest_bytes) != 0)
			return false;
	}
	json->at += prefix + rest_bytes;
	json->comma = true;
	*ret_frame = known->frame;
	return true;
}

static int put_known(struct known_frames *k, const char *text, size_t bytes, uint32_t frame)
{
	size_t prefix = measure_prefix(text, bytes);
	struct known_frame known = { .frame = frame };
	uint32_t number;
	int r = 0;

	if (bytes > prefix) {
		r = pool_put(&k->texts, text + prefix, bytes - prefix, &known.rest);
		known.rest++;
	}
	if (r == 0)
		r = pool_put(&k->texts, text, prefix, &number);
	if (r == 0)
		r = pool_grow(&k->budget, (void **)&k->frames, &k->space, k->texts.count,
			      sizeof(*k->frames));
	if (r == 0)
		k->frames[number] = known;
	return r;
}

void known_frames_keep(struct known_frames *k, const char *text, size_t bytes, uint32_t frame)
{
	if (put_known(k, text, bytes, frame) < 0)
		known_frames_done(k);
}
