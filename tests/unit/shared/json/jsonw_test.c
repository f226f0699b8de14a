/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"

/* Compares the whole output. */
static void is(const struct jsonw *w, const char *right)
{
	assert_int_equal(jsonw_end(w), 0);
	assert_int_equal(w->bytes, strlen(right));
	assert_memory_equal(w->data, right, w->bytes);
}

static void writes_structure(void **state)
{
	_cleanup_(jsonw_done) struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	jsonw_u64(&w, "v", 1);
	jsonw_array(&w, "a");
	jsonw_array_end(&w);
	jsonw_array(&w, "b");
	jsonw_string(&w, NULL, "x");
	jsonw_object(&w, NULL);
	jsonw_object_end(&w);
	jsonw_null(&w, NULL);
	jsonw_array_end(&w);
	jsonw_bool(&w, "yes", true);
	jsonw_bool(&w, "no", false);
	jsonw_string(&w, "none", NULL);
	jsonw_string_key(&w, "a\"b", "c");
	jsonw_string_key(&w, "d", NULL);
	jsonw_raw(&w, "raw", "[1,2]", 5);
	jsonw_hex(&w, "hex", (const uint8_t *)"\x00\xaf\xff", 3);
	jsonw_object_end(&w);
	is(&w, "{\"v\":1,\"a\":[],\"b\":[\"x\",{},null],\"yes\":true,\"no\":false,\"none\":null,"
	       "\"a\\\"b\":\"c\",\"d\":null,\"raw\":[1,2],\"hex\":\"00afff\"}");
}

static void writes_numbers(void **state)
{
	_cleanup_(jsonw_done) struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_array(&w, NULL);
	jsonw_u64(&w, NULL, 0);
	jsonw_u64(&w, NULL, 9);
	jsonw_u64(&w, NULL, 10);
	jsonw_u64(&w, NULL, 99);
	jsonw_u64(&w, NULL, 100);
	jsonw_u64(&w, NULL, UINT64_MAX);
	jsonw_u64_nonzero(&w, NULL, 0);
	jsonw_u64_nonzero(&w, NULL, 7);
	jsonw_i64(&w, NULL, -1);
	jsonw_i64(&w, NULL, INT64_MIN);
	jsonw_i64(&w, NULL, INT64_MAX);
	jsonw_milli(&w, NULL, 0);
	jsonw_milli(&w, NULL, 1234);
	jsonw_milli(&w, NULL, 5);
	jsonw_milli(&w, NULL, -7);
	jsonw_milli(&w, NULL, -12050);
	jsonw_milli(&w, NULL, INT64_MIN);
	jsonw_array_end(&w);
	is(&w, "[0,9,10,99,100,18446744073709551615,7,-1,-9223372036854775808,9223372036854775807,"
	       "0.000,1.234,0.005,-0.007,-12.050,-9223372036854775.808]");
}

/* Every length of number, around each power of ten. */
static void agrees_with_printf(void **state)
{
	_cleanup_(jsonw_done) struct jsonw w;
	uint64_t power = 1;

	jsonw_init(&w, 64);
	for (int i = 0; i < 20; i++, power *= 10) {
		for (int64_t d = -1; d <= 1; d++) {
			char right[32];

			snprintf(right, sizeof(right), "%llu",
				 (unsigned long long)(power + (uint64_t)d));
			jsonw_reset(&w);
			jsonw_u64(&w, NULL, power + (uint64_t)d);
			is(&w, right);
		}
	}
}

static void escapes_by_the_rfc(void **state)
{
	_cleanup_(jsonw_done) struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_string_n(&w, NULL, "\"\\/\b\f\n\r\t\0\x01\x1f\x7f", 12);
	is(&w, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u0001\\u001f\\u007f\"");
}

static void one_text(const char *text, size_t bytes, const char *right)
{
	_cleanup_(jsonw_done) struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_string_n(&w, NULL, text, bytes);
	is(&w, right);
}

#define BAD "\xef\xbf\xbd"

static void replaces_invalid_utf8(void **state)
{
	one_text("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9,
		 "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
	one_text("\xc0\xaf", 2, "\"" BAD BAD "\"");		    /* overlong / */
	one_text("\xe0\x80\xaf", 3, "\"" BAD BAD BAD "\"");	    /* overlong / */
	one_text("\xf0\x80\x80\xaf", 4, "\"" BAD BAD BAD BAD "\""); /* overlong / */
	one_text("\xed\xa0\x80", 3, "\"" BAD BAD BAD "\"");	    /* surrogate */
	one_text("\xf4\x90\x80\x80", 4, "\"" BAD BAD BAD BAD "\""); /* above U+10FFFF */
	one_text("\xf5\x80\x80\x80", 4, "\"" BAD BAD BAD BAD "\"");
	one_text("\x80", 1, "\"" BAD "\"");
	one_text("\xff", 1, "\"" BAD "\"");
	one_text("a\xe2\x82", 3, "\"a" BAD BAD "\""); /* cut at the end of the text */
	one_text("\xe2\x82\"", 3, "\"" BAD BAD "\\\"\"");
	one_text("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xf0\x90\x80\x80", 14,
		 "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xf0\x90\x80\x80\""); /* just within */
}

/* What drives a terminal, or turns the order in which a text is read, is escaped; its neighbours
 * are not. */
static void escapes_controls(void **state)
{
	one_text("\x7f", 1, "\"\\u007f\"");
	one_text("a~\x7fz", 4, "\"a~\\u007fz\"");
	one_text("\xc2\x80\xc2\x9b[2J\xc2\x9f", 9, "\"\\u0080\\u009b[2J\\u009f\"");
	one_text("\xc2\xa0", 2, "\"\xc2\xa0\"");
	one_text("\xd8\x9b\xd8\x9c\xd8\x9d", 6, "\"\xd8\x9b\\u061c\xd8\x9d\"");
	one_text("\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90", 12,
		 "\"\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90\"");
	one_text("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf", 18,
		 "\"\xe2\x80\xa7\\u2028\\u2029\\u202a\\u202e\xe2\x80\xaf\"");
	one_text("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", 12,
		 "\"\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa\"");
	/* Above the first plane there is none. */
	one_text("\xf0\x92\x80\xae", 4, "\"\xf0\x92\x80\xae\"");
}

/* Each byte at each place of a word: the eight-byte test and the single test must agree. */
static void special_bytes_at_every_place(void **state)
{
	for (int c = 0; c < 256; c++) {
		for (size_t at = 0; at < 17; at++) {
			_cleanup_(jsonw_done) struct jsonw w;
			char text[17], right[64];
			size_t n;

			memset(text, 'x', sizeof(text));
			text[at] = (char)c;
			jsonw_init(&w, 256);
			jsonw_string_n(&w, NULL, text + at, 1);
			n = (size_t)snprintf(right, sizeof(right), "\"%.*s", (int)at,
					     "xxxxxxxxxxxxxxxxx");
			memcpy(right + n, w.data + 1, w.bytes - 2);
			n += w.bytes - 2;
			snprintf(right + n, sizeof(right) - n, "%.*s\"", (int)(16 - at),
				 "xxxxxxxxxxxxxxxxx");
			jsonw_reset(&w);
			jsonw_string_n(&w, NULL, text, sizeof(text));
			is(&w, right);
		}
	}
}

static void write_line(struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "k\"", "v\n\xff and more");
	jsonw_string_key(w, "\x01", "y");
	jsonw_array(w, "a");
	jsonw_i64(w, NULL, -5);
	jsonw_hex(w, NULL, (const uint8_t *)"ab", 2);
	jsonw_array_end(w);
	jsonw_object_end(w);
}

/* Under every wall below the length it fails and stays below; at the length it fits. */
static void holds_the_wall_to_the_byte(void **state)
{
	_cleanup_(jsonw_done) struct jsonw w;

	jsonw_init(&w, 4096);
	write_line(&w);
	assert_int_equal(jsonw_end(&w), 0);
	for (size_t max = 0; max <= w.bytes; max++) {
		_cleanup_(jsonw_done) struct jsonw low;

		jsonw_init(&low, max);
		write_line(&low);
		assert_int_equal(jsonw_end(&low), max < w.bytes ? -EMSGSIZE : 0);
		assert_true(low.bytes <= max && low.space <= max);
		jsonw_reset(&low);
		assert_int_equal(jsonw_end(&low), 0);
	}
}

static void rewinds(void **state)
{
	_cleanup_(jsonw_done) struct jsonw w;
	struct jsonw_mark before;

	jsonw_init(&w, 20);
	jsonw_array(&w, NULL);
	jsonw_u64(&w, NULL, 1);
	before = jsonw_mark(&w);
	jsonw_string(&w, NULL, "far too long for what is left");
	assert_int_equal(jsonw_end(&w), -EMSGSIZE);
	jsonw_rewind(&w, before);
	jsonw_u64(&w, NULL, 2);
	jsonw_array_end(&w);
	is(&w, "[1,2]");

	jsonw_reset(&w);
	jsonw_array(&w, NULL);
	before = jsonw_mark(&w);
	jsonw_u64(&w, NULL, 1);
	jsonw_rewind(&w, before);
	jsonw_u64(&w, NULL, 2);
	jsonw_array_end(&w);
	is(&w, "[2]"); /* the comma is rewound too */
}

UNIT_TESTS(jsonw)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_structure),
		cmocka_unit_test(writes_numbers),
		cmocka_unit_test(agrees_with_printf),
		cmocka_unit_test(escapes_by_the_rfc),
		cmocka_unit_test(replaces_invalid_utf8),
		cmocka_unit_test(escapes_controls),
		cmocka_unit_test(special_bytes_at_every_place),
		cmocka_unit_test(holds_the_wall_to_the_byte),
		cmocka_unit_test(rewinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
