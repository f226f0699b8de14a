/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/unwrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/events/event.h"
#include "ctl/events/lines.h"
#include "shared/tools/macro.h"

/* How each line of the agent begins. */
static const char beginning[] = "{\"v\":";

/* Keys under which pipelines keep a program's output. */
static const char *const messages[] = { "MESSAGE", "message", "log", "msg" };

int unwrap_init(struct unwrap *u)
{
	u->text = malloc(LINES_MAX_BYTES);
	return u->text ? 0 : -ENOMEM;
}

void unwrap_done(struct unwrap *u)
{
	free(u->text);
	u->text = NULL;
}

static bool is_beginning(const char *text, size_t bytes)
{
	return bytes >= sizeof(beginning) - 1 && !memcmp(text, beginning, sizeof(beginning) - 1);
}

static bool has_part(const char *text, size_t bytes, const char *part)
{
	return memmem(text, bytes, part, strlen(part)) != NULL;
}

/* Returns the begin of the first object; NULL: there is none. */
static const char *find_object(const char *text, size_t bytes)
{
	const char *end = text + bytes;

	for (const char *at = text; (at = memchr(at, '{', (size_t)(end - at))); at++) {
		const char *next = at + 1;

		while (next < end && (*next == ' ' || *next == '\t'))
			next++;
		if (next < end && *next == '"')
			return at;
	}
	return NULL;
}

/* Facts from the keys of an object. */
struct look {
	bool type;		  /* the object has this key, as each event does */
	struct json_text message; /* of the first key of `messages` */
	bool left_out;		  /* the message is null */
};

static bool is_message(const struct json_text *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
		if (event_is(key, messages[i]))
			return true;
	return false;
}

static void look_at_value(struct json_reader *json, const struct json_text *key, struct look *look)
{
	char first = json_reader_peek(json);

	look->type |= event_is(key, "type") && first == '"';
	if (look->message.data || !is_message(key)) {
		json_reader_skip(json);
		return;
	}
	look->left_out |= first == 'n';
	if (first == '"')
		json_reader_string(json, false, &look->message);
	else
		json_reader_skip(json);
}

/* Reads the keys of an object. False: not JSON. */
static bool look_at(const char *text, size_t bytes, struct look *ret_look)
{
	struct json_reader json;
	struct json_text key;

	*ret_look = (struct look){ 0 };
	json_reader_init(&json, text, bytes, JSON_READER_NESTING);
	json_reader_object(&json);
	while (json_reader_key(&json, &key))
		look_at_value(&json, &key, ret_look);
	return json_reader_end(&json);
}

/* Finds the event in a pipeline's message, which may have a prefix. */
static enum unwrap_what open_message(struct unwrap *u, const struct json_text *message,
				     struct unwrapped *ret_found)
{
	size_t bytes = json_reader_decode(message, u->text);
	const char *at = find_object(u->text, bytes);

	if (!at || !is_beginning(at, bytes - (size_t)(at - u->text)))
		return UNWRAP_NOTHING;
	*ret_found = (struct unwrapped){ .text = at, .bytes = bytes - (size_t)(at - u->text) };
	return UNWRAP_EVENT;
}

enum unwrap_what unwrap_line(struct unwrap *u, const char *line, size_t bytes,
			     struct unwrapped *ret_found)
{
	const char *at = find_object(line, bytes);
	struct look look;
	bool json;

	if (!at)
		return UNWRAP_NOTHING;
	bytes -= (size_t)(at - line);
	*ret_found = (struct unwrapped){ at, bytes, (size_t)(at - line) };
	if (is_beginning(at, bytes))
		return UNWRAP_EVENT;
	json = look_at(at, bytes, &look);
	if (json && !look.type && look.message.data)
		return open_message(u, &look.message, ret_found);
	if (json)
		return look.type ? UNWRAP_EVENT : look.left_out ? UNWRAP_LEFT_OUT : UNWRAP_NOTHING;
	/* A cut event with sorted keys counts as an event with a fault. */
	return has_part(at, bytes, "\"type\"") && has_part(at, bytes, "\"mono_ns\"")
		       ? UNWRAP_EVENT
		       : UNWRAP_NOTHING;
}
