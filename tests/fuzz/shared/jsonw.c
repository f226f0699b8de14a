/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as a string, as a key and as hex: json-c must read jsonw's output, and well-formed UTF-8
 * must come back as it was. Under a low limit the writer must report it.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define must(yes)                \
	do {                     \
		if (!(yes))      \
			abort(); \
	} while (0)

static void write_all(struct jsonw *w, const char *text, size_t bytes)
{
	jsonw_object(w, NULL);
	jsonw_string_n(w, "s", text, bytes);
	jsonw_array(w, "a");
	jsonw_string_n(w, NULL, text, bytes);
	jsonw_hex(w, NULL, (const uint8_t *)text, bytes);
	jsonw_u64(w, NULL, bytes);
	jsonw_array_end(w);
	jsonw_object_end(w);
}

static struct json_object *read_back(const struct jsonw *w)
{
	struct json_tokener *t = json_tokener_new();
	struct json_object *json;

	must(t);
	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	json = json_tokener_parse_ex(t, w->data, (int)w->bytes);
	must(json_tokener_get_error(t) == json_tokener_success);
	json_tokener_free(t);
	return json;
}

/* Nothing leaves that drives a terminal, ends a line or turns the order in which it is read. */
static void check_controls(const char *text, size_t bytes)
{
	static const char *const controls[] = {
		"\xd8\x9c",	"\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xa9",
		"\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae",
		"\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9",
	};

	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];

		must(c >= 0x20 && c != 0x7f);
		/* The first byte of a character, the second: C1. */
		must(c != 0xc2 || (unsigned char)text[i + 1] >= 0xa0);
	}
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++)
		must(!memmem(text, bytes, controls[i], strlen(controls[i])));
}

/* U+FFFD stands only where the input had it or had something that is no UTF-8. */
static void check_text(struct json_object *json, const char *text, size_t bytes)
{
	const char *back = json_object_get_string(json);
	size_t back_bytes = (size_t)json_object_get_string_len(json);

	if (back_bytes == bytes && memcmp(back, text, bytes) == 0)
		return;
	must(memmem(back, back_bytes, "\xef\xbf\xbd", 3));
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)text[i] >= 0x80)
			return;
	abort(); /* ASCII must come back as it was */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct json_object *json, *s = NULL;
	struct jsonw w, low;

	if (bytes > 1 << 20)
		return 0;
	jsonw_init(&w, SIZE_MAX / 2);
	write_all(&w, (const char *)data, bytes);
	must(jsonw_end(&w) == 0);
	check_controls(w.data, w.bytes);
	json = read_back(&w);
	must(json_object_object_get_ex(json, "s", &s));
	check_text(s, (const char *)data, bytes);
	json_object_put(json);

	/* One byte less than needed must be an error, as many as needed none. */
	jsonw_init(&low, w.bytes - 1);
	write_all(&low, (const char *)data, bytes);
	must(jsonw_end(&low) == -EMSGSIZE && low.bytes <= w.bytes - 1);
	jsonw_done(&low);
	jsonw_init(&low, w.bytes);
	write_all(&low, (const char *)data, bytes);
	must(jsonw_end(&low) == 0 && low.bytes == w.bytes);
	must(memcmp(low.data, w.data, w.bytes) == 0);
	jsonw_done(&low);
	jsonw_done(&w);
	return 0;
}
