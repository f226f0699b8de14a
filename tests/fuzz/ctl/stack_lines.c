/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_lines.c: hostile event lines with frames that get names. What is written are event lines
 * with as many frames as came, in order; the last line of a session stays JSON.
 */
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/symbolize/stack_lines.h"
#include "ctl/symbolize/tally.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"

#define LINE_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char name[] = "\"fn\":\"a\\\"b\",\"raw\":\"_a\"";
static const char source[] =
	"\"source\":{\"file\":\"/f.c\",\"line\":3},\"inlined\":[{\"fn\":null}]";

struct frames {
	struct event_frame events[STORE_FRAMES_MAX];
	const char *texts[STORE_FRAMES_MAX];
	size_t bytes[STORE_FRAMES_MAX], n;
};

static bool take(void *context, struct json_reader *s, const struct event *event)
{
	struct frames *f = context;

	f->n = 0;
	if (!json_reader_array(s))
		return false;
	while (json_reader_element(s)) {
		if (f->n == STORE_FRAMES_MAX)
			return json_reader_refuse(s, "too many");
		json_reader_peek(s);
		f->texts[f->n] = s->at;
		if (!event_frame(s, &f->events[f->n]))
			return false;
		f->bytes[f->n] = (size_t)(s->at - f->texts[f->n]);
		f->n++;
	}
	return !s->fault;
}

/* Reads the output; every line must be one, and all frames must be there. */
static void check(const char *text, const struct frames *came, struct frames *went)
{
	struct event_fault fault;
	struct event event;
	size_t seen = 0;

	for (const char *at = text, *end; *at; at = end + 1) {
		end = strchr(at, '\n');
		if (!end || !event_read(at, (size_t)(end - at), take, went, &event, &fault))
			abort();
		for (size_t i = 0; i < went->n; i++, seen++)
			if (seen >= came->n || !went->events[i].fn.data ||
			    went->events[i].has_offset != came->events[seen].has_offset ||
			    went->events[i].offset != came->events[seen].offset)
				abort();
	}
	if (seen != came->n)
		abort();
}

static void write_stack(struct stack_lines *l, const struct event *event, const char *line,
			size_t bytes, const struct frames *came)
{
	static struct frames went;
	const struct offline_frame found = {
		.name = name,
		.name_bytes = sizeof(name) - 1,
		.source = source,
		.source_bytes = sizeof(source) - 1,
	};
	_cleanup_free_ char *text = NULL;
	struct event whole = *event;
	size_t text_bytes;
	FILE *out;

	/* One line is the whole stack here: it has a head, which later parts lack. */
	if (event->part > 1 || !event->count)
		return;
	whole.parts = 0;
	if (stack_lines_begin(l, &whole, line, bytes) < 0)
		abort();
	for (size_t i = 0; i < came->n; i++)
		if (stack_lines_frame(l, &came->events[i], came->texts[i], came->bytes[i], &found) <
		    0)
			abort();
	out = open_memstream(&text, &text_bytes);
	if (stack_lines_write(l, LINE_BYTES, 1, out) < 0)
		abort();
	fclose(out);
	check(text, came, &went);
}

static void write_end(const struct tally *t, const struct event *event, const char *line,
		      size_t bytes)
{
	struct json_tokener *tokener = json_tokener_new_ex(JSON_READER_NESTING + 1);
	_cleanup_(jsonw_done) struct jsonw w;
	json_object *object;

	jsonw_init(&w, 16u << 20);
	if (tally_end(t, event, line, bytes, 8096, &w) == 0) {
		object = json_tokener_parse_ex(tokener, w.data, (int)w.bytes);
		if (!object)
			abort();
		json_object_put(object);
	}
	json_tokener_free(tokener);
}

static void read_line(struct stack_lines *l, struct tally *t, const char *line, size_t bytes)
{
	static struct frames came;
	struct event_fault fault;
	struct event event;

	if (!event_read(line, bytes, take, &came, &event, &fault))
		return;
	if (event.type == EVENT_SESSION_END)
		write_end(t, &event, line, bytes);
	if (event.type != EVENT_STACK)
		return;
	for (size_t i = 0; i < came.n; i++)
		if (!came.events[i].fn.data)
			(void)tally_add(t, event.session.data, event.session.bytes, &came.events[i],
					event.count, i % 3 != 0);
	write_stack(l, &event, line, bytes, &came);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const char *at = (const char *)data, *end = at + bytes;
	_cleanup_(stack_lines_done) struct stack_lines l;
	_cleanup_(tally_done) struct tally t;

	stack_lines_init(&l);
	tally_init(&t);
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at);

		read_line(&l, &t, at, n);
		at += n + (stop != NULL);
	}
	return 0;
}
