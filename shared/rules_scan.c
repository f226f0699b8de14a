/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_scan.c: where each value of a JSON text stands, and which keys stand twice. json-c keeps
 * neither; it also takes NaN and Infinity, which this scanner refuses (RFC 8259).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "macro.h"
#include "rules_internal.h"
#include "shared/json/utf8.h"

#define FEW_MEMBERS 16 /* up to here comparing each with each is faster than sorting */

struct scanner {
	struct rules_scan *s;
	struct rules_collect *c;
	size_t at;
	unsigned int depth;
};

static int value(struct scanner *x, uint32_t parent, struct rules_node key);

/* The byte at hand, 0 at the end: a NUL is never valid JSON, so the two need no telling apart. */
static char peek(const struct scanner *x)
{
	return x->at < x->s->bytes ? x->s->text[x->at] : '\0';
}

static void skip_space(struct scanner *x)
{
	while (peek(x) && strchr(" \t\r\n", peek(x)))
		x->at++;
}

static int refuse(struct scanner *x, const char *what)
{
	rules_collect_add_at(x->c, x->at, "is not JSON (RFC 8259): %s", what);
	return -EINVAL;
}

static bool take(struct scanner *x, char c)
{
	skip_space(x);
	if (peek(x) != c)
		return false;
	x->at++;
	return true;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The four hex digits at `at`, -1 when they are none. */
static long hex4(const char *at, size_t bytes)
{
	long unit = 0;

	if (bytes < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(at[i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* Passes over one escape, behind its backslash; false when there is none. */
static bool escape(struct scanner *x)
{
	const char *text = x->s->text;

	if (peek(x) == 'u' && hex4(text + x->at + 1, x->s->bytes - x->at - 1) >= 0) {
		x->at += 5;
		return true;
	}
	if (!peek(x) || !strchr("\"\\/bfnrt", peek(x)))
		return false;
	x->at++;
	return true;
}

/* Passes over a string; `begin` and `bytes` are what is between the quotes. */
static int string(struct scanner *x, size_t *ret_begin, size_t *ret_bytes, bool *ret_escaped)
{
	bool escaped = false;
	size_t begin, n;

	if (!take(x, '"'))
		return refuse(x, "expected a string");
	for (begin = x->at; peek(x) != '"';) {
		if ((unsigned char)peek(x) < 0x20)
			return refuse(x, "a string with a control byte in it, or without an end");
		if (peek(x) == '\\') {
			escaped = true;
			x->at++;
			if (!escape(x))
				return refuse(x, "an unknown escape in a string");
			continue;
		}
		n = utf8_sequence(x->s->text + x->at, x->s->bytes - x->at);
		if (n == 0)
			return refuse(x, "bytes that are no UTF-8 in a string");
		x->at += n;
	}
	*ret_begin = begin;
	*ret_bytes = x->at - begin;
	*ret_escaped = escaped;
	x->at++;
	return 0;
}

static char *put_utf8(char *to, long c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* Decodes \uXXXX, the second half of a pair included; returns what lies behind. A lone half is
 * U+FFFD. */
static const char *decode_unit(const char *at, const char *end, char **to)
{
	long unit = hex4(at, (size_t)(end - at)), low;

	at += 4;
	if (unit >= 0xd800 && unit <= 0xdbff && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
		low = hex4(at + 2, 4);
		if (low >= 0xdc00 && low <= 0xdfff) {
			unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
			at += 6;
		}
	}
	if (unit >= 0xd800 && unit <= 0xdfff)
		unit = 0xfffd;
	*to = put_utf8(*to, unit);
	return at;
}

/* Decodes a checked string; an escape is never shorter than what it stands for. */
static size_t decode(const char *at, size_t bytes, char *to)
{
	static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
	const char *end = at + bytes;
	char *begin = to;

	while (at < end) {
		const char *short_form;

		if (*at != '\\') {
			*to++ = *at++;
			continue;
		}
		at++;
		if (*at == 'u') {
			at = decode_unit(at + 1, end, &to);
			continue;
		}
		short_form = strchr(from, *at);
		*to++ = short_form ? into[short_form - from] : *at;
		at++;
	}
	return (size_t)(to - begin);
}

/* Reads a member's key into the key fields of `node`. */
static int member_key(struct scanner *x, struct rules_node *node)
{
	struct rules_scan *s = x->s;
	size_t begin, bytes;
	bool escaped;
	int r;

	r = string(x, &begin, &bytes, &escaped);
	if (r < 0)
		return r;
	if (escaped && !s->keys) {
		s->keys = malloc(s->bytes);
		if (!s->keys)
			return -ENOMEM;
	}
	if (escaped) {
		size_t decoded = decode(s->text + begin, bytes, s->keys + s->keys_bytes);

		begin = s->keys_bytes;
		bytes = decoded;
		s->keys_bytes += decoded;
	}
	node->key = (uint32_t)begin;
	node->key_bytes = (uint32_t)bytes;
	node->decoded = escaped;
	if (!take(x, ':'))
		return refuse(x, "expected a colon");
	return 0;
}

static int new_node(struct rules_scan *s, struct rules_node node)
{
	if (s->count == s->space) {
		uint32_t space = s->space ? s->space * 2 : 256;
		struct rules_node *larger = reallocarray(s->nodes, space, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		s->nodes = larger;
		s->space = space;
	}
	s->nodes[s->count++] = node;
	return 0;
}

const char *rules_scan_key(const struct rules_scan *s, uint32_t node, size_t *ret_bytes)
{
	const struct rules_node *n = &s->nodes[node];

	*ret_bytes = n->key_bytes;
	return (n->decoded ? s->keys : s->text) + n->key;
}

static int compare_keys(const struct rules_scan *s, uint32_t a, uint32_t b)
{
	size_t a_bytes, b_bytes;
	const char *x = rules_scan_key(s, a, &a_bytes), *y = rules_scan_key(s, b, &b_bytes);

	if (a_bytes != b_bytes)
		return a_bytes < b_bytes ? -1 : 1;
	return memcmp(x, y, a_bytes);
}

static int compare_members(const void *a, const void *b, void *scan)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int r = compare_keys(scan, x, y);

	return r ? r : (x > y) - (x < y);
}

static void twice(struct scanner *x, uint32_t first, uint32_t again)
{
	x->s->nodes[first].hidden = true;
	rules_collect_add(x->c, again, "stands more than once in this object; keep one of them");
}

static void find_twice_few(struct scanner *x, uint32_t object)
{
	struct rules_node *nodes = x->s->nodes;

	for (uint32_t b = object + 1; b != RULES_NO_NODE; b = nodes[b].next) {
		for (uint32_t a = object + 1; a != b; a = nodes[a].next) {
			if (nodes[a].hidden || compare_keys(x->s, a, b) != 0)
				continue;
			twice(x, a, b);
			break;
		}
	}
}

static int find_twice(struct scanner *x, uint32_t object)
{
	uint32_t n = x->s->nodes[object].children, i = 0;
	_cleanup_free_ uint32_t *members = NULL;

	if (n < 2)
		return 0;
	if (n <= FEW_MEMBERS) {
		find_twice_few(x, object);
		return 0;
	}
	members = malloc(n * sizeof(*members));
	if (!members)
		return -ENOMEM;
	for (uint32_t m = object + 1; m != RULES_NO_NODE; m = x->s->nodes[m].next)
		members[i++] = m;
	qsort_r(members, n, sizeof(*members), compare_members, x->s);
	for (i = 1; i < n; i++)
		if (compare_keys(x->s, members[i - 1], members[i]) == 0)
			twice(x, members[i - 1], members[i]);
	return 0;
}

/* One member or element, linked behind `last`. */
static int child(struct scanner *x, uint32_t parent, uint32_t *last)
{
	struct rules_node key = { .key = x->s->nodes[parent].children };
	uint32_t node;
	int r;

	if (x->s->nodes[parent].kind == RULES_NODE_OBJECT) {
		r = member_key(x, &key);
		if (r < 0)
			return r;
	}
	node = x->s->count;
	r = value(x, parent, key);
	if (r < 0)
		return r;
	if (*last != RULES_NO_NODE)
		x->s->nodes[*last].next = node;
	x->s->nodes[parent].children++;
	*last = node;
	return 0;
}

static int container(struct scanner *x, uint32_t node, char end)
{
	uint32_t last = RULES_NO_NODE;
	int r;

	if (x->depth >= RULES_NESTING) {
		rules_collect_add_at(x->c, x->at, "is nested deeper than %d levels", RULES_NESTING);
		return -EINVAL;
	}
	x->depth++;
	x->at++;
	if (take(x, end)) {
		x->depth--;
		return 0;
	}
	do {
		r = child(x, node, &last);
		if (r < 0)
			return r;
	} while (take(x, ','));
	if (!take(x, end))
		return refuse(x, end == '}' ? "expected a comma or }" : "expected a comma or ]");
	x->depth--;
	return end == '}' ? find_twice(x, node) : 0;
}

static bool digits(struct scanner *x)
{
	size_t begin = x->at;

	while (peek(x) >= '0' && peek(x) <= '9')
		x->at++;
	return x->at > begin;
}

static int number(struct scanner *x)
{
	bool good;

	if (peek(x) == '-')
		x->at++;
	if (peek(x) == '0') {
		x->at++;
		good = true;
	} else {
		good = digits(x);
	}
	if (good && peek(x) == '.') {
		x->at++;
		good = digits(x);
	}
	if (good && (peek(x) == 'e' || peek(x) == 'E')) {
		x->at++;
		if (peek(x) == '+' || peek(x) == '-')
			x->at++;
		good = digits(x);
	}
	return good ? 0 : refuse(x, "expected a value");
}

static int scalar(struct scanner *x)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t bytes = strlen(words[i]);

		if (x->s->bytes - x->at < bytes || memcmp(x->s->text + x->at, words[i], bytes) != 0)
			continue;
		x->at += bytes;
		return 0;
	}
	return number(x);
}

/* Scans one value; `key` has the key fields of its node. */
static int value(struct scanner *x, uint32_t parent, struct rules_node key)
{
	uint32_t node = x->s->count;
	size_t begin, bytes;
	bool escaped;
	int r;

	skip_space(x);
	key.offset = (uint32_t)x->at;
	key.parent = parent;
	key.next = RULES_NO_NODE;
	key.kind = peek(x) == '{'   ? RULES_NODE_OBJECT
		   : peek(x) == '[' ? RULES_NODE_ARRAY
		   : peek(x) == '"' ? RULES_NODE_STRING
				    : RULES_NODE_OTHER;
	r = new_node(x->s, key);
	if (r < 0)
		return r;
	if (key.kind == RULES_NODE_OBJECT)
		return container(x, node, '}');
	if (key.kind == RULES_NODE_ARRAY)
		return container(x, node, ']');
	if (key.kind == RULES_NODE_STRING)
		return string(x, &begin, &bytes, &escaped);
	return scalar(x);
}

int rules_scan_run(struct rules_scan *s, const char *text, size_t bytes, struct rules_collect *c)
{
	struct scanner x = { .s = s, .c = c };
	int r;

	*s = (struct rules_scan){ .text = text, .bytes = bytes };
	r = value(&x, RULES_NO_NODE, (struct rules_node){ 0 });
	if (r < 0)
		return r;
	skip_space(&x);
	if (x.at < bytes)
		return refuse(&x, "something follows behind the value");
	return 0;
}

void rules_scan_done(struct rules_scan *s)
{
	free(s->nodes);
	free(s->keys);
	*s = (struct rules_scan){ 0 };
}

uint32_t rules_scan_first(const struct rules_scan *s, uint32_t node)
{
	return s->nodes[node].children ? node + 1 : RULES_NO_NODE;
}

uint32_t rules_scan_member(const struct rules_scan *s, uint32_t object, const char *name)
{
	uint32_t found = RULES_NO_NODE;

	if (s->nodes[object].kind != RULES_NODE_OBJECT)
		return found;
	for (uint32_t m = rules_scan_first(s, object); m != RULES_NO_NODE; m = s->nodes[m].next) {
		size_t bytes;
		const char *key = rules_scan_key(s, m, &bytes);

		if (bytes == strlen(name) && memcmp(key, name, bytes) == 0)
			found = m;
	}
	return found;
}

size_t rules_scan_extent(const struct rules_scan *s, uint32_t node)
{
	const struct rules_node *n = &s->nodes[node];
	size_t at = n->offset + 1;

	if (n->kind == RULES_NODE_STRING) {
		while (s->text[at] != '"')
			at += s->text[at] == '\\' ? 2 : 1;
		return at + 1 - n->offset;
	}
	if (n->kind == RULES_NODE_OTHER)
		while (at < s->bytes && !strchr(" \t\r\n,]}", s->text[at]))
			at++;
	return at - n->offset;
}
