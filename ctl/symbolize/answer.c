/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/answer.h"

#include <errno.h>
#include <string.h>

/*
 * The begin of a message; followed by `raw`, then per place its line as 32 bits and its two texts.
 */
struct head {
	uint32_t unnamed, places;
};

/* The rest of a message to write or to read. */
struct room {
	char *to;
	const char *from;
	size_t bytes;
};

_Static_assert(sizeof(struct head) + ANSWER_NAME_BYTES +
			       (size_t)ANSWER_PLACES *
				       (sizeof(uint32_t) + ANSWER_NAME_BYTES + ANSWER_FILE_BYTES) <=
		       ANSWER_BYTES,
	       "the longest answer must fit");

static void put_bytes(struct room *room, const void *data, size_t bytes)
{
	memcpy(room->to, data, bytes);
	room->to += bytes;
}

/* Writes a text with its NUL, cut to `max` bytes; NULL as an empty one. */
static void put_text(struct room *room, const char *text, size_t max)
{
	size_t bytes = text ? strnlen(text, max - 1) : 0;

	put_bytes(room, text ? text : "", bytes);
	put_bytes(room, "", 1);
}

size_t answer_write(const struct answer *answer, char data[ANSWER_BYTES])
{
	struct head head = { .unnamed = answer->unnamed, .places = answer->n };
	struct room room = { .to = data };

	put_bytes(&room, &head, sizeof(head));
	put_text(&room, answer->raw, ANSWER_NAME_BYTES);
	for (unsigned int i = 0; i < answer->n; i++) {
		const struct answer_place *p = &answer->places[i];
		bool fits = p->file && strnlen(p->file, ANSWER_FILE_BYTES) < ANSWER_FILE_BYTES;
		uint32_t line = fits ? p->line : 0;

		put_bytes(&room, &line, sizeof(line));
		put_text(&room, p->fn, ANSWER_NAME_BYTES);
		put_text(&room, fits ? p->file : NULL, ANSWER_FILE_BYTES);
	}
	return (size_t)(room.to - data);
}

static bool take_bytes(struct room *room, void *data, size_t bytes)
{
	if (room->bytes < bytes)
		return false;
	memcpy(data, room->from, bytes);
	room->from += bytes;
	room->bytes -= bytes;
	return true;
}

static bool take_text(struct room *room, size_t max, const char **ret_text)
{
	size_t bytes = strnlen(room->from, room->bytes);

	if (bytes == room->bytes || bytes >= max)
		return false;
	*ret_text = bytes ? room->from : NULL;
	room->from += bytes + 1;
	room->bytes -= bytes + 1;
	return true;
}

static bool take_place(struct room *room, struct answer_place *place)
{
	return take_bytes(room, &place->line, sizeof(place->line)) &&
	       take_text(room, ANSWER_NAME_BYTES, &place->fn) &&
	       take_text(room, ANSWER_FILE_BYTES, &place->file) && !place->file == !place->line;
}

int answer_read(const char *data, size_t bytes, struct answer *ret_answer)
{
	struct room room = { .from = data, .bytes = bytes };
	struct answer answer = { 0 };
	struct head head;

	if (!take_bytes(&room, &head, sizeof(head)) || head.unnamed >= UNNAMED_COUNT_ ||
	    !head.places || head.places > ANSWER_PLACES ||
	    !take_text(&room, ANSWER_NAME_BYTES, &answer.raw))
		return -EBADMSG;
	answer.unnamed = (enum unnamed)head.unnamed;
	answer.n = head.places;
	for (unsigned int i = 0; i < answer.n; i++)
		if (!take_place(&room, &answer.places[i]))
			return -EBADMSG;
	if (room.bytes || !answer.places[0].fn == (answer.unnamed == UNNAMED_NOT))
		return -EBADMSG;
	*ret_answer = answer;
	return 0;
}
