/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/member_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"

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
