/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/events/store.h"
#include "shared/json/json_tree.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define NAME_MAX_BYTES                                                                  \
	128 /* of a module in a sentence of the agent (consumer/naming/module_advice.c) \
	     */

/* Has no padding, as all keys of pools; STORE_NONE: of the whole session. */
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

/* Finds the number of a text of a line, without its escapes; STORE_NONE for no text. */
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

static int add_count(struct tally *t, struct key key, uint64_t count, bool named)
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
		r = add_count(t, key, count, named);
	if (r < 0)
		return r;
	whole.session = key.session;
	return add_count(t, whole, count, named);
}

static const struct tally_sum *find_sum(const struct tally *t, const struct key *key)
{
	uint32_t number;

	return pool_find(&t->keys, key, sizeof(*key), &number) < 0 ? NULL : &t->sums[number];
}

/* Finds the number of a value of a line; false if no frame had it. */
static bool find_text(const struct tally *t, const struct json_node *value, uint32_t *ret_number)
{
	*ret_number = STORE_NONE;
	if (!value)
		return true;
	return json_node_is(value, JSON_STRING) &&
	       pool_find(&t->texts, value->text, value->bytes, ret_number) == 0;
}

/* The last line of a session, being rewritten. */
struct rewrite {
	const struct tally *t;
	const char *line;
	const struct json_node *end; /* the line's object */
	uint32_t session;
	const struct tally_sum *whole;
	const struct json_node *
		*named; /* owned: rows of modules_unnamed with names for all their frames now */
	uint32_t n_named;
	struct jsonw *w;
};

static void rewrite_done(struct rewrite *x)
{
	free(x->named);
}

static void write_raw(struct rewrite *x, const struct json_node *value)
{
	jsonw_raw(x->w, NULL, x->line + value->offset, value->extent);
}

static void write_key(struct rewrite *x, const struct json_node *member)
{
	jsonw_string_n(x->w, NULL, member->key, member->key_bytes);
	x->w->comma = false;
	jsonw_raw(x->w, NULL, ":", 1);
	x->w->comma = false;
}

/*
 * Returns the sum of a row of modules_unnamed if it has changed, else NULL. A row that is not an
 * object has neither module nor reason, even if frames without them exist.
 */
static const struct tally_sum *find_changed(const struct rewrite *x, const struct json_node *row)
{
	struct key key = { .session = x->session };
	const struct tally_sum *sum;

	if (!json_node_is(row, JSON_OBJECT) ||
	    !find_text(x->t, json_node_get(row, "module"), &key.module) ||
	    !find_text(x->t, json_node_get(row, "why"), &key.why))
		return NULL;
	sum = find_sum(x->t, &key);
	return sum && sum->now != sum->before ? sum : NULL;
}

static int find_named(struct rewrite *x)
{
	const struct json_node *rows = json_node_get(x->end, "modules_unnamed");

	x->named = calloc(MAX(json_node_elements(rows), 1u), sizeof(const struct json_node *));
	if (!x->named)
		return -ENOMEM;
	if (!json_node_is(rows, JSON_ARRAY))
		return 0;
	for (const struct json_node *row = json_node_first(rows); row; row = json_node_next(row)) {
		const struct tally_sum *sum = find_changed(x, row);

		if (sum && !sum->now && json_node_string(json_node_get(row, "module")))
			x->named[x->n_named++] = row;
	}
	return 0;
}

/* Writes a row with fewer frames than before. */
static void write_row(struct rewrite *x, const struct json_node *row, uint64_t frames)
{
	bool written = false;

	jsonw_object(x->w, NULL);
	for (const struct json_node *m = json_node_first(row); m; m = json_node_next(m)) {
		if (json_node_has_key(m, "frames")) {
			jsonw_u64(x->w, "frames", frames);
			written = true;
			continue;
		}
		write_key(x, m);
		write_raw(x, m);
	}
	if (!written)
		jsonw_u64(x->w, "frames", frames);
	jsonw_object_end(x->w);
}

/* Reduces or removes rows. */
static void write_modules(struct rewrite *x, const struct json_node *rows)
{
	jsonw_array(x->w, NULL);
	for (const struct json_node *row = json_node_first(rows); row; row = json_node_next(row)) {
		const struct tally_sum *sum = find_changed(x, row);

		if (!sum)
			write_raw(x, row);
		else if (sum->now)
			write_row(x, row, sum->now);
	}
	jsonw_array_end(x->w);
}

static const char *skip_folders(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Returns whether a sentence is about the module of this name. */
static bool is_about(const char *sentence, const char *base, size_t bytes)
{
	return !strncmp(sentence, base, bytes) &&
	       (sentence[bytes] == ' ' || sentence[bytes] == ':');
}

/* Returns the name of the module of a sentence if all frames of the module have names now. */
static const char *find_module(const struct rewrite *x, const char *sentence, size_t *ret_bytes)
{
	for (uint32_t i = 0; i < x->n_named; i++) {
		const char *base = skip_folders(json_node_get(x->named[i], "module")->text);

		*ret_bytes = strnlen(base, NAME_MAX_BYTES);
		if (is_about(sentence, base, *ret_bytes))
			return base;
	}
	return NULL;
}

/* Writes the rest of a sentence about a module that has all names now: often nothing. */
static void write_rest(struct rewrite *x, const char *sentence, const char *base, size_t bytes)
{
	static const char broken[] = " was built without frame pointers and without symbols";
	char text[2 * NAME_MAX_BYTES];

	if (strncmp(sentence + bytes, broken, sizeof(broken) - 1) != 0)
		return;
	snprintf(text, sizeof(text),
		 "stacks end in %.*s, which was built without frame pointers: "
		 "-fno-omit-frame-pointer keeps them",
		 (int)bytes, base);
	jsonw_string(x->w, NULL, text);
}

static void write_advice(struct rewrite *x, const struct json_node *advice)
{
	jsonw_array(x->w, NULL);
	for (const struct json_node *m = json_node_first(advice); m; m = json_node_next(m)) {
		const char *sentence = json_node_string(m), *base;
		size_t bytes;

		base = sentence ? find_module(x, sentence, &bytes) : NULL;
		if (base)
			write_rest(x, sentence, base, bytes);
		else
			write_raw(x, m);
	}
	jsonw_array_end(x->w);
}

/*
 * Writes a value that is not a share unchanged: 1e999, for example, is a JSON number, but is parsed
 * as infinity.
 */
static void write_share(struct rewrite *x, const struct json_node *value)
{
	bool number = json_node_is(value, JSON_REAL) || json_node_is(value, JSON_INTEGER);
	double share = json_node_double(value);
	char text[32];

	if (!number || !(share >= 0 && share <= 1)) {
		write_raw(x, value);
		return;
	}
	share = share * (double)x->whole->now / (double)x->whole->before;
	snprintf(text, sizeof(text), "%.3f", share);
	jsonw_raw(x->w, NULL, text, strlen(text));
}

static void write_quality(struct rewrite *x, const struct json_node *quality)
{
	jsonw_object(x->w, NULL);
	for (const struct json_node *m = json_node_first(quality); m; m = json_node_next(m)) {
		write_key(x, m);
		if (json_node_has_key(m, "unnamed_share"))
			write_share(x, m);
		else
			write_raw(x, m);
	}
	jsonw_object_end(x->w);
}

static void write_member(struct rewrite *x, const struct json_node *member)
{
	write_key(x, member);
	if (json_node_has_key(member, "modules_unnamed") && json_node_is(member, JSON_ARRAY))
		write_modules(x, member);
	else if (json_node_has_key(member, "advice") && json_node_is(member, JSON_ARRAY))
		write_advice(x, member);
	else if (json_node_has_key(member, "stack_quality") && json_node_is(member, JSON_OBJECT))
		write_quality(x, member);
	else
		write_raw(x, member);
}

static int write_end(struct rewrite *x, bool with_sums)
{
	jsonw_object(x->w, NULL);
	for (const struct json_node *m = json_node_first(x->end); m; m = json_node_next(m))
		if (!json_node_has_key(m, "symbolized"))
			write_member(x, m);
	if (with_sums) {
		jsonw_object(x->w, "symbolized");
		jsonw_u64(x->w, "named", x->whole->before - x->whole->now);
		jsonw_u64(x->w, "unnamed", x->whole->now);
		jsonw_object_end(x->w);
	}
	jsonw_object_end(x->w);
	return jsonw_end(x->w);
}

int tally_end(const struct tally *t, const struct event *event, const char *line, size_t bytes,
	      size_t max_bytes, struct jsonw *w)
{
	struct key key = { .module = STORE_NONE, .why = STORE_NONE, .whole = 1 };
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	_cleanup_(rewrite_done) struct rewrite x = { .t = t, .line = line, .w = w };
	struct json_fault fault;
	int r;

	if (pool_find(&t->texts, event->session.data, event->session.bytes, &key.session) < 0)
		return -ENOENT;
	x.session = key.session;
	x.whole = find_sum(t, &key);
	if (!x.whole || x.whole->now == x.whole->before)
		return -ENOENT;
	r = json_tree_read(line, bytes, JSON_READER_NESTING, &tree, &fault);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	x.end = tree.nodes;
	if (!json_node_is(x.end, JSON_OBJECT))
		return -ENOENT;
	r = find_named(&x);
	if (r < 0)
		return r;
	r = write_end(&x, true);
	if (r < 0 || w->bytes <= max_bytes)
		return r;
	jsonw_reset(w);
	return write_end(&x, false);
}
