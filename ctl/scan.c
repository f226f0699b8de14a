/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/scan.h"

#include <string.h>

#include "shared/jsonw.h"

void scan_init(struct scan *s, const char *text, size_t bytes)
{
	*s = (struct scan){ .start = text, .at = text, .end = text + bytes };
}

bool scan_refuse(struct scan *s, const char *fault)
{
	if (!s->fault)
		s->fault = fault;
	return false;
}

char scan_peek(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r'))
		s->at++;
	return s->at < s->end ? *s->at : '\0';
}

static bool open_with(struct scan *s, char bracket, const char *fault)
{
	if (s->fault)
		return false;
	if (scan_peek(s) != bracket)
		return scan_refuse(s, fault);
	if (s->depth == SCAN_NESTING)
		return scan_refuse(s, "want at most 64 levels of nesting");
	s->depth++;
	s->at++;
	s->comma = false;
	return true;
}

bool scan_object(struct scan *s)
{
	return open_with(s, '{', "want an object");
}

bool scan_array(struct scan *s)
{
	return open_with(s, '[', "want an array");
}

/* True when another member follows; false at `bracket`, which is consumed, or at a fault. */
static bool another(struct scan *s, char bracket, const char *fault)
{
	char c;

	if (s->fault)
		return false;
	c = scan_peek(s);
	if (c == bracket) {
		s->at++;
		s->depth--;
		s->comma = true;
		return false;
	}
	if (!s->comma)
		return true;
	if (c != ',')
		return scan_refuse(s, fault);
	s->at++;
	s->comma = false;
	return true;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* What a '\' begins; s->at is at it. */
static bool escape(struct scan *s)
{
	const char *at = s->at;

	if (s->end - at < 2 || !at[1] || !strchr("\"\\/bfnrtu", at[1]))
		return scan_refuse(s, "want one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
	if (at[1] != 'u') {
		s->at += 2;
		return true;
	}
	if (s->end - at < 6 || !is_hex(at[2]) || !is_hex(at[3]) || !is_hex(at[4]) || !is_hex(at[5]))
		return scan_refuse(s, "want four hex digits behind \\u");
	s->at += 6;
	return true;
}

/* What may stand in a string as it is, in one byte. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The inside of a string and its closing quote; s->at is behind the opening one. */
static bool inside(struct scan *s, struct scan_text *ret_text)
{
	struct scan_text text = { .data = s->at };
	size_t n;

	for (;;) {
		const char *at = s->at;

		while (at < s->end && is_plain((unsigned char)*at))
			at++;
		s->at = at;
		if (at == s->end)
			return scan_refuse(s, "want the end of this string");
		if (*at == '"')
			break;
		if (*at == '\\') {
			text.escaped = true;
			if (!escape(s))
				return false;
			continue;
		}
		if ((unsigned char)*at < 0x20)
			return scan_refuse(s, "want control characters as \\uXXXX");
		n = jsonw_utf8(at, (size_t)(s->end - at));
		if (!n)
			return scan_refuse(s, "want UTF-8");
		s->at += n;
	}
	text.bytes = (size_t)(s->at++ - text.data);
	s->comma = true;
	*ret_text = text;
	return true;
}

bool scan_key(struct scan *s, struct scan_text *ret_key)
{
	if (!another(s, '}', "want , or } here"))
		return false;
	if (scan_peek(s) != '"')
		return scan_refuse(s, "want a key in quotes");
	s->at++;
	if (!inside(s, ret_key))
		return false;
	if (scan_peek(s) != ':')
		return scan_refuse(s, "want : behind the key");
	s->at++;
	return true;
}

bool scan_element(struct scan *s)
{
	return another(s, ']', "want , or ] here");
}

static bool word(struct scan *s, const char *text, size_t bytes)
{
	if ((size_t)(s->end - s->at) < bytes || memcmp(s->at, text, bytes) != 0)
		return scan_refuse(s, "want a JSON value");
	s->at += bytes;
	s->comma = true;
	return true;
}

bool scan_string(struct scan *s, bool null, struct scan_text *ret_text)
{
	char c;

	if (s->fault)
		return false;
	c = scan_peek(s);
	if (null && c == 'n') {
		*ret_text = (struct scan_text){ 0 };
		return word(s, "null", 4);
	}
	if (c != '"')
		return scan_refuse(s, null ? "want a string or null" : "want a string");
	s->at++;
	return inside(s, ret_text);
}

static bool is_digit(const struct scan *s, const char *at)
{
	return at < s->end && *at >= '0' && *at <= '9';
}

bool scan_u64(struct scan *s, uint64_t min, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *at;

	if (s->fault)
		return false;
	scan_peek(s);
	if (!is_digit(s, s->at) || (*s->at == '0' && is_digit(s, s->at + 1)))
		return scan_refuse(s, "want a whole number");
	for (at = s->at; is_digit(s, at); at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			return scan_refuse(s, "want a smaller number");
	if (at < s->end && (*at == '.' || *at == 'e' || *at == 'E'))
		return scan_refuse(s, "want a whole number");
	if (number < min || number > max)
		return scan_refuse(s,
				   number < min ? "want a larger number" : "want a smaller number");
	s->at = at;
	s->comma = true;
	*ret_number = number;
	return true;
}

static bool digits(struct scan *s)
{
	if (!is_digit(s, s->at))
		return scan_refuse(s, "want a digit");
	while (is_digit(s, s->at))
		s->at++;
	return true;
}

/* number = [ "-" ] int [ frac ] [ exp ] of RFC 8259 section 6. */
static bool number(struct scan *s)
{
	if (*s->at == '-')
		s->at++;
	if (s->at < s->end && *s->at == '0' && is_digit(s, s->at + 1))
		return scan_refuse(s, "want no zero before a number");
	if (!digits(s))
		return false;
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		if (!digits(s))
			return false;
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
		s->at++;
		if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
			s->at++;
		if (!digits(s))
			return false;
	}
	s->comma = true;
	return true;
}

/* Recursion is bounded by SCAN_NESTING. */
bool scan_skip(struct scan *s)
{
	struct scan_text text;

	if (s->fault)
		return false;
	switch (scan_peek(s)) {
	case '{':
		scan_object(s);
		while (scan_key(s, &text))
			scan_skip(s);
		return !s->fault;
	case '[':
		scan_array(s);
		while (scan_element(s))
			scan_skip(s);
		return !s->fault;
	case '"':
		return scan_string(s, false, &text);
	case 't':
		return word(s, "true", 4);
	case 'f':
		return word(s, "false", 5);
	case 'n':
		return word(s, "null", 4);
	case '-':
	case '0' ... '9':
		return number(s);
	default:
		return scan_refuse(s, "want a JSON value");
	}
}

bool scan_done(struct scan *s)
{
	if (s->fault)
		return false;
	scan_peek(s);
	return s->at == s->end || scan_refuse(s, "want nothing more behind the value");
}

static unsigned int hex4(const char *at)
{
	unsigned int n = 0;

	for (int i = 0; i < 4; i++) {
		unsigned int c = (unsigned char)at[i];

		n = n << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return n;
}

static char *put_utf8(char *room, unsigned int code)
{
	if (code < 0x80) {
		*room++ = (char)code;
		return room;
	}
	if (code < 0x800) {
		*room++ = (char)(0xc0 | code >> 6);
	} else {
		if (code < 0x10000) {
			*room++ = (char)(0xe0 | code >> 12);
		} else {
			*room++ = (char)(0xf0 | code >> 18);
			*room++ = (char)(0x80 | (code >> 12 & 0x3f));
		}
		*room++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*room++ = (char)(0x80 | (code & 0x3f));
	return room;
}

/* \uXXXX, or two of them that are one character (RFC 8259 section 7); at most 12 bytes become 4. */
static char *put_unicode(const char **at, const char *end, char *room)
{
	unsigned int code = hex4(*at + 2), low;

	*at += 6;
	if (code < 0xd800 || code > 0xdfff)
		return put_utf8(room, code);
	if (code < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
		low = hex4(*at + 2);
		if (low >= 0xdc00 && low <= 0xdfff) {
			*at += 6;
			return put_utf8(room, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
		}
	}
	return put_utf8(room, 0xfffd);
}

size_t scan_plain(const struct scan_text *text, char *room)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at = text->data, *end = at + text->bytes;
	char *out = room;

	while (at < end) {
		const char *found;

		if (*at != '\\') {
			*out++ = *at++;
			continue;
		}
		if (at[1] == 'u') {
			out = put_unicode(&at, end, out);
			continue;
		}
		found = strchr(from, at[1]);
		*out++ = found ? to[found - from] : at[1];
		at += 2;
	}
	return (size_t)(out - room);
}
