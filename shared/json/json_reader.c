/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/json/json_reader.h"

#include <string.h>

#include "shared/tools/utf8.h"

void json_reader_init(struct json_reader *r, const char *text, size_t bytes, unsigned int nesting)
{
	*r = (struct json_reader){
		.start = text, .at = text, .end = text + bytes, .nesting = nesting
	};
}

bool json_reader_refuse(struct json_reader *r, const char *fault)
{
	if (!r->fault)
		r->fault = fault;
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

char json_reader_peek(struct json_reader *r)
{
	while (r->at < r->end && is_blank(*r->at))
		r->at++;
	return r->at < r->end ? *r->at : '\0';
}

static bool open_with(struct json_reader *r, char bracket, const char *fault)
{
	if (r->fault)
		return false;
	if (json_reader_peek(r) != bracket)
		return json_reader_refuse(r, fault);
	if (r->depth == r->nesting) {
		r->too_deep = true;
		return json_reader_refuse(r, "want fewer levels of nesting");
	}
	r->depth++;
	r->at++;
	r->comma = false;
	return true;
}

bool json_reader_object(struct json_reader *r)
{
	return open_with(r, '{', "want an object");
}

bool json_reader_array(struct json_reader *r)
{
	return open_with(r, '[', "want an array");
}

/*
 * Returns true if another member or element follows. False at `bracket`, which it consumes, or
 * after a fault.
 */
static bool find_another(struct json_reader *r, char bracket, const char *fault)
{
	char c;

	if (r->fault)
		return false;
	c = json_reader_peek(r);
	if (c == bracket) {
		r->at++;
		r->depth--;
		r->comma = true;
		return false;
	}
	if (!r->comma)
		return true;
	if (c != ',')
		return json_reader_refuse(r, fault);
	r->at++;
	r->comma = false;
	return true;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Skips an escape; r->at is at its '\'. */
static bool pass_escape(struct json_reader *r)
{
	const char *at = r->at;

	if (r->end - at < 2 || !at[1] || !strchr("\"\\/bfnrtu", at[1]))
		return json_reader_refuse(r,
					  "want one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
	if (at[1] != 'u') {
		r->at += 2;
		return true;
	}
	if (r->end - at < 6 || !is_hex(at[2]) || !is_hex(at[3]) || !is_hex(at[4]) || !is_hex(at[5]))
		return json_reader_refuse(r, "want four hex digits after \\u");
	r->at += 6;
	return true;
}

/* Returns whether the byte is ASCII and needs no escape in a string. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Reads the rest of a string and its closing quote; r->at is after the opening quote. */
static bool read_inside(struct json_reader *r, struct json_text *ret_text)
{
	struct json_text text = { .data = r->at };
	size_t n;

	for (;;) {
		const char *at = r->at;

		while (at < r->end && is_plain((unsigned char)*at))
			at++;
		r->at = at;
		if (at == r->end)
			return json_reader_refuse(r, "want the end of this string");
		if (*at == '"')
			break;
		if (*at == '\\') {
			text.escaped = true;
			if (!pass_escape(r))
				return false;
			continue;
		}
		if ((unsigned char)*at < 0x20)
			return json_reader_refuse(r, "want control characters as \\uXXXX");
		n = utf8_sequence(at, (size_t)(r->end - at));
		if (!n)
			return json_reader_refuse(r, "want UTF-8");
		r->at += n;
	}
	text.bytes = (size_t)(r->at++ - text.data);
	r->comma = true;
	*ret_text = text;
	return true;
}

bool json_reader_key(struct json_reader *r, struct json_text *ret_key)
{
	if (!find_another(r, '}', "want , or } here"))
		return false;
	if (json_reader_peek(r) != '"')
		return json_reader_refuse(r, "want a key in quotes");
	r->at++;
	if (!read_inside(r, ret_key))
		return false;
	if (json_reader_peek(r) != ':')
		return json_reader_refuse(r, "want : after the key");
	r->at++;
	return true;
}

bool json_reader_element(struct json_reader *r)
{
	return find_another(r, ']', "want , or ] here");
}

static bool pass_word(struct json_reader *r, const char *text, size_t bytes)
{
	if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, text, bytes) != 0)
		return json_reader_refuse(r, "want a JSON value");
	r->at += bytes;
	r->comma = true;
	return true;
}

bool json_reader_string(struct json_reader *r, bool null, struct json_text *ret_text)
{
	char c;

	if (r->fault)
		return false;
	c = json_reader_peek(r);
	if (null && c == 'n') {
		*ret_text = (struct json_text){ 0 };
		return pass_word(r, "null", 4);
	}
	if (c != '"')
		return json_reader_refuse(r, null ? "want a string or null" : "want a string");
	r->at++;
	return read_inside(r, ret_text);
}

static bool is_digit(const struct json_reader *r, const char *at)
{
	return at < r->end && *at >= '0' && *at <= '9';
}

bool json_reader_u64(struct json_reader *r, uint64_t min, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *at;

	if (r->fault)
		return false;
	json_reader_peek(r);
	if (!is_digit(r, r->at) || (*r->at == '0' && is_digit(r, r->at + 1)))
		return json_reader_refuse(r, "want a whole number");
	for (at = r->at; is_digit(r, at); at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
			return json_reader_refuse(r, "want a smaller number");
	if (at < r->end && (*at == '.' || *at == 'e' || *at == 'E'))
		return json_reader_refuse(r, "want a whole number");
	if (number < min || number > max)
		return json_reader_refuse(r, number < min ? "want a larger number"
							  : "want a smaller number");
	r->at = at;
	r->comma = true;
	*ret_number = number;
	return true;
}

static bool pass_digits(struct json_reader *r)
{
	if (!is_digit(r, r->at))
		return json_reader_refuse(r, "want a digit");
	while (is_digit(r, r->at))
		r->at++;
	return true;
}

/* Skips number = [ "-" ] int [ frac ] [ exp ] of RFC 8259 section 6. */
static bool pass_number(struct json_reader *r)
{
	if (*r->at == '-')
		r->at++;
	if (r->at < r->end && *r->at == '0' && is_digit(r, r->at + 1))
		return json_reader_refuse(r, "want no zero before a number");
	if (!pass_digits(r))
		return false;
	if (r->at < r->end && *r->at == '.') {
		r->at++;
		if (!pass_digits(r))
			return false;
	}
	if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
		r->at++;
		if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
			r->at++;
		if (!pass_digits(r))
			return false;
	}
	r->comma = true;
	return true;
}

/* r->nesting limits the recursion. */
bool json_reader_skip(struct json_reader *r)
{
	struct json_text text;

	if (r->fault)
		return false;
	switch (json_reader_peek(r)) {
	case '{':
		json_reader_object(r);
		while (json_reader_key(r, &text))
			json_reader_skip(r);
		return !r->fault;
	case '[':
		json_reader_array(r);
		while (json_reader_element(r))
			json_reader_skip(r);
		return !r->fault;
	case '"':
		return json_reader_string(r, false, &text);
	case 't':
		return pass_word(r, "true", 4);
	case 'f':
		return pass_word(r, "false", 5);
	case 'n':
		return pass_word(r, "null", 4);
	case '-':
	case '0' ... '9':
		return pass_number(r);
	default:
		return json_reader_refuse(r, "want a JSON value");
	}
}

bool json_reader_end(struct json_reader *r)
{
	if (r->fault)
		return false;
	json_reader_peek(r);
	return r->at == r->end || json_reader_refuse(r, "want nothing after the value");
}

/* Returns the value of four hex digits, which the reader has checked. */
static uint32_t read_hex4(const char *at)
{
	uint32_t n = 0;

	for (int i = 0; i < 4; i++) {
		unsigned int c = (unsigned char)at[i];

		n = n << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return n;
}

/*
 * Decodes \uXXXX, or a pair of them that is one character (RFC 8259 section 7); a lone half becomes
 * U+FFFD. At most 12 bytes become 4. Returns the number of written bytes.
 */
static size_t decode_unicode(const char **at, const char *end, char *room)
{
	uint32_t code = read_hex4(*at + 2), low;

	*at += 6;
	if (code < 0xd800 || code > 0xdfff)
		return utf8_write(room, code);
	if (code < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
		low = read_hex4(*at + 2);
		if (low >= 0xdc00 && low <= 0xdfff) {
			*at += 6;
			return utf8_write(room, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
		}
	}
	return utf8_write(room, 0xfffd);
}

size_t json_reader_decode(const struct json_text *text, char *room)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at = text->data, *end = at + text->bytes;
	char *out = room;

	if (!text->escaped) {
		if (text->bytes)
			memcpy(room, text->data, text->bytes);
		return text->bytes;
	}
	while (at < end) {
		const char *found;

		if (*at != '\\') {
			*out++ = *at++;
			continue;
		}
		if (at[1] == 'u') {
			out += decode_unicode(&at, end, out);
			continue;
		}
		found = strchr(from, at[1]);
		*out++ = found ? to[found - from] : at[1];
		at += 2;
	}
	return (size_t)(out - room);
}
