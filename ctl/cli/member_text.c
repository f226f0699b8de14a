/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/member_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define PATH_BYTES 96 /* of a place or a condition */
#define KEY_BYTES  64

static bool ends_with(const char *text, const char *end)
{
	size_t bytes = strlen(text), end_bytes = strlen(end);

	return bytes >= end_bytes && !strcmp(text + bytes - end_bytes, end);
}

/* Formats a number in the unit of its key. */
static char *format_number(const char *key, const struct json_node *value)
{
	char text[TEXT_UNIT_BYTES];
	uint64_t n = json_node_u64(value);

	if (json_node_i64(value) < 0)
		return strdup(value->text);
	if (ends_with(key, "bytes"))
		return strdup(text_bytes(n, text));
	if (ends_with(key, "_us"))
		return strdup(text_duration_us(n, text));
	if (ends_with(key, "_ms"))
		return strdup(
			text_duration_us(n < UINT64_MAX / 1000 ? n * 1000 : UINT64_MAX, text));
	return strdup(value->text);
}

char *member_text_label(const char *key)
{
	char *text = text_tame(key, strlen(key)), *unit = text ? strrchr(text, '_') : NULL;

	if (unit && (!strcmp(unit, "_bytes") || !strcmp(unit, "_ms") || !strcmp(unit, "_us")))
		*unit = 0;
	for (char *c = text; c && *c; c++)
		if (*c == '_')
			*c = ' ';
	return text;
}

static char *format_string(const struct json_node *value)
{
	return text_tame(value->text, value->bytes);
}

static void put_words(FILE *out, const char *key, const struct json_node *value)
{
	_cleanup_free_ char *text = member_text_value(key, value), *name = member_text_label(key);

	/* A word needs no name; a number or an object does. */
	if (json_node_is(value, JSON_STRING))
		fputs(text ? text : "-", out);
	else
		fprintf(out, "%s %s", name ? name : "", text ? text : "-");
}

/* {"pressure":{"resource":"cpu","kind":"some","stall_ms":120}}: "pressure cpu some stall 120 ms".
 */
static char *format_compound(const char *key, const struct json_node *value)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes, n = 0;
	_cleanup_fclose_ FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	for (const struct json_node *m = json_node_first(value); m; m = json_node_next(m), n++) {
		_cleanup_free_ char *one = m->key ? NULL : member_text_value(key, m);

		fputs(!n ? "" : m->key ? " " : ", ", out);
		if (m->key)
			put_words(out, m->key, m);
		else
			fputs(one ? one : "-", out);
	}
	if (!n)
		fputc('-', out);
	fclose(out);
	out = NULL;
	return TAKE_PTR(text);
}

char *member_text_value(const char *key, const struct json_node *value)
{
	if (!value)
		return NULL;
	switch ((enum json_kind)value->kind) {
	case JSON_BOOL:
		return strdup(json_node_is_true(value) ? "yes" : "no");
	case JSON_INTEGER:
		return format_number(key, value);
	case JSON_STRING:
		return format_string(value);
	case JSON_REAL:
		return strdup(value->text);
	case JSON_ARRAY:
	case JSON_OBJECT:
		return format_compound(key, value);
	case JSON_NULL:
		break;
	}
	return NULL;
}

/* As member_text_find, but also a member that is null. */
static const struct json_node *find_member(const struct json_node *object, const char *path)
{
	char key[KEY_BYTES];

	while (object) {
		size_t bytes = strcspn(path, ".");

		snprintf(key, sizeof(key), "%.*s", (int)bytes, path);
		object = json_node_member(object, key);
		if (!path[bytes])
			break;
		path += bytes + 1;
	}
	return object;
}

const struct json_node *member_text_find(const struct json_node *object, const char *path)
{
	const struct json_node *member = find_member(object, path);

	return json_node_is(member, JSON_NULL) ? NULL : member;
}

uint64_t member_text_number(const struct json_node *object, const char *path)
{
	const struct json_node *value = member_text_find(object, path);

	return json_node_is(value, JSON_INTEGER) ? json_node_u64(value) : 0;
}

/* ---- units of the places of a form */

static void put_count(uint64_t n, FILE *out)
{
	fprintf(out, "%" PRIu64, n);
}

static void put_us(uint64_t us, FILE *out)
{
	char text[TEXT_UNIT_BYTES];

	fputs(text_duration_us(us, text), out);
}

static void put_ns(uint64_t ns, FILE *out)
{
	put_us(ns / NSEC_PER_USEC, out);
}

static void put_ms(uint64_t ms, FILE *out)
{
	put_us(MIN(ms, UINT64_MAX / 1000) * 1000, out);
}

/* Puts a bound of a histogram; the last element has none. */
static void put_bound(uint64_t ns, FILE *out)
{
	if (ns)
		put_ns(ns, out);
	else
		fputs("longer", out);
}

static void put_bytes(uint64_t bytes, FILE *out)
{
	char text[TEXT_UNIT_BYTES];

	fputs(text_bytes(bytes, text), out);
}

static void put_size(uint64_t bytes, FILE *out)
{
	if (bytes)
		put_bytes(bytes, out);
	else
		fputc('0', out);
}

static void put_plural(uint64_t n, FILE *out)
{
	fputs(text_s(n), out);
}

static void put_offset(uint64_t offset, FILE *out)
{
	if (offset)
		fprintf(out, "+0x%" PRIx64, offset);
}

static void put_percent(const struct json_node *value, FILE *out)
{
	fprintf(out, "%.0f %%", json_node_double(value));
}

static void put_share(const struct json_node *value, FILE *out)
{
	fprintf(out, "%.0f %%", 100 * json_node_double(value));
}

static void put_tenths(const struct json_node *value, FILE *out)
{
	fprintf(out, "%.1f %%", 100 * json_node_double(value));
}

static void put_value(const struct json_node *value, FILE *out)
{
	_cleanup_free_ char *text = value ? member_text_value(value->key, value) : NULL;

	fputs(text ? text : "-", out);
}

/* Puts the last part of a file's path. */
static void put_base(const struct json_node *value, FILE *out)
{
	_cleanup_free_ char *text = member_text_value("", value);
	const char *slash = text ? strrchr(text, '/') : NULL;

	fputs(slash && slash[1] ? slash + 1 : text ? text : "-", out);
}

/* Puts an address before a port: "10.0.0.5", "[::1]". */
static void put_host(const struct json_node *value, FILE *out)
{
	_cleanup_free_ char *text = member_text_value("", value);

	fprintf(out, text && strchr(text, ':') ? "[%s]" : "%s", text ? text : "-");
}

static const struct {
	const char *name;
	void (*number)(uint64_t number, FILE *out); /* NULL: the other one is called */
	void (*value)(const struct json_node *value, FILE *out);
} units[] = {
	{ "", NULL, put_value },	  /* in the unit of its key */
	{ "n", put_count, NULL },	  /* "12" */
	{ "s", put_plural, NULL },	  /* "s"; "" for 1 */
	{ "ns", put_ns, NULL },		  /* "4 ms" */
	{ "ms", put_ms, NULL },		  /* "4 ms" */
	{ "bound", put_bound, NULL },	  /* of ns: "4 ms"; "longer" for 0 and null */
	{ "bytes", put_bytes, NULL },	  /* "4.0 KiB" */
	{ "size", put_size, NULL },	  /* "4.0 KiB", "0" */
	{ "offset", put_offset, NULL },	  /* "+0x28"; "" for 0 */
	{ "percent", NULL, put_percent }, /* of 61.2: "61 %" */
	{ "share", NULL, put_share },	  /* of 0.612: "61 %" */
	{ "tenths", NULL, put_tenths },	  /* of 0.612: "61.2 %" */
	{ "base", NULL, put_base },	  /* of "/usr/lib/libc.so.6": "libc.so.6" */
	{ "host", NULL, put_host },	  /* "10.0.0.5", "[::1]" */
};

/* ---- forms */

/* Prints the first member of paths with '|' between, each perhaps a sum. */
static void put_paths(char *paths, const char *unit, const struct json_node *object, FILE *out)
{
	const struct json_node *value = NULL, *one = NULL;
	char *rest, *more;
	uint64_t number = 0;

	for (char *path = strtok_r(paths, "|", &rest); path && !value;
	     path = strtok_r(NULL, "|", &rest)) {
		if (!one && !strcmp(path, "-")) {
			fputc('-', out);
			return;
		}
		for (path = strtok_r(path, "+", &more); path; path = strtok_r(NULL, "+", &more)) {
			one = find_member(object, path);
			number += json_node_u64(one);
			value = !value && !json_node_is(one, JSON_NULL) ? one : value;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].name) != 0)
			continue;
		if (units[i].number)
			units[i].number(number, out);
		else
			units[i].value(value, out);
	}
}

/* Prints the place that begins here; returns the text after it. */
static const char *put_place(const char *form, const struct json_node *object, FILE *out)
{
	size_t bytes = strcspn(form, "}");
	char place[PATH_BYTES], *unit;

	snprintf(place, sizeof(place), "%.*s", (int)bytes, form);
	unit = strchr(place, ':');
	if (unit)
		*unit++ = '\0';
	put_paths(place, unit ? unit : "", object, out);
	return form + bytes + (form[bytes] != '\0');
}

bool member_text_holds(const char *condition, const struct json_node *object)
{
	bool wanted = *condition != '!', holds;
	char path[PATH_BYTES], *word;
	const struct json_node *value;

	snprintf(path, sizeof(path), "%s", condition + !wanted);
	path[strcspn(path, "?")] = '\0';
	word = strchr(path, '=');
	if (word)
		*word++ = '\0';
	value = member_text_find(object, path);
	holds = value && (!word || (value->bytes == strlen(word) && value->text &&
				    !memcmp(value->text, word, value->bytes)));
	return holds == wanted;
}

/* Returns the text of the part that begins here; after its end if its condition does not hold. */
static const char *enter_part(const char *form, const struct json_node *object)
{
	unsigned int depth = !member_text_holds(form, object);

	form += strcspn(form, "?");
	while (*form && depth) {
		form += 1 + strcspn(form + 1, "[]");
		depth = *form == '[' ? depth + 1 : depth - 1;
	}
	return form + (*form != '\0');
}

void member_text_put(const char *form, const struct json_node *object, FILE *out)
{
	while (*form) {
		size_t bytes = strcspn(form, "{[]");

		fwrite(form, 1, bytes, out);
		form += bytes;
		if (*form == '{')
			form = put_place(form + 1, object, out);
		else if (*form == '[')
			form = enter_part(form + 1, object);
		else if (*form)
			form++; /* the end of a part that was printed */
	}
}
