/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define KNOWN_BYTES (64u << 20) /* of frames as they stand in lines */

int reader_init(struct reader *r, struct store *store, const struct select *select,
		const char *name, FILE *err)
{
	*r = (struct reader){ .store = store, .select = select, .name = name, .err = err };
	r->known_budget.max_bytes = KNOWN_BYTES;
	pool_init(&r->known, &r->known_budget);
	r->open = calloc(READER_OPEN_MAX, sizeof(*r->open));
	return r->open ? 0 : -ENOMEM;
}

static void forget_known(struct reader *r)
{
	pool_done(&r->known);
	free(r->known_frames);
	r->known_frames = NULL;
	r->known_space = 0;
	r->known_budget.used_bytes = 0;
}

void reader_done(struct reader *r)
{
	forget_known(r);
	free(r->open);
	r->open = NULL;
}

/* Up to where a frame is looked for: behind its first '}', of whatever object that is. */
static size_t measure_prefix(const char *text, size_t bytes)
{
	const char *end = memchr(text, '}', bytes);

	return end ? (size_t)(end + 1 - text) : 0;
}

static int put_known(struct reader *r, const char *text, size_t bytes, uint32_t frame)
{
	size_t prefix = measure_prefix(text, bytes);
	struct reader_known known = { .frame = frame };
	uint32_t number;
	int e = 0;

	if (bytes > prefix) {
		e = pool_put(&r->known, text + prefix, bytes - prefix, &known.rest);
		known.rest++;
	}
	if (e == 0)
		e = pool_put(&r->known, text, prefix, &number);
	if (e == 0)
		e = pool_grow(&r->known_budget, (void **)&r->known_frames, &r->known_space,
			      r->known.count, sizeof(*r->known_frames));
	if (e == 0)
		r->known_frames[number] = known;
	return e;
}

/* Remembers how a frame stands in lines; when there is no room more, all are forgotten. */
static void keep_known(struct reader *r, const char *text, size_t bytes, uint32_t frame)
{
	if (put_known(r, text, bytes, frame) < 0)
		forget_known(r);
}

/*
 * A frame's text that was read before is that frame: a JSON object ends where it ends, whatever
 * stands behind it. So a known frame is not read again. With source lines it has objects within;
 * of frames that agree up to the end of the first of these the last one is known.
 */
static bool take_known(struct reader *r, struct json_reader *json, uint32_t *ret_frame)
{
	size_t left = (size_t)(json->end - json->at), prefix = measure_prefix(json->at, left),
	       rest_bytes = 0;
	const struct reader_known *known;
	uint32_t number;

	if (!prefix || *json->at != '{' || !r->known_frames ||
	    pool_find(&r->known, json->at, prefix, &number) < 0)
		return false;
	known = &r->known_frames[number];
	if (known->rest) {
		const void *rest = pool_get(&r->known, known->rest - 1, &rest_bytes);

		if (left - prefix < rest_bytes || memcmp(json->at + prefix, rest, rest_bytes) != 0)
			return false;
	}
	json->at += prefix + rest_bytes;
	json->comma = true;
	*ret_frame = known->frame;
	return true;
}

static bool take_frame(struct reader *r, struct json_reader *json, uint32_t *ret_frame)
{
	struct event_frame frame;
	const char *start;
	int e;

	json_reader_peek(json);
	if (take_known(r, json, ret_frame))
		return true;
	start = json->at;
	if (!event_frame(json, &frame))
		return false;
	e = store_frame(r->store, &frame, ret_frame);
	if (e < 0) {
		r->error = e;
		return false;
	}
	keep_known(r, start, (size_t)(json->at - start), *ret_frame);
	return true;
}

static bool take_frames(void *context, struct json_reader *json, const struct event *event)
{
	struct reader *r = context;

	r->n = 0;
	r->passed = !select_stack(r->select, event, false);
	if (r->passed)
		return json_reader_skip(json);
	if (!json_reader_array(json))
		return false;
	while (json_reader_element(json)) {
		if (r->n == STORE_FRAMES_MAX)
			return json_reader_refuse(json, "want at most 4096 frames");
		if (!take_frame(r, json, &r->frames[r->n]))
			return false;
		r->n++;
	}
	return !json->fault;
}

static void say_fault(struct reader *r, uint64_t number, size_t column, const char *key,
		      size_t key_bytes, const char *what)
{
	_cleanup_free_ char *name = text_tame(key ? key : "", key ? key_bytes : 0);

	if (r->faults++ >= READER_FAULTS_SHOWN)
		return;
	fprintf(r->err, "trocar: %s:%" PRIu64 ":%zu: ", r->name, number, column + 1);
	if (name && *name)
		fprintf(r->err, "%s: ", name);
	fprintf(r->err, "%s\n", what);
}

/* The place of a stack whose parts come: for part 1 a free one. NULL: there is none. */
static struct reader_open *find_open(struct reader *r, uint32_t session, uint32_t id, bool fresh)
{
	for (size_t i = 0; i < READER_OPEN_MAX; i++) {
		struct reader_open *o = &r->open[i];

		if (fresh ? !o->next : o->next && o->key.session == session && o->id == id)
			return o;
	}
	return NULL;
}

/* One part: NULL when it is fine, else what would be right. */
static const char *add_part(struct reader *r, uint32_t session, const struct event *event)
{
	struct reader_open *o;
	uint32_t id;

	r->error = store_text(r->store, &event->stack_id, &id);
	if (r->error < 0)
		return NULL;
	o = find_open(r, session, id, event->part == 1);
	if (!o)
		return event->part == 1 ? "want fewer stacks with missing parts before this one"
					: "want the first part of this stack before";
	if (event->part == 1) {
		r->error = store_key(r->store, session, event, &o->key, &o->value);
		o->id = id;
		o->next = 1;
		o->parts = event->parts;
		o->n = 0;
	}
	if (r->error < 0)
		return NULL;
	if (event->part != o->next || event->parts != o->parts || r->n > STORE_FRAMES_MAX - o->n) {
		o->next = 0;
		return "want the parts of this stack in order, with at most 4096 frames";
	}
	memcpy(o->frames + o->n, r->frames, r->n * sizeof(*r->frames));
	o->n += r->n;
	o->next++;
	if (o->next > o->parts) {
		r->error = store_count(r->store, &o->key, o->frames, o->n, &o->value);
		o->next = 0;
	}
	return NULL;
}

static const char *add_stack(struct reader *r, uint32_t session, const struct event *event)
{
	struct store_key key;
	struct store_value value;

	if (store_phase(&event->phase) == STORE_PHASE_COUNT_)
		return "want the phase before, onset or during";
	if (r->passed || !select_stack(r->select, event, true)) {
		r->unselected++;
		return NULL;
	}
	r->stacks++;
	if (event->parts)
		return add_part(r, session, event);
	r->error = store_key(r->store, session, event, &key, &value);
	if (r->error == 0)
		r->error = store_count(r->store, &key, r->frames, r->n, &value);
	return NULL;
}

static const char *add_event(struct reader *r, const struct event *event,
			     const struct lines_line *line)
{
	uint64_t time_ns;
	uint32_t session;

	if (event->type == EVENT_OTHER || !event->session.data)
		return NULL;
	if (event_time(event->ts.data, event->ts.bytes, &time_ns) < 0)
		return "want ts as 2026-11-21T15:59:03.098828602Z";
	if (event->type == EVENT_HELD) {
		store_held(r->store, event);
		return NULL;
	}
	r->error = store_session(r->store, event, &session);
	if (r->error < 0)
		return NULL;
	if (!select_session(r->select, event, r->store->sessions[session].time_ns)) {
		r->unselected += event->type == EVENT_STACK;
		return NULL;
	}
	r->store->sessions[session].files |= 1u << r->store->file;
	if (event->type == EVENT_STACK)
		return add_stack(r, session, event);
	r->error = store_session_line(r->store, session, event, line->text, line->bytes);
	return NULL;
}

int reader_line(struct reader *r, const struct lines_line *line, uint64_t number)
{
	struct event_fault fault;
	struct event event;
	const char *what;

	if (line->too_long) {
		say_fault(r, number, LINES_MAX_BYTES, NULL, 0, "want lines of at most 1 MiB");
		return 0;
	}
	if (!line->bytes)
		return 0;
	if (event_read(line->text, line->bytes, take_frames, r, &event, &fault)) {
		what = add_event(r, &event, line);
		if (what)
			say_fault(r, number, 0, NULL, 0, what);
	} else if (r->error < 0) {
		return r->error;
	} else if (!line->whole) {
		fprintf(r->err, "trocar: %s:%" PRIu64 ": the last line is cut: passed over\n",
			r->name, number);
	} else {
		say_fault(r, number, fault.at, fault.key.data, fault.key.bytes, fault.fault);
	}
	return r->error;
}

/* What is left over at the end, and why the reading ended. */
static void say_end(const struct reader *r, uint64_t number, int error)
{
	uint64_t open = 0;

	for (size_t i = 0; i < READER_OPEN_MAX; i++)
		open += r->open[i].next > 0;
	if (r->faults > READER_FAULTS_SHOWN)
		fprintf(r->err, "trocar: %s: %" PRIu64 " faulty lines in all, passed over\n",
			r->name, r->faults);
	if (open)
		fprintf(r->err, "trocar: %s: %" PRIu64 " stacks lack parts: passed over\n", r->name,
			open);
	if (error == -ENOSPC)
		fprintf(r->err,
			"trocar: %s:%" PRIu64 ": its distinct stacks and names need more than "
			"%" PRIu64 " MiB: select less (--session, --rule, --since), or allow more "
			"(--memory-mib)\n",
			r->name, number, r->store->budget.max_bytes >> 20);
	else if (error < 0)
		fprintf(r->err, "trocar: %s: %s\n", r->name, strerror(-error));
}

int reader_read(struct reader *r, int fd)
{
	struct lines lines;
	struct lines_line line;
	int e = lines_init(&lines, fd);

	while (e == 0) {
		e = lines_next(&lines, &line);
		if (e <= 0)
			break;
		e = reader_line(r, &line, lines.number);
	}
	say_end(r, lines.number, e);
	lines_done(&lines);
	return e;
}
