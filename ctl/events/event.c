/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/event.h"

#include <errno.h>
#include <string.h>

#include "shared/tools/macro.h"

/* Bits of types, for sets. */
enum {
	STACK = 1u << EVENT_STACK,
	START = 1u << EVENT_SESSION_START,
	END = 1u << EVENT_SESSION_END,
	HELD = 1u << EVENT_HELD,
	ERROR = 1u << EVENT_ERROR,
	ALL = UINT32_MAX,
};

static const struct key {
	const char *name;
	uint8_t bytes;
	bool number;
	uint16_t field;
	uint32_t types;
	uint64_t min, max;
} keys[] = {
#define TEXT(types, key, field) \
	{ key, sizeof(key) - 1, false, offsetof(struct event, field), types, 0, 0 },
#define NUMBER(types, key, field, min, max) \
	{ key, sizeof(key) - 1, true, offsetof(struct event, field), types, min, max },
#include "ctl/events/event_keys.def"
#undef TEXT
#undef NUMBER
};

static const struct {
	const char *name;
	enum event_type type;
} types[] = {
#define TYPE(id, json)	       { (json), EVENT_##id },
#define KEPT(id, json, member) { (json), EVENT_##id },
#include "ctl/events/event_types.def"
#undef TYPE
#undef KEPT
};
_Static_assert(EVENT_TYPES_ <= 32, "a bit of struct key for each");

bool event_is(const struct json_text *text, const char *word)
{
	return text->data && !text->escaped && text->bytes == strlen(word) &&
	       !memcmp(text->data, word, text->bytes);
}

static const struct key *find_key(const struct json_text *text, enum event_type type)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].bytes == text->bytes && keys[i].types & 1u << type &&
		    !memcmp(keys[i].name, text->data, text->bytes))
			return &keys[i];
	return NULL;
}

/* Reads an id in either form, "17" or 17. */
static bool read_id(struct json_reader *json, struct json_text *ret_text)
{
	uint64_t number;

	if (json_reader_peek(json) == '"')
		return json_reader_string(json, false, ret_text);
	*ret_text = (struct json_text){ .data = json->at };
	if (!json_reader_u64(json, 0, UINT64_MAX, &number))
		return false;
	ret_text->bytes = (size_t)(json->at - ret_text->data);
	return true;
}

static bool read_known(struct json_reader *json, const struct key *key, struct event *event)
{
	char *field = (char *)event + key->field;

	if (key->number)
		return json_reader_u64(json, key->min, key->max, (uint64_t *)(void *)field);
	return json_reader_string(json, true, (struct json_text *)(void *)field);
}

struct reading {
	struct json_reader json;
	struct event event;
	struct json_text key;
	event_frames_call frames;
	void *context;
};

static bool read_value(struct reading *r)
{
	struct json_reader *json = &r->json;
	const struct key *key;

	if (r->event.type == EVENT_OTHER)
		return json_reader_skip(json);
	if (r->event.type == EVENT_STACK && event_is(&r->key, "frames")) {
		r->event.frames = true;
		return r->frames(r->context, json, &r->event);
	}
	if (r->event.type == EVENT_STACK && event_is(&r->key, "idle")) {
		r->event.idle = json_reader_peek(json) == 't';
		return json_reader_skip(json);
	}
	if (r->event.type == EVENT_STACK && event_is(&r->key, "condition")) {
		r->event.condition = json_reader_peek(json) == 't';
		return json_reader_skip(json);
	}
	if (r->event.type == EVENT_STACK && event_is(&r->key, "stack_id"))
		return read_id(json, &r->event.stack_id);
	key = find_key(&r->key, r->event.type);
	return key ? read_known(json, key, &r->event) : json_reader_skip(json);
}

/*
 * Finds the type first, because it decides the meaning of the other keys; a pipeline may have moved
 * it after them.
 */
static bool find_type(struct reading *r, const char *line, size_t bytes)
{
	struct json_reader *json = &r->json;

	json_reader_init(json, line, bytes, JSON_READER_NESTING);
	json_reader_object(json);
	while (json_reader_key(json, &r->key)) {
		if (!event_is(&r->key, "type")) {
			json_reader_skip(json);
			continue;
		}
		if (!json_reader_string(json, false, &r->event.type_text))
			return false;
		for (size_t i = 0; i < ARRAY_SIZE(types); i++)
			if (event_is(&r->event.type_text, types[i].name))
				r->event.type = types[i].type;
		return true;
	}
	r->key.data = NULL;
	return json_reader_refuse(json, "want an event line, with the key type");
}

static const char *find_missing(const struct event *e)
{
	if (e->type == EVENT_OTHER)
		return NULL;
	if (e->v != EVENT_VERSION)
		return "want version 1: the key v";
	if (!e->ts.data)
		return "want the key ts";
	if (e->type == EVENT_PRESSURE || e->type == EVENT_HELD || e->type == EVENT_ERROR ||
	    e->type == EVENT_REJECTED)
		return NULL;
	if (!e->session.data)
		return "want the key session";
	if (e->type != EVENT_STACK)
		return NULL;
	if (!e->frames)
		return "want the key frames";
	if (e->parts && (!e->part || e->part > e->parts || !e->stack_id.data))
		return "want the keys stack_id and part, up to parts";
	if ((!e->parts || e->part == 1) && (!e->count || !e->weight_ns))
		return "want the keys count and weight_ns";
	if (!e->signal.data || !e->phase.data || !e->comm.data)
		return "want the keys signal, phase and comm";
	return NULL;
}

static bool read_line(struct reading *r, const char *line, size_t bytes)
{
	struct json_reader *json = &r->json;
	const char *what;

	if (!find_type(r, line, bytes))
		return false;
	json_reader_init(json, line, bytes, JSON_READER_NESTING);
	json_reader_object(json);
	while (json_reader_key(json, &r->key))
		if (!read_value(r))
			return false;
	r->key.data = NULL;
	if (!json_reader_end(json))
		return false;
	what = find_missing(&r->event);
	return !what || json_reader_refuse(json, what);
}

bool event_read(const char *line, size_t bytes, event_frames_call frames, void *context,
		struct event *ret_event, struct event_fault *ret_fault)
{
	struct reading r = { .frames = frames, .context = context };

	if (!read_line(&r, line, bytes)) {
		*ret_fault = (struct event_fault){
			.fault = r.json.fault ? r.json.fault : "want fewer frames",
			.at = (size_t)(r.json.at - r.json.start),
			.key = r.key,
		};
		return false;
	}
	*ret_event = r.event;
	return true;
}

/*
 * Reads the source line of a frame (docs/events.md); of an incomplete object the present members.
 */
static bool take_source(struct json_reader *json, struct event_frame *frame)
{
	struct json_text key;

	if (json_reader_peek(json) != '{')
		return json_reader_skip(json);
	json_reader_object(json);
	while (json_reader_key(json, &key)) {
		if (event_is(&key, "file") && json_reader_peek(json) == '"')
			json_reader_string(json, false, &frame->file);
		else if (event_is(&key, "line") && json_reader_peek(json) >= '0' &&
			 json_reader_peek(json) <= '9')
			json_reader_u64(json, 0, INT32_MAX, &frame->line);
		else
			json_reader_skip(json);
	}
	return !json->fault;
}

static bool take_frame_value(struct json_reader *json, const struct json_text *key,
			     struct event_frame *frame)
{
	if (event_is(key, "fn"))
		return json_reader_string(json, true, &frame->fn);
	if (event_is(key, "module"))
		return json_reader_string(json, true, &frame->module);
	if (event_is(key, "kind"))
		return json_reader_string(json, false, &frame->kind);
	if (event_is(key, "build_id"))
		return json_reader_string(json, true, &frame->build_id);
	if (event_is(key, "raw"))
		return json_reader_string(json, true, &frame->raw);
	if (event_is(key, "why"))
		return json_reader_string(json, true, &frame->why);
	if (event_is(key, "source"))
		return take_source(json, frame);
	if (event_is(key, "line") && json_reader_peek(json) >= '0' && json_reader_peek(json) <= '9')
		return json_reader_u64(json, 0, INT32_MAX, &frame->line);
	if (event_is(key, "interpreter")) {
		frame->interpreter = json_reader_peek(json) == 't';
		return json_reader_skip(json);
	}
	if (event_is(key, "exact")) {
		frame->exact = json_reader_peek(json) == 't';
		return json_reader_skip(json);
	}
	if (!event_is(key, "offset") || json_reader_peek(json) == 'n')
		return json_reader_skip(json);
	frame->has_offset = true;
	return json_reader_u64(json, 0, UINT64_MAX, &frame->offset);
}

bool event_frame(struct json_reader *json, struct event_frame *ret_frame)
{
	struct event_frame frame = { 0 };
	struct json_text key;

	if (!json_reader_object(json))
		return false;
	while (json_reader_key(json, &key))
		if (!take_frame_value(json, &key, &frame))
			return false;
	if (json->fault)
		return false;
	if (!frame.kind.data)
		return json_reader_refuse(json, "want the key kind in every frame");
	/* The module of a frame of a runtime is its source file. */
	if (frame.line && !frame.file.data && event_is(&frame.kind, "runtime"))
		frame.file = frame.module;
	*ret_frame = frame;
	return true;
}

/* Reads `n` digits at *at; if the text ends before them, the number is `otherwise`. */
static bool take_number(const char **at, const char *end, char before, unsigned int n,
			int otherwise, int *ret_number)
{
	int number = 0;

	if (*at == end) {
		*ret_number = otherwise;
		return true;
	}
	if (before && *(*at)++ != before)
		return false;
	if ((size_t)(end - *at) < n)
		return false;
	for (unsigned int i = 0; i < n; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		number = number * 10 + (**at - '0');
	}
	*ret_number = number;
	return true;
}

/* Reads the decimals after the seconds. */
static bool take_ns(const char **at, const char *end, uint64_t *ret_ns)
{
	uint64_t unit = NSEC_PER_SEC, ns = 0;

	if (*at < end && **at == '.') {
		for ((*at)++; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
			unit /= 10;
			ns += unit * (uint64_t)(**at - '0');
		}
	}
	*ret_ns = ns;
	return *at == end;
}

/*
 * Returns the days since 1970 (howardhinnant.github.io/date_algorithms.html); timegm(3) would open
 * a file.
 */
static uint64_t count_days(int year, int month, int day)
{
	int y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
	int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return (uint64_t)(era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
			  719468);
}

int event_time(const char *text, size_t bytes, uint64_t *ret_ns)
{
	int year, month, day, hour, minute, second;
	const char *at = text, *end = text + bytes;
	uint64_t ns;

	if (bytes && (end[-1] == 'Z' || end[-1] == 'z'))
		end--;
	if (!take_number(&at, end, 0, 4, 0, &year) || !take_number(&at, end, '-', 2, 0, &month) ||
	    !take_number(&at, end, '-', 2, 0, &day) || !take_number(&at, end, 'T', 2, 0, &hour) ||
	    !take_number(&at, end, ':', 2, 0, &minute) ||
	    !take_number(&at, end, ':', 2, 0, &second) || !take_ns(&at, end, &ns))
		return -EINVAL;
	if (year < 1970 || year > 2500 || month < 1 || month > 12 || day < 1 || day > 31 ||
	    hour > 23 || minute > 59 || second > 60)
		return -EINVAL;
	*ret_ns = (((count_days(year, month, day) * 24 + (uint64_t)hour) * 60 + (uint64_t)minute) *
			   60 +
		   (uint64_t)second) *
			  NSEC_PER_SEC +
		  ns;
	return 0;
}
