/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/tally.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/store.h"
#include "shared/cleanup.h"
#include "shared/macro.h"

#define NAME_MAX_BYTES                                                            \
	128 /* of a module in a sentence of the agent (consumer/summary_advice.c) \
	     */

/* Without padding, as all keys of pools; STORE_NONE: of the whole session. */
struct key {
	uint32_t session, module, why, whole;
};

void tally_init(struct tally *t)
{
	*t = (struct tally){ .budget.max_bytes = TALLY_MAX_BYTES };
	pool_init(&t->texts, &t->budget);
	pool_init(&t->keys, &t->budget);
}

void tally_done(struct tally *t)
{
	pool_done(&t->texts);
	pool_done(&t->keys);
	free(t->sums);
	free(t->plain);
	t->sums = NULL;
	t->plain = NULL;
}

/* The number of a text of a line, its escapes taken out; STORE_NONE for none. */
static int put_text(struct tally *t, const struct json_text *text, uint32_t *ret_number)
{
	int r;

	*ret_number = STORE_NONE;
	if (!text->data)
		return 0;
	if (!text->escaped)
		return pool_put(&t->texts, text->data, text->bytes, ret_number);
	r = pool_grow(&t->budget, (void **)&t->plain, &t->plain_space, (uint32_t)text->bytes, 1);
	if (r < 0)
		return r;
	return pool_put(&t->texts, t->plain, json_reader_decode(text, t->plain), ret_number);
}

static int add(struct tally *t, struct key key, uint64_t count, bool named)
{
	uint32_t number;
	int r = pool_put(&t->keys, &key, sizeof(key), &number);

	if (r == 0)
		r = pool_grow(&t->budget, (void **)&t->sums, &t->space, number + 1,
			      sizeof(*t->sums));
	if (r < 0)
		return r;
	t->sums[number].before = store_sum(t->sums[number].before, count);
	if (!named)
		t->sums[number].now = store_sum(t->sums[number].now, count);
	return 0;
}

int tally_add(struct tally *t, const char *session, size_t session_bytes,
	      const struct event_frame *frame, uint64_t count, bool named)
{
	struct key key = { 0 }, whole = { .module = STORE_NONE, .why = STORE_NONE, .whole = 1 };
	int r = pool_put(&t->texts, session, session_bytes, &key.session);

	if (r == 0)
		r = put_text(t, &frame->module, &key.module);
	if (r == 0)
		r = put_text(t, &frame->why, &key.why);
	if (r == 0)
		r = add(t, key, count, named);
	if (r < 0)
		return r;
	whole.session = key.session;
	return add(t, whole, count, named);
}

static void put_object(json_object **object)
{
	json_object_put(*object);
}

static void free_tokener(json_tokener **tokener)
{
	if (*tokener)
		json_tokener_free(*tokener);
}

static json_object *get(json_object *object, const char *key)
{
	json_object *value = NULL;

	if (json_object_is_type(object, json_type_object))
		json_object_object_get_ex(object, key, &value);
	return value;
}

static const struct tally_sum *find(const struct tally *t, const struct key *key)
{
	uint32_t number;

	return pool_find(&t->keys, key, sizeof(*key), &number) < 0 ? NULL : &t->sums[number];
}

/* The number of a value of a line; false when no frame had it. */
static bool find_text(const struct tally *t, json_object *value, uint32_t *ret_number)
{
	*ret_number = STORE_NONE;
	if (!value)
		return true;
	return json_object_is_type(value, json_type_string) &&
	       pool_find(&t->texts, json_object_get_string(value),
			 (size_t)json_object_get_string_len(value), ret_number) == 0;
}

static const struct tally_sum *sum_of(const struct tally *t, uint32_t session, json_object *row)
{
	struct key key = { .session = session };

	if (!find_text(t, get(row, "module"), &key.module) ||
	    !find_text(t, get(row, "why"), &key.why))
		return NULL;
	return find(t, &key);
}

static bool begins(const char *text, const char *with, size_t bytes)
{
	return strnlen(with, bytes) == bytes && !strncmp(text, with, bytes);
}

/* What is left of a sentence about a module that has all its names now; NULL: nothing. */
static json_object *shorten(const char *base, size_t bytes, const char *sentence)
{
	static const char broken[] = " was built without frame pointers and without symbols";
	char text[2 * NAME_MAX_BYTES];

	if (strncmp(sentence + bytes, broken, sizeof(broken) - 1) != 0)
		return NULL;
	snprintf(text, sizeof(text),
		 "stacks end in %.*s, which was built without frame pointers: "
		 "-fno-omit-frame-pointer keeps them",
		 (int)bytes, base);
	return json_object_new_string(text);
}

/* Takes out the sentence about the module's missing names. */
static void drop_advice(json_object *advice, json_object *module)
{
	const char *path = json_object_get_string(module), *slash, *base;
	size_t n, bytes;

	if (!path || !json_object_is_type(advice, json_type_array))
		return;
	slash = strrchr(path, '/');
	base = slash ? slash + 1 : path;
	bytes = strnlen(base, NAME_MAX_BYTES);
	n = json_object_array_length(advice);
	for (size_t i = n; i-- > 0;) {
		const char *sentence = json_object_get_string(json_object_array_get_idx(advice, i));
		json_object *rest;

		if (!sentence || !begins(sentence, base, bytes) ||
		    (sentence[bytes] != ' ' && sentence[bytes] != ':'))
			continue;
		rest = shorten(base, bytes, sentence);
		if (!rest || json_object_array_put_idx(advice, i, rest) < 0)
			json_object_array_del_idx(advice, i, 1);
	}
}

/* Rows of modules_unnamed become smaller, or go with what was advised about them. */
static void update_modules(const struct tally *t, uint32_t session, json_object *end)
{
	json_object *rows = get(end, "modules_unnamed");

	if (!json_object_is_type(rows, json_type_array))
		return;
	for (size_t i = json_object_array_length(rows); i-- > 0;) {
		json_object *row = json_object_array_get_idx(rows, i);
		const struct tally_sum *sum;

		/* Any other value has no module and no reason either: frames without may exist. */
		if (!json_object_is_type(row, json_type_object))
			continue;
		sum = sum_of(t, session, row);
		if (!sum || sum->now == sum->before)
			continue;
		if (sum->now) {
			json_object_object_add(row, "frames", json_object_new_uint64(sum->now));
			continue;
		}
		drop_advice(get(end, "advice"), get(row, "module"));
		json_object_array_del_idx(rows, i, 1);
	}
}

static bool is_number(json_object *value)
{
	return json_object_is_type(value, json_type_double) ||
	       json_object_is_type(value, json_type_int);
}

/* What is no share stays as it came: 1e999, say, is a number of JSON, but reads as infinity. */
static void update_share(json_object *end, const struct tally_sum *whole)
{
	json_object *quality = get(end, "stack_quality"), *share = get(quality, "unnamed_share");
	char text[32];
	double now;

	if (!is_number(share))
		return;
	now = json_object_get_double(share);
	if (!(now >= 0 && now <= 1))
		return;
	now = now * (double)whole->now / (double)whole->before;
	snprintf(text, sizeof(text), "%.3f", now);
	json_object_object_add(quality, "unnamed_share", json_object_new_double_s(now, text));
}

static int write_symbolized(json_object *end, const struct tally_sum *whole)
{
	json_object *object = json_object_new_object();

	if (!object)
		return -ENOMEM;
	json_object_object_add(object, "named", json_object_new_uint64(whole->before - whole->now));
	json_object_object_add(object, "unnamed", json_object_new_uint64(whole->now));
	json_object_object_add(end, "symbolized", object);
	return 0;
}

static int put_line(json_object *end, struct jsonw *w)
{
	size_t length;
	const char *text = json_object_to_json_string_length(
		end, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);

	if (!text)
		return -ENOMEM;
	jsonw_raw(w, NULL, text, length);
	return jsonw_end(w);
}

int tally_end(const struct tally *t, const struct event *event, const char *line, size_t bytes,
	      size_t max_bytes, struct jsonw *w)
{
	_cleanup_(free_tokener) json_tokener *tokener =
		json_tokener_new_ex(JSON_READER_NESTING + 1);
	struct key key = { .module = STORE_NONE, .why = STORE_NONE, .whole = 1 };
	_cleanup_(put_object) json_object *end = NULL;
	const struct tally_sum *whole;
	int r;

	if (!tokener)
		return -ENOMEM;
	if (pool_find(&t->texts, event->session.data, event->session.bytes, &key.session) < 0)
		return -ENOENT;
	whole = find(t, &key);
	if (!whole || whole->now == whole->before)
		return -ENOENT;
	end = json_tokener_parse_ex(tokener, line, (int)bytes);
	if (!json_object_is_type(end, json_type_object))
		return -ENOENT;
	update_modules(t, key.session, end);
	update_share(end, whole);
	if (write_symbolized(end, whole) < 0)
		return -ENOMEM;
	r = put_line(end, w);
	if (r < 0 || w->bytes <= max_bytes)
		return r;
	json_object_object_del(end, "symbolized");
	jsonw_reset(w);
	return put_line(end, w);
}
