/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_syntax.c: reports where a rules text is not JSON, and names common mistakes of hand-written
 * text.
 */
#include <string.h>

#include "shared/rules/rules_internal.h"
#include "shared/tools/macro.h"

/* Texts that other notations allow and JSON does not, by their first bytes. */
static const struct slip {
	const char *begin, *what;
} slips[] = {
	{ "//", "JSON has no comments; remove this one" },
	{ "/*", "JSON has no comments; remove this one" },
	{ "#", "JSON has no comments; remove this one" },
	{ "'", "want double quotes instead of single ones" },
	{ "\xe2\x80\x9c", "want straight double quotes" },
	{ "\xe2\x80\x9d", "want straight double quotes" },
};

static const struct slip *find_slip(const struct rules_collect *c, size_t offset)
{
	for (size_t i = 0; i < ARRAY_SIZE(slips); i++) {
		size_t bytes = strlen(slips[i].begin);

		if (bytes <= c->bytes - offset && !memcmp(c->text + offset, slips[i].begin, bytes))
			return &slips[i];
	}
	return NULL;
}

/*
 * Returns the offset of the comma before the closing bracket at `offset`; `offset`: there is none.
 */
static size_t find_last_comma(const struct rules_collect *c, size_t offset)
{
	size_t at = offset;

	if (c->text[offset] != '}' && c->text[offset] != ']')
		return offset;
	while (at && strchr(" \t\r\n", c->text[at - 1]))
		at--;
	return at && c->text[at - 1] == ',' ? at - 1 : offset;
}

void rules_syntax_fault(struct rules_collect *c, const struct json_fault *fault)
{
	const struct slip *slip = find_slip(c, fault->offset);
	size_t comma = find_last_comma(c, fault->offset);
	const char *what = slip ? slip->what : fault->what;

	if (comma != fault->offset)
		what = "JSON has no comma after the last member; remove it";
	rules_collect_add_at(c, comma, "is not JSON (RFC 8259): %s", what);
}

/*
 * Returns which half of a surrogate pair the escape is (RFC 8259 section 7). `escape` points to the
 * '\\'; four digits follow "\\u".
 */
static enum half { NO_HALF, FIRST_HALF, SECOND_HALF } find_half(const char *escape)
{
	if (escape[1] != 'u' || (escape[2] | 0x20) != 'd' || escape[3] < '8')
		return NO_HALF;
	return strchr("89aAbB", escape[3]) ? FIRST_HALF : SECOND_HALF;
}

/*
 * Returns whether the string, with its escapes, has one half of a pair without the other: that is
 * not a character.
 */
static bool has_lone_half(const char *at, size_t bytes)
{
	const char *end = at + bytes;

	while ((at = memchr(at, '\\', (size_t)(end - at)))) {
		enum half half = find_half(at);

		at += at[1] == 'u' ? 6 : 2;
		if (half == NO_HALF)
			continue;
		if (half == SECOND_HALF || *at != '\\' || find_half(at) != SECOND_HALF)
			return true;
		at += 6;
	}
	return false;
}

void rules_syntax_halves(struct rules_collect *c, const struct json_tree *tree)
{
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct json_node *node = &tree->nodes[i];

		if (node->kind == JSON_STRING &&
		    has_lone_half(c->text + node->offset, node->extent))
			rules_collect_add(c, node,
					  "has half of a pair \\uXXXX\\uXXXX; must have both");
	}
}
