/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define PROGRESS_LINES 256 /* between two readings of the clock */

int reader_init(struct reader *r, struct store *store, const struct select *select, FILE *err)
{
	*r = (struct reader){ .store = store, .select = select, .name = "-", .err = err };
	known_frames_init(&r->known);
	seen_init(&r->seen, &store->budget);
	asides_init(&r->asides, store);
	if (parts_init(&r->parts, &store->budget) < 0)
		return -ENOMEM;
	return unwrap_init(&r->unwrap);
}

void reader_done(struct reader *r)
{
	if (!r->store)
		return;
	known_frames_done(&r->known);
	parts_done(&r->parts);
	unwrap_done(&r->unwrap);
	seen_done(&r->seen);
	asides_done(&r->asides);
	r->store = NULL;
}

static bool take_frame(struct reader *r, struct json_reader *json, uint32_t *ret_frame)
{
	struct event_frame frame;
	const char *start;
	int e;

	json_reader_peek(json);
	if (known_frames_take(&r->known, json, ret_frame))
		return true;
	start = json->at;
	if (!event_frame(json, &frame))
		return false;
	e = store_frame(r->store, &frame, ret_frame);
	if (e < 0) {
		r->error = e;
		return false;
	}
	known_frames_keep(&r->known, start, (size_t)(json->at - start), *ret_frame);
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

static const char *add_stack(struct reader *r, uint32_t session, const struct event *event)
{
	struct store_key key;
	struct store_value value;

	if (store_phase(&event->phase) == STORE_PHASE_COUNT_)
		return "want the phase before, onset or during";
	if (r->passed || !select_stack(r->select, event, true)) {
		r->unselected++;
		r->not_asked += select_lacks_signal(r->select, event);
		r->error = offers_note(&r->offers, r->store, event);
		return NULL;
	}
	r->stacks++;
	if (event->parts) {
		r->error = parts_take(&r->parts, r->store, session, event, r->frames, r->n);
		return NULL;
	}
	r->error = store_key(r->store, session, event, &key, &value);
	if (r->error == 0)
		r->error = store_count(r->store, &key, r->frames, r->n, &value);
	return NULL;
}

/* Returns whether a line has no session, or its session is in another file. */
static bool is_aside(struct reader *r, const struct event *event)
{
	if (event->type == EVENT_ERROR || event->type == EVENT_REJECTED)
		return true;
	/* The last line of a session counts the triggers that were held back while it ran. */
	return event->type == EVENT_HELD && !event_is(&event->reason, "session_running") &&
	       !store_held(r->store, event);
}

static const char *add_event(struct reader *r, const struct event *event,
			     const struct unwrapped *line)
{
	uint64_t time_ns;
	uint32_t session;

	if (event_time(event->ts.data, event->ts.bytes, &time_ns) < 0)
		return "want ts as 2026-11-21T15:59:03.098828602Z";
	if (is_aside(r, event)) {
		if (select_other(r->select, event, time_ns))
			r->error = asides_take(&r->asides, r->store, event, time_ns, line->text,
					       line->bytes);
		return NULL;
	}
	if (event->type == EVENT_HELD || !event->session.data)
		return NULL;
	r->error = store_session(r->store, event, time_ns, &session);
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

/* Counts the event unless its line is a repeated one. */
static const char *take_event(struct reader *r, const struct event *event,
			      const struct unwrapped *line)
{
	bool again;

	r->events++;
	if (event->type == EVENT_OTHER)
		return NULL;
	r->error = seen_note(&r->seen, event, line->text, line->bytes, r->store->file, &again);
	if (r->error < 0)
		return NULL;
	r->again += again;
	return again ? NULL : add_event(r, event, line);
}

static void read_event(struct reader *r, const struct unwrapped *line, bool whole, uint64_t number)
{
	struct event_fault fault;
	struct event event;
	const char *what;

	if (event_read(line->text, line->bytes, take_frames, r, &event, &fault)) {
		what = take_event(r, &event, line);
		if (what)
			say_fault(r, number, line->column, NULL, 0, what);
	} else if (r->error < 0) {
		return;
	} else if (!whole) {
		fprintf(r->err, "trocar: %s:%" PRIu64 ": the last line is cut: passed over\n",
			r->name, number);
	} else {
		say_fault(r, number, line->column + fault.at, fault.key.data, fault.key.bytes,
			  fault.fault);
	}
}

int reader_line(struct reader *r, const struct lines_line *line, uint64_t number)
{
	struct unwrapped found;

	if (line->too_long) {
		say_fault(r, number, LINES_MAX_BYTES, NULL, 0, "want lines of at most 1 MiB");
		return 0;
	}
	switch (unwrap_line(&r->unwrap, line->text, line->bytes, &found)) {
	case UNWRAP_EVENT:
		read_event(r, &found, line->whole, number);
		break;
	case UNWRAP_LEFT_OUT:
		r->left_out++;
		break;
	case UNWRAP_NOTHING:
		r->others += line->bytes > 0;
		break;
	}
	return r->error;
}

/*
 * Prints why the file was not read to its end. Lack of memory ends all reading, other errors only
 * the reading of this file.
 */
static int say_error(struct reader *r, uint64_t number, int error)
{
	if (error == -ENOSPC) {
		fprintf(r->err,
			"trocar: %s:%" PRIu64 ": its distinct stacks and names need more than "
			"%" PRIu64 " MiB: select less (--session, --rule, --since), or allow more "
			"(--memory-mib)\n",
			r->name, number, r->store->budget.max_bytes >> 20);
		return error;
	}
	fprintf(r->err, "trocar: %s: %s\n", r->name, unpack_error(error));
	r->faults++;
	return error == -ENOMEM && r->error < 0 ? error : 0;
}

int reader_read(struct reader *r, int fd, const char *name, struct progress *progress)
{
	struct lines lines;
	struct lines_line line;
	int e = lines_init(&lines, fd);

	r->name = name;
	while (e == 0) {
		e = lines_next(&lines, &line);
		if (e <= 0)
			break;
		e = reader_line(r, &line, lines.number);
		if (lines.number % PROGRESS_LINES == 0)
			progress_say(progress, lines.unpack.read_bytes);
	}
	progress_next(progress, lines.unpack.read_bytes);
	if (e < 0) {
		progress_done(progress);
		e = say_error(r, lines.number, e);
	}
	lines_done(&lines);
	return e;
}

/* Prints "1 line", "3 lines". */
static void say_lines(const struct reader *r, uint64_t n, const char *what)
{
	if (n)
		fprintf(r->err, "trocar: %" PRIu64 " line%s %s\n", n, text_s(n), what);
}

void reader_end(const struct reader *r)
{
	uint64_t lacking = parts_lacking(&r->parts);

	if (r->faults > READER_FAULTS_SHOWN)
		fprintf(r->err, "trocar: %" PRIu64 " faults in all, passed over\n", r->faults);
	say_lines(r, r->others, "of other programs: passed over");
	say_lines(r, r->again, "that came again: counted once");
	say_lines(r, r->left_out,
		  "whose message journalctl has left out: run it with -a, or with -o cat");
	if (lacking)
		fprintf(r->err, "trocar: %" PRIu64 " stack%s without all parts: passed over\n",
			lacking, text_s(lacking));
}
