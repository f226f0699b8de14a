/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_fault.c: collects the faults of a rules text, and returns them to the caller as a list. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/rules/rules_internal.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define TOKEN_BYTES 128 /* longer keys are cut in pointers: 1000 faults may copy one key */
#define VALUE_BYTES 48u /* longer values are cut in messages */

struct rules_pending {
	size_t offset;
	size_t serial; /* keeps faults at the same offset in the order of discovery */
	char *pointer;
	char *message;
};

void rules_faults_init(struct rules_faults *faults)
{
	*faults = (struct rules_faults){ 0 };
}

void rules_faults_done(struct rules_faults *faults)
{
	for (size_t i = 0; i < faults->kept; i++) {
		free(faults->items[i].pointer);
		free(faults->items[i].message);
	}
	free(faults->items);
	*faults = (struct rules_faults){ 0 };
}

void rules_fault_write(const struct rules_fault *fault, struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "pointer", fault->pointer);
	jsonw_string(w, "message", fault->message);
	if (fault->line) {
		jsonw_u64(w, "line", fault->line);
		jsonw_u64(w, "column", fault->column);
	}
	jsonw_object_end(w);
}

void rules_faults_write(const struct rules_faults *faults, struct jsonw *w, const char *key)
{
	jsonw_array(w, key);
	for (size_t i = 0; i < faults->kept; i++)
		rules_fault_write(&faults->items[i], w);
	jsonw_array_end(w);
}

/* Writes one reference token with RFC 6901's escapes, "~0" and "~1". */
static void write_key(FILE *out, const char *key, size_t bytes)
{
	for (size_t i = 0; i < MIN(bytes, (size_t)TOKEN_BYTES); i++) {
		if (key[i] == '~')
			fputs("~0", out);
		else if (key[i] == '/')
			fputs("~1", out);
		else if (key[i] != '\0')
			fputc(key[i], out);
	}
	if (bytes > TOKEN_BYTES)
		fputs("...", out);
}

static void write_pointer(FILE *out, const struct json_node *node)
{
	const struct json_node *path[RULES_NESTING + 1];
	uint32_t n = 0;

	/* A text has no more than RULES_NESTING levels, so the path always fits. */
	for (; json_node_parent(node); node = json_node_parent(node))
		path[n++] = node;
	while (n > 0) {
		const struct json_node *at = path[--n];

		fputc('/', out);
		if (at->key)
			write_key(out, at->key, at->key_bytes);
		else
			fprintf(out, "%u", at->index);
	}
}

static char *make_pointer(const struct json_node *node)
{
	char *text = NULL;
	size_t bytes;
	FILE *out;

	if (!node)
		return strdup("");
	out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	write_pointer(out, node);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static bool make_room(struct rules_collect *c)
{
	return array_reserve(&c->items, &c->space, c->kept + 1, sizeof(*c->items)) == 0;
}

static void add_fault(struct rules_collect *c, const struct json_node *node, size_t offset,
		      const char *format, va_list args) __attribute__((format(printf, 4, 0)));

static void add_fault(struct rules_collect *c, const struct json_node *node, size_t offset,
		      const char *format, va_list args)
{
	_cleanup_free_ char *pointer = NULL, *message = NULL;

	c->count++;
	if (c->error || c->kept - c->base >= RULES_FAULTS_MAX)
		return;
	pointer = make_pointer(node);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	if (!pointer || !message || !make_room(c)) {
		c->error = -ENOMEM;
		return;
	}
	c->items[c->kept] =
		(struct rules_pending){ offset, c->kept, TAKE_PTR(pointer), TAKE_PTR(message) };
	c->kept++;
}

void rules_collect_add(struct rules_collect *c, const struct json_node *node, const char *format,
		       ...)
{
	va_list args;

	va_start(args, format);
	add_fault(c, node, node->offset, format, args);
	va_end(args);
}

void rules_collect_add_at(struct rules_collect *c, size_t offset, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add_fault(c, NULL, offset, format, args);
	va_end(args);
}

void rules_collect_wrong(struct rules_collect *c, const struct json_node *node, const char *right)
{
	if (node->kind == JSON_OBJECT || node->kind == JSON_ARRAY)
		rules_collect_add(c, node, "is an %s; must be %s",
				  node->kind == JSON_OBJECT ? "object" : "array", right);
	else
		rules_collect_add(c, node, "is %.*s%s; must be %s",
				  (int)MIN(node->extent, VALUE_BYTES), c->text + node->offset,
				  node->extent > VALUE_BYTES ? "..." : "", right);
}

void rules_collect_stage(struct rules_collect *c)
{
	c->base = c->kept;
}

static int compare_offsets(const void *a, const void *b)
{
	const struct rules_pending *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

void rules_cursor_move(struct rules_cursor *c, const char *text, size_t to)
{
	for (; c->offset < to; c->offset++) {
		if (text[c->offset] == '\n') {
			c->line++;
			c->column = 1;
		} else if ((text[c->offset] & 0xc0) != 0x80) { /* not a UTF-8 continuation byte */
			c->column++;
		}
	}
}

void rules_collect_give(struct rules_collect *c, struct rules_faults *faults)
{
	size_t keep = MIN(c->kept, (size_t)RULES_FAULTS_MAX);
	struct rules_cursor at = RULES_CURSOR_BEGIN;
	struct rules_fault *items;

	items = calloc(MAX(keep, (size_t)1), sizeof(*items));
	if (!items) {
		c->error = -ENOMEM;
		return;
	}
	array_sort(c->items, c->kept, sizeof(*c->items), compare_offsets);
	for (size_t i = 0; i < keep; i++) {
		struct rules_pending *p = &c->items[i];

		rules_cursor_move(&at, c->text, MIN(p->offset, c->bytes));
		items[i].pointer = TAKE_PTR(p->pointer);
		items[i].message = TAKE_PTR(p->message);
		items[i].line = at.line;
		items[i].column = at.column;
	}
	rules_faults_done(faults);
	*faults = (struct rules_faults){ items, c->count, keep };
}

void rules_collect_done(struct rules_collect *c)
{
	for (size_t i = 0; i < c->kept; i++) {
		free(c->items[i].pointer);
		free(c->items[i].message);
	}
	free(c->items);
	*c = (struct rules_collect){ 0 };
}
