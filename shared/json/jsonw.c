/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/json/jsonw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/macro.h"
#include "shared/tools/utf8.h"

#define FIRST_BYTES  512u
#define NUMBER_BYTES 20 /* digits of 2^64 - 1 */

void jsonw_init(struct jsonw *w, size_t max_bytes)
{
	*w = (struct jsonw){ .max_bytes = max_bytes };
}

void jsonw_done(struct jsonw *w)
{
	free(w->data);
	*w = (struct jsonw){ .max_bytes = w->max_bytes };
}

void jsonw_reset(struct jsonw *w)
{
	w->bytes = 0;
	w->error = 0;
	w->comma = false;
}

static bool grow_data(struct jsonw *w, size_t more)
{
	size_t space = w->space ? w->space : MIN((size_t)FIRST_BYTES, w->max_bytes);
	char *larger;

	if (w->error)
		return false;
	if (more > w->max_bytes - w->bytes) {
		w->error = -EMSGSIZE;
		return false;
	}
	while (space < w->bytes + more)
		space = space < w->max_bytes / 2 ? space * 2 : w->max_bytes;
	larger = realloc(w->data, space);
	if (!larger) {
		w->error = -ENOMEM;
		return false;
	}
	w->data = larger;
	w->space = space;
	return true;
}

/* Returns the position for `more` bytes; NULL: the writer has an error. */
static inline char *make_room(struct jsonw *w, size_t more)
{
	if (w->error || more > w->space - w->bytes) {
		if (!grow_data(w, more))
			return NULL;
	}
	return w->data + w->bytes;
}

/* Returns the exact length, so that a text may fill max_bytes to the last byte. */
static inline size_t head_bytes(const struct jsonw *w, const char *key, size_t key_bytes)
{
	return w->comma + (key ? key_bytes + 3 : 0);
}

/*
 * Appends the text before a value: the comma, and the key with its colon. `key` is trusted, so it
 * is not escaped.
 */
static inline char *put_head(char *at, bool comma, const char *key, size_t key_bytes)
{
	if (comma)
		*at++ = ',';
	if (key) {
		*at++ = '"';
		memcpy(at, key, key_bytes);
		at += key_bytes;
		*at++ = '"';
		*at++ = ':';
	}
	return at;
}

/* Writes the head and `bytes` bytes that need no escape; nothing on an error. */
static void put_plain(struct jsonw *w, const char *key, const char *text, size_t bytes)
{
	size_t key_bytes = key ? strlen(key) : 0;
	char *at = make_room(w, head_bytes(w, key, key_bytes) + bytes), *begin = at;

	if (!at)
		return;
	at = put_head(at, w->comma, key, key_bytes);
	memcpy(at, text, bytes);
	w->bytes += (size_t)(at - begin) + bytes;
	w->comma = true;
}

void jsonw_object(struct jsonw *w, const char *key)
{
	put_plain(w, key, "{", 1);
	w->comma = false;
}

void jsonw_array(struct jsonw *w, const char *key)
{
	put_plain(w, key, "[", 1);
	w->comma = false;
}

static void close_with(struct jsonw *w, char c)
{
	char *at = make_room(w, 1);

	if (!at)
		return;
	*at = c;
	w->bytes++;
	w->comma = true;
}

void jsonw_object_end(struct jsonw *w)
{
	close_with(w, '}');
}

void jsonw_array_end(struct jsonw *w)
{
	close_with(w, ']');
}

#define ONES (~0ULL / 255)
#define TOPS (ONES * 128)

/* Returns whether any of the 8 bytes is below 0x20, a quote, a backslash, DEL or not ASCII. */
static inline bool any_special(uint64_t v)
{
	uint64_t quote = v ^ (ONES * '"'), slash = v ^ (ONES * '\\'), del = v ^ (ONES * 0x7f);

	/*
	 * A borrow changes only bytes above a matching byte, so the test of the whole word is
	 * exact.
	 */
	return ((v - ONES * 0x20) | (quote - ONES) | (slash - ONES) | (del - ONES) | v) & TOPS;
}

static inline bool is_special(unsigned char c)
{
	return c < 0x20 || c >= 0x7f || c == '"' || c == '\\';
}

/*
 * Copies the bytes before the first special byte, and returns their number. `to` has space for
 * `bytes` bytes.
 */
static inline size_t copy_clean(char *to, const char *text, size_t bytes)
{
	size_t i = 0;
	uint64_t v;

	for (; bytes - i >= sizeof(v); i += sizeof(v)) {
		memcpy(&v, text + i, sizeof(v));
		if (any_special(v))
			break;
		memcpy(to + i, &v, sizeof(v));
	}
	for (; i < bytes && !is_special((unsigned char)text[i]); i++)
		to[i] = text[i];
	return i;
}

/* Writes the escape of a character: a short form of RFC 8259 section 7, else \uxxxx. */
static size_t write_escape(char *to, uint32_t c)
{
	static const char hex[] = "0123456789abcdef";
	static const char short_form[] = { ['"'] = '"',	 ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
					   ['\n'] = 'n', ['\r'] = 'r',	['\t'] = 't' };

	to[0] = '\\';
	if (c < sizeof(short_form) && short_form[c]) {
		to[1] = short_form[c];
		return 2;
	}
	to[1] = 'u';
	for (int i = 0; i < 4; i++)
		to[2 + i] = hex[c >> (12 - 4 * i) & 15];
	return 6;
}

/*
 * Writes the byte or sequence at which copy_clean stopped. Returns its number of bytes in `text`.
 */
static size_t put_special(struct jsonw *w, const char *text, size_t bytes)
{
	size_t n = utf8_sequence(text, bytes), taken = n ? n : 1;
	uint32_t code = (unsigned char)text[0];
	char out[6], *at;

	if (n == 1 || utf8_is_control(text, n, &code)) {
		n = write_escape(out, code);
	} else {
		memcpy(out, n ? text : "\xef\xbf\xbd", n ? n : 3);
		n = n ? n : 3;
	}
	at = make_room(w, n);
	if (at) {
		memcpy(at, out, n);
		w->bytes += n;
	}
	return taken;
}

/* Writes the rest of a text from its first special byte on. */
static void put_escaped(struct jsonw *w, const char *text, size_t bytes)
{
	while (bytes > 0 && !w->error) {
		size_t taken = put_special(w, text, bytes);
		char *at;

		text += taken;
		bytes -= taken;
		at = make_room(w, bytes);
		if (!at)
			return;
		taken = copy_clean(at, text, bytes);
		w->bytes += taken;
		text += taken;
		bytes -= taken;
	}
}

void jsonw_string_n(struct jsonw *w, const char *key, const char *text, size_t bytes)
{
	size_t key_bytes = key ? strlen(key) : 0, clean;
	char *at = make_room(w, head_bytes(w, key, key_bytes) + bytes + 2), *begin = at;

	if (!at)
		return;
	at = put_head(at, w->comma, key, key_bytes);
	*at++ = '"';
	clean = copy_clean(at, text, bytes);
	at += clean;
	w->comma = true;
	if (clean == bytes) {
		*at++ = '"';
		w->bytes += (size_t)(at - begin);
		return;
	}
	w->bytes += (size_t)(at - begin);
	put_escaped(w, text + clean, bytes - clean);
	close_with(w, '"');
}

void jsonw_string(struct jsonw *w, const char *key, const char *text)
{
	if (text)
		jsonw_string_n(w, key, text, strlen(text));
	else
		jsonw_null(w, key);
}

void jsonw_string_key(struct jsonw *w, const char *key_text, const char *text)
{
	char *at;

	jsonw_string(w, NULL, key_text);
	at = make_room(w, 1);
	if (!at)
		return;
	*at = ':';
	w->bytes++;
	w->comma = false;
	jsonw_string(w, NULL, text);
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
				  "25262728293031323334353637383940414243444546474849"
				  "50515253545556575859606162636465666768697071727374"
				  "75767778798081828384858687888990919293949596979899";

/* Writes the digits up to `end`. Returns where they begin. */
static char *write_digits(char *end, uint64_t number)
{
	while (number >= 100) {
		end -= 2;
		memcpy(end, digit_pairs + number % 100 * 2, 2);
		number /= 100;
	}
	if (number >= 10) {
		end -= 2;
		memcpy(end, digit_pairs + number * 2, 2);
	} else {
		*--end = (char)('0' + number);
	}
	return end;
}

void jsonw_u64(struct jsonw *w, const char *key, uint64_t number)
{
	char text[NUMBER_BYTES], *begin = write_digits(text + sizeof(text), number);

	put_plain(w, key, begin, (size_t)(text + sizeof(text) - begin));
}

void jsonw_u64_nonzero(struct jsonw *w, const char *key, uint64_t number)
{
	if (number)
		jsonw_u64(w, key, number);
}

static uint64_t absolute_value(int64_t number)
{
	return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

void jsonw_i64(struct jsonw *w, const char *key, int64_t number)
{
	char text[NUMBER_BYTES + 1],
		*begin = write_digits(text + sizeof(text), absolute_value(number));

	if (number < 0)
		*--begin = '-';
	put_plain(w, key, begin, (size_t)(text + sizeof(text) - begin));
}

void jsonw_milli(struct jsonw *w, const char *key, int64_t milli)
{
	char text[NUMBER_BYTES + 2], *end = text + sizeof(text), *begin;
	unsigned int rest = (unsigned int)(absolute_value(milli) % 1000);

	end[-1] = (char)('0' + rest % 10);
	end[-2] = (char)('0' + rest / 10 % 10);
	end[-3] = (char)('0' + rest / 100);
	end[-4] = '.';
	begin = write_digits(end - 4, absolute_value(milli) / 1000);
	if (milli < 0)
		*--begin = '-';
	put_plain(w, key, begin, (size_t)(end - begin));
}

void jsonw_bool(struct jsonw *w, const char *key, bool yes)
{
	if (yes)
		put_plain(w, key, "true", 4);
	else
		put_plain(w, key, "false", 5);
}

void jsonw_null(struct jsonw *w, const char *key)
{
	put_plain(w, key, "null", 4);
}

void jsonw_hex(struct jsonw *w, const char *key, const uint8_t *data, size_t bytes)
{
	static const char hex[] = "0123456789abcdef";
	size_t key_bytes = key ? strlen(key) : 0;
	char *at = make_room(w, head_bytes(w, key, key_bytes) + bytes * 2 + 2), *begin = at;

	if (!at)
		return;
	at = put_head(at, w->comma, key, key_bytes);
	*at++ = '"';
	for (size_t i = 0; i < bytes; i++) {
		*at++ = hex[data[i] >> 4];
		*at++ = hex[data[i] & 15];
	}
	*at++ = '"';
	w->bytes += (size_t)(at - begin);
	w->comma = true;
}

void jsonw_raw(struct jsonw *w, const char *key, const char *json, size_t bytes)
{
	put_plain(w, key, json, bytes);
}

struct jsonw_mark jsonw_mark(const struct jsonw *w)
{
	return (struct jsonw_mark){ .bytes = w->bytes, .comma = w->comma, .error = w->error };
}

void jsonw_rewind(struct jsonw *w, struct jsonw_mark mark)
{
	w->bytes = mark.bytes;
	w->comma = mark.comma;
	w->error = mark.error;
}

int jsonw_end(const struct jsonw *w)
{
	return w->error;
}
