/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "ctl/events/lines.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const char *const kinds[] = {
	[STORE_USER] = "user",
	[STORE_KERNEL] = "kernel",
	[STORE_RUNTIME] = "runtime",
	[STORE_JIT] = "jit",
};

static const char *const phases[] = {
	[STORE_BEFORE] = "before",
	[STORE_DURING] = "during",
	[STORE_ONSET] = "onset",
};

static const char *const states[] = {
	[STORE_RUNS] = "on CPU",
	[STORE_RUNNABLE] = "waits for a CPU",
#define WAIT_KIND(id, json, idle, help) [STORE_WAITS_##id] = (json),
#include "shared/abi/waits.def"
#undef WAIT_KIND
	[STORE_WAITS_CONDITION] = "condition",
};

const char *store_state_word(enum store_state state)
{
	return states[state];
}

/* An unknown kind of wait counts as STORE_WAITS_OTHER. */
static enum store_state find_state(const struct event *event)
{
	if (!event->state.data)
		return STORE_RUNS;
	if (event_is(&event->state, "runnable"))
		return STORE_RUNNABLE;
	if (event->idle)
		return STORE_WAITS_IDLE;
	if (event->condition)
		return STORE_WAITS_CONDITION;
	for (unsigned int i = STORE_RUNNABLE + 1; i < STORE_STATE_COUNT_; i++)
		if (event_is(&event->wait, states[i]))
			return (enum store_state)i;
	return STORE_WAITS_OTHER;
}

enum store_phase store_phase(const struct json_text *word)
{
	unsigned int phase = 0;

	while (phase < STORE_PHASE_COUNT_ && !event_is(word, phases[phase]))
		phase++;
	return (enum store_phase)phase;
}

const char *store_phase_word(enum store_phase phase)
{
	return phases[phase];
}

/* By type of line: number of its list in a session, plus 1; 0: lines of the type are not kept. */
static const uint8_t kept[EVENT_TYPES_] = {
#define TYPE(id, json)
#define KEPT(id, json, member) [EVENT_##id] = STORE_TYPE_##id + 1,
#include "ctl/events/event_types.def"
#undef TYPE
#undef KEPT
};

int store_init(struct store *s, uint64_t max_bytes)
{
	*s = (struct store){ .budget = { .max_bytes = max_bytes } };
	pool_init(&s->texts, &s->budget);
	pool_init(&s->frames, &s->budget);
	pool_init(&s->stacks, &s->budget);
	pool_init(&s->keys, &s->budget);
	pool_init(&s->ids, &s->budget);
	s->plain = malloc(LINES_MAX_BYTES);
	return s->plain ? 0 : -ENOMEM;
}

void store_done(struct store *s)
{
	pool_done(&s->texts);
	pool_done(&s->frames);
	pool_done(&s->stacks);
	pool_done(&s->keys);
	pool_done(&s->ids);
	for (uint32_t i = 0; i < s->sessions_space; i++)
		for (size_t k = 0; k < STORE_TYPES; k++)
			free(s->sessions[i].lines[k].items);
	free(s->values);
	free(s->next);
	free(s->sessions);
	free(s->plain);
	*s = (struct store){ 0 };
}

int store_text(struct store *s, const struct json_text *text, uint32_t *ret_text)
{
	if (!text->data) {
		*ret_text = STORE_NONE;
		return 0;
	}
	if (!text->escaped)
		return pool_put(&s->texts, text->data, text->bytes, ret_text);
	return pool_put(&s->texts, s->plain, json_reader_decode(text, s->plain), ret_text);
}

/* Stores the `n` texts of `from`, and writes their numbers to `to`. */
static int put_texts(struct store *s, const struct json_text *const from[], uint32_t *const to[],
		     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = store_text(s, from[i], to[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* An unknown kind of a later version counts as code of the program. */
static uint32_t find_kind(const struct json_text *text)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (event_is(text, kinds[i]))
			return i;
	return STORE_USER;
}

char *store_tame(const struct store *s, uint32_t text)
{
	const char *data;
	size_t bytes;

	if (text == STORE_NONE)
		return strdup("-");
	data = pool_get(&s->texts, text, &bytes);
	return text_tame(data, bytes);
}

int store_frame(struct store *s, const struct event_frame *frame, uint32_t *ret_frame)
{
	struct store_frame f = {
		.kind = find_kind(&frame->kind),
		.has_offset = frame->has_offset,
		.interpreter = frame->interpreter,
		.offset = frame->offset,
		.line = (uint32_t)frame->line,
	};
	const struct json_text *const from[] = { &frame->fn, &frame->raw, &frame->module,
						 &frame->build_id, &frame->file };
	uint32_t *const to[] = { &f.fn, &f.raw, &f.module, &f.build_id, &f.file };
	int r = put_texts(s, from, to, ARRAY_SIZE(to));

	return r < 0 ? r : pool_put(&s->frames, &f, sizeof(f), ret_frame);
}

int store_session(struct store *s, const struct event *event, uint64_t time_ns,
		  uint32_t *ret_session)
{
	struct store_session *session;
	struct store_session fresh = {
		.start = STORE_NONE,
		.end = STORE_NONE,
		.pressure = STORE_NONE,
		.headline = STORE_NONE,
		.verdict = STORE_NONE,
	};
	const struct json_text *const from[] = { &event->session, &event->rule, &event->cgroup,
						 &event->host };
	uint32_t *const to[] = { &fresh.id, &fresh.rule, &fresh.cgroup, &fresh.host };
	uint32_t number;
	int r;

	r = put_texts(s, from, to, ARRAY_SIZE(to));
	if (r < 0)
		return r;
	r = pool_put(&s->ids, &fresh.id, sizeof(fresh.id), &number);
	if (r < 0)
		return r;
	r = pool_grow(&s->budget, (void **)&s->sessions, &s->sessions_space, s->ids.count,
		      sizeof(*s->sessions));
	if (r < 0)
		return r;
	session = &s->sessions[number];
	time_ns = MAX(time_ns, (uint64_t)1);
	if (!session->time_ns)
		*session = fresh;
	session->time_ns = session->time_ns ? MIN(session->time_ns, time_ns) : time_ns;
	*ret_session = number;
	return 0;
}

/* The onset is the end of the pre-roll. */
static void set_pre_roll(struct store_session *to, const struct event *event)
{
	uint64_t onset_ms = MIN(event->onset_ms, event->pre_ms);

	to->length_ms[STORE_BEFORE] = event->pre_ms - onset_ms;
	to->length_ms[STORE_ONSET] = onset_ms;
}

/* Keeps the line, unless it is already kept, as when a file is read twice, or the list is full. */
static int keep_line(struct store *s, struct store_lines *to, const char *line, size_t bytes)
{
	uint32_t number;
	int r;

	if (to->count == STORE_LINES) {
		to->left_out++;
		return 0;
	}
	r = pool_put(&s->texts, line, bytes, &number);
	for (uint32_t i = 0; r == 0 && i < to->count; i++)
		if (to->items[i] == number)
			return 0;
	if (r == 0)
		r = pool_grow(&s->budget, (void **)&to->items, &to->space, to->count + 1,
			      sizeof(*to->items));
	if (r == 0)
		to->items[to->count++] = number;
	return r;
}

int store_session_line(struct store *s, uint32_t session, const struct event *event,
		       const char *line, size_t bytes)
{
	struct store_session *to = &s->sessions[session];
	int r;

	switch (event->type) {
	case EVENT_SESSION_START:
		to->hz = event->hz;
		if (!to->length_ms[STORE_BEFORE])
			set_pre_roll(to, event);
		return pool_put(&s->texts, line, bytes, &to->start);
	case EVENT_SESSION_END:
		set_pre_roll(to, event);
		to->length_ms[STORE_DURING] = event->duration_ms;
		r = store_text(s, &event->headline, &to->headline);
		if (r == 0)
			r = store_text(s, &event->verdict, &to->verdict);
		if (r < 0)
			return r;
		return pool_put(&s->texts, line, bytes, &to->end);
	case EVENT_PRESSURE:
		return pool_put(&s->texts, line, bytes, &to->pressure);
	default:
		if (!kept[event->type])
			return 0;
		return keep_line(s, &to->lines[kept[event->type] - 1], line, bytes);
	}
}

static enum store_cause find_cause(const struct json_text *resource)
{
	static const char *const names[] = { "cpu", "memory", "io" };

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		if (event_is(resource, names[i]))
			return (enum store_cause)i;
	return STORE_NO_PRESSURE;
}

bool store_held(struct store *s, const struct event *event)
{
	/*
	 * A line with sums stands for all triggers since the previous line, another line for one
	 * trigger.
	 */
	bool sums = event->repeats > 0;
	uint32_t id, number;
	struct store_held *held;

	if (!event_is(&event->reason, "cooldown") ||
	    pool_find(&s->texts, event->session.data, event->session.bytes, &id) < 0 ||
	    pool_find(&s->ids, &id, sizeof(id), &number) < 0)
		return false;
	held = &s->sessions[number].held[find_cause(&event->resource)];
	held->triggers = store_sum(held->triggers, sums ? event->repeats : 1);
	held->largest_ms = MAX(held->largest_ms, sums ? event->largest_ms : event->stall_ms);
	held->sum_ms = store_sum(held->sum_ms, sums ? event->sum_ms : event->stall_ms);
	return true;
}

int store_key(struct store *s, uint32_t session, const struct event *event,
	      struct store_key *ret_key, struct store_value *ret_value)
{
	struct store_key key = {
		.session = session,
		.phase = (uint16_t)store_phase(&event->phase),
		.state = (uint16_t)find_state(event),
		.file = s->file,
		.pid = event->pid,
	};
	const struct json_text *const from[] = { &event->signal, &event->comm, &event->exe,
						 &event->quality };
	uint32_t *const to[] = { &key.signal, &key.comm, &key.exe, &key.quality };
	int r = put_texts(s, from, to, ARRAY_SIZE(to));

	if (r < 0)
		return r;
	*ret_value = (struct store_value){ event->count, event->weight_ns, event->threads };
	*ret_key = key;
	return 0;
}

/* Appends a new key to the list of its session. */
static int link_key(struct store *s, uint32_t session, uint32_t number)
{
	struct store_list *keys = &s->sessions[session].keys;
	int r = pool_grow(&s->budget, (void **)&s->next, &s->next_space, number + 1,
			  sizeof(*s->next));

	if (r < 0)
		return r;
	if (keys->last)
		s->next[keys->last - 1] = number + 1;
	else
		keys->first = number + 1;
	keys->last = number + 1;
	s->next[number] = 0;
	return 0;
}

/* Adds to the sums of a complete key. */
static int count_key(struct store *s, const struct store_key *key, const struct store_value *value)
{
	uint32_t number, before = s->keys.count;
	struct store_value *sum;
	int r = pool_put(&s->keys, key, sizeof(*key), &number);

	if (r == 0 && s->keys.count > before)
		r = link_key(s, key->session, number);
	if (r == 0)
		r = pool_grow(&s->budget, (void **)&s->values, &s->values_space, number + 1,
			      sizeof(*s->values));
	if (r < 0)
		return r;
	sum = &s->values[number];
	sum->count = store_sum(sum->count, value->count);
	sum->weight_ns = store_sum(sum->weight_ns, value->weight_ns);
	sum->threads = store_sum(sum->threads, value->threads);
	return 0;
}

/*
 * Copies the frames without those of a language runtime itself, where the stack has functions that
 * it interprets; with `native` copies all. Returns their number.
 */
static uint32_t show_frames(const struct store *s, const uint32_t *frames, uint32_t n,
			    uint32_t shown[STORE_FRAMES_MAX])
{
	bool hides = false;
	uint32_t count = 0;

	n = MIN(n, (uint32_t)STORE_FRAMES_MAX);
	for (uint32_t i = 0; i < n && !s->native; i++)
		hides = hides || store_frame_get(s, frames[i])->kind == STORE_RUNTIME;
	for (uint32_t i = 0; i < n; i++)
		if (!hides || !store_frame_get(s, frames[i])->interpreter)
			shown[count++] = frames[i];
	return count;
}

int store_count(struct store *s, struct store_key *key, const uint32_t *frames, uint32_t n,
		const struct store_value *value)
{
	uint32_t shown[STORE_FRAMES_MAX];
	int r;

	n = show_frames(s, frames, n, shown);
	r = pool_put(&s->stacks, shown, n * sizeof(*shown), &key->stack);
	return r < 0 ? r : count_key(s, key, value);
}

/* Rebuilds keys, values and lists from the keys that stay. */
int store_drop(struct store *s)
{
	struct pool keys = s->keys;
	_cleanup_free_ struct store_value *values = s->values;
	int r = 0;

	pool_init(&s->keys, &s->budget);
	s->values = NULL;
	s->budget.used_bytes -= s->values_space * sizeof(*s->values);
	s->values_space = 0;
	for (uint32_t i = 0; i < s->ids.count; i++)
		s->sessions[i].keys = (struct store_list){ 0 };
	for (uint32_t i = 0; r == 0 && i < keys.count; i++) {
		size_t bytes;
		const struct store_key *key = pool_get(&keys, i, &bytes);

		if (s->sessions[key->session].files & 1u << key->file)
			r = count_key(s, key, &values[i]);
	}
	pool_done(&keys);
	return r;
}

const uint32_t *store_frames(const struct store *s, uint32_t stack, uint32_t *ret_n)
{
	size_t bytes;
	const uint32_t *frames = pool_get(&s->stacks, stack, &bytes);

	*ret_n = (uint32_t)(bytes / sizeof(*frames));
	return frames;
}

const struct store_frame *store_frame_get(const struct store *s, uint32_t frame)
{
	size_t bytes;

	return pool_get(&s->frames, frame, &bytes);
}

const struct store_key *store_key_get(const struct store *s, uint32_t key)
{
	size_t bytes;

	return pool_get(&s->keys, key, &bytes);
}

uint32_t store_first(const struct store *s, uint32_t session)
{
	if (session == STORE_NONE)
		return s->keys.count ? 0 : STORE_NONE;
	return s->sessions[session].keys.first - 1; /* for 0: STORE_NONE */
}

uint32_t store_next(const struct store *s, uint32_t session, uint32_t key)
{
	if (session == STORE_NONE)
		return key + 1 < s->keys.count ? key + 1 : STORE_NONE;
	return s->next[key] - 1;
}
