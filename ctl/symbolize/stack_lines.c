/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/stack_lines.h"

#include <errno.h>
#include <string.h>

#include "ctl/events/event.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* For "]", the keys of a split stack, "}" and the newline, in addition to the stack's id. */
#define TAIL_BYTES 96

/* Keys that are rewritten; the last three are only in the first line of a stack. */
static const char *const not_first[] = { "frames", "unnamed", "stack_id", "part", "parts", NULL };
static const char *const not_later[] = { "frames", "unnamed",	"stack_id", "part", "parts",
					 "count",  "weight_ns", "threads",  NULL };
static const char *const named_anew[] = { "fn", "raw", "why", NULL };
static const char *const placed_anew[] = { "source", "inlined", "inlined_omitted", NULL };
static const char *const both_anew[] = { "fn", "raw", "why", "source", "inlined", "inlined_omitted",
					 NULL };

static bool is_one_of(const struct json_text *key, const char *const *words)
{
	for (; *words; words++)
		if (event_is(key, *words))
			return true;
	return false;
}

/*
 * Copies the members of the object in `text`, which was parsed without a fault before, to the
 * current place of `w`, except members with a key in `without` (NULL ends it). 0 or -EBADMSG.
 */
static int copy_members(const char *text, size_t bytes, const char *const *without, struct jsonw *w)
{
	struct json_text key;
	struct json_reader json;

	json_reader_init(&json, text, bytes, JSON_READER_NESTING);
	json_reader_object(&json);
	while (json_reader_key(&json, &key)) {
		const char *start = key.data - 1; /* its quote */

		json_reader_skip(&json);
		if (!json.fault && !is_one_of(&key, without))
			jsonw_raw(w, NULL, start, (size_t)(json.at - start));
	}
	return json.fault ? -EBADMSG : 0;
}

void stack_lines_init(struct stack_lines *l)
{
	memset(l, 0, sizeof(*l));
	jsonw_init(&l->session, STACK_LINES_MAX_BYTES);
	jsonw_init(&l->id, STACK_LINES_MAX_BYTES);
	jsonw_init(&l->first, STACK_LINES_MAX_BYTES);
	jsonw_init(&l->later, STACK_LINES_MAX_BYTES);
	jsonw_init(&l->frames, STACK_LINES_MAX_BYTES);
	jsonw_init(&l->original, STACK_LINES_MAX_BYTES);
}

void stack_lines_done(struct stack_lines *l)
{
	jsonw_done(&l->session);
	jsonw_done(&l->id);
	jsonw_done(&l->first);
	jsonw_done(&l->later);
	jsonw_done(&l->frames);
	jsonw_done(&l->original);
}

void stack_lines_reset(struct stack_lines *l)
{
	jsonw_reset(&l->session);
	jsonw_reset(&l->id);
	jsonw_reset(&l->first);
	jsonw_reset(&l->later);
	jsonw_reset(&l->frames);
	jsonw_reset(&l->original);
	l->next = l->parts = l->n = 0;
	l->count = l->unnamed = 0;
	l->in_kernel = false;
}

/* Writes a text of the line without quotes. */
static void put_text(struct jsonw *w, const struct json_text *text)
{
	if (text->data && text->bytes)
		jsonw_raw(w, NULL, text->data, text->bytes);
}

void stack_lines_keep(struct stack_lines *l, const char *line, size_t bytes)
{
	l->original.comma = false;
	jsonw_raw(&l->original, NULL, line, bytes);
	l->original.comma = false;
	jsonw_raw(&l->original, NULL, "\n", 1);
}

int stack_lines_begin(struct stack_lines *l, const struct event *event, const char *line,
		      size_t bytes)
{
	int r;

	stack_lines_reset(l);
	put_text(&l->session, &event->session);
	put_text(&l->id, &event->stack_id);
	l->next = 1;
	l->parts = MAX(event->parts, (uint64_t)1);
	l->count = event->count;
	jsonw_object(&l->first, NULL);
	r = copy_members(line, bytes, not_first, &l->first);
	jsonw_object(&l->later, NULL);
	if (r == 0)
		r = copy_members(line, bytes, not_later, &l->later);
	jsonw_array(&l->frames, NULL);
	if (r == 0)
		r = jsonw_end(&l->first);
	return r < 0 ? r : jsonw_end(&l->later);
}

static bool same_bytes(const struct jsonw *w, const struct json_text *text)
{
	return w->bytes == text->bytes && (!w->bytes || !memcmp(w->data, text->data, text->bytes));
}

bool stack_lines_is(const struct stack_lines *l, const struct event *event)
{
	return l->next && event->session.data && event->stack_id.data &&
	       same_bytes(&l->session, &event->session) && same_bytes(&l->id, &event->stack_id);
}

bool stack_lines_is_caller(const struct stack_lines *l, const struct event_frame *frame)
{
	return l->n > 0 && (!l->in_kernel || event_is(&frame->kind, "kernel"));
}

int stack_lines_frame(struct stack_lines *l, const struct event_frame *frame, const char *text,
		      size_t bytes, const struct offline_frame *found)
{
	struct jsonw *w = &l->frames;
	int r = 0;

	if (l->n == STORE_FRAMES_MAX)
		return -E2BIG;
	if (found->name || found->source) {
		jsonw_object(w, NULL);
		if (found->name)
			jsonw_raw(w, NULL, found->name, found->name_bytes);
		r = copy_members(text, bytes,
				 !found->source ? named_anew
				 : found->name	? both_anew
						: placed_anew,
				 w);
		if (found->source)
			jsonw_raw(w, NULL, found->source, found->source_bytes);
		jsonw_object_end(w);
	} else {
		jsonw_raw(w, NULL, text, bytes);
	}
	l->unnamed += !found->name && !frame->fn.data;
	l->in_kernel = event_is(&frame->kind, "kernel");
	l->ends[l->n++] = w->bytes;
	return r < 0 ? r : jsonw_end(w);
}

/* Returns the number of frames from `from` on that fit into `room` bytes; at least one. */
static size_t count_fitting(const struct stack_lines *l, size_t from, size_t room)
{
	size_t start = from ? l->ends[from - 1] : 1, last = from + 1;

	while (last < l->n && l->ends[last] - start < room)
		last++;
	return MIN(last, l->n) - from;
}

static size_t compute_room(const struct stack_lines *l, size_t max_bytes)
{
	size_t taken = MAX(l->first.bytes, l->later.bytes) + l->id.bytes + TAIL_BYTES;

	return max_bytes > taken ? max_bytes - taken : 0;
}

static uint64_t count_parts(const struct stack_lines *l, size_t room)
{
	uint64_t parts = 0;
	size_t from = 0;

	do {
		parts++;
		from += count_fitting(l, from, room);
	} while (from < l->n);
	return parts;
}

/* Writes the stack's id, the old or a new one; a number becomes a string, which is the same id. */
static void write_id(struct jsonw *w, const struct stack_lines *l, uint64_t number)
{
	char text[32];

	if (!l->id.bytes) {
		snprintf(text, sizeof(text), "symbolize-%llu", (unsigned long long)number);
		jsonw_string(w, "stack_id", text);
		return;
	}
	jsonw_raw(w, NULL, "\"stack_id\":\"", 12);
	w->comma = false;
	jsonw_raw(w, NULL, l->id.data, l->id.bytes);
	w->comma = false;
	jsonw_raw(w, NULL, "\"", 1);
}

/* Writes frames [from, from + n) as one line. */
static int write_part(const struct stack_lines *l, struct jsonw *w, size_t from, size_t n,
		      uint64_t part)
{
	const struct jsonw *head = part == 1 ? &l->first : &l->later;
	size_t start = from ? l->ends[from - 1] + 1 : 1;

	jsonw_raw(w, NULL, head->data, head->bytes);
	w->comma = head->comma;
	if (l->unnamed)
		jsonw_u64(w, "unnamed", l->unnamed);
	jsonw_array(w, "frames");
	if (n)
		jsonw_raw(w, NULL, l->frames.data + start, l->ends[from + n - 1] - start);
	jsonw_array_end(w);
	return jsonw_end(w);
}

int stack_lines_write(struct stack_lines *l, size_t max_bytes, uint64_t number, FILE *out)
{
	size_t room = compute_room(l, max_bytes), from = 0;
	uint64_t parts = count_parts(l, room);

	for (uint64_t part = 1; part <= parts; part++) {
		_cleanup_(jsonw_done) struct jsonw w = { 0 };
		size_t n = count_fitting(l, from, room);
		int r;

		jsonw_init(&w, STACK_LINES_MAX_BYTES);
		r = write_part(l, &w, from, n, part);
		if (r < 0)
			return r;
		if (parts > 1) {
			write_id(&w, l, number);
			jsonw_u64(&w, "part", part);
			jsonw_u64(&w, "parts", parts);
		}
		jsonw_object_end(&w);
		r = jsonw_end(&w);
		if (r < 0)
			return r;
		fwrite(w.data, 1, w.bytes, out);
		fputc('\n', out);
		from += n;
	}
	return 0;
}
