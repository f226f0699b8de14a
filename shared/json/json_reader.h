/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_reader.h: the one JSON reader (RFC 8259, UTF-8), strict. It walks a text once and builds
 * nothing: the caller asks for what it expects next. A stack line of 30 frames is read 20 times
 * faster than into json-c objects. The first fault sticks: every call behind it fails, and `fault`
 * says what would be right at `at`. json_tree.h builds a tree where places and repeated keys
 * matter. Fuzzed against json-c (tests/fuzz/ctl/events.c).
 */
#ifndef TROCAR_SHARED_JSON_JSON_READER_H
#define TROCAR_SHARED_JSON_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_READER_NESTING 64 /* levels of event lines and answers */

/* A string between its quotes, as it stands in the text. */
struct json_text {
	const char *data; /* NULL: there was none */
	size_t bytes;
	bool escaped; /* has a '\': json_reader_decode makes the characters of it */
};

struct json_reader {
	const char *start, *at, *end; /* borrowed */
	const char *fault;	      /* static; NULL: none so far */
	unsigned int depth, nesting;
	bool comma;    /* the next key or element needs one before it */
	bool too_deep; /* the fault is one level more than `nesting` */
};

/* Begins to read a text of at most `nesting` levels of objects and arrays. */
void json_reader_init(struct json_reader *r, const char *text, size_t bytes, unsigned int nesting);

/* Notes a fault unless there is one; returns false. `fault` must live on. */
bool json_reader_refuse(struct json_reader *r, const char *fault);

/* Enters an object or an array. False: something else stands here, or it is nested too deep. */
bool json_reader_object(struct json_reader *r);
bool json_reader_array(struct json_reader *r);

/* The next key of the object; false at its end, which is consumed, or at a fault. */
bool json_reader_key(struct json_reader *r, struct json_text *ret_key);

/* Whether the array has another element; at its end that is consumed. False also at a fault. */
bool json_reader_element(struct json_reader *r);

/* Reads a string; where `null` is set, also null, as a text whose data is NULL. */
bool json_reader_string(struct json_reader *r, bool null, struct json_text *ret_text);

/* Reads a whole number within [min, max], below 2^64. */
bool json_reader_u64(struct json_reader *r, uint64_t min, uint64_t max, uint64_t *ret_number);

/* Passes over one value of any kind. */
bool json_reader_skip(struct json_reader *r);

/* True when nothing but blanks is left and no fault was seen. */
bool json_reader_end(struct json_reader *r);

/* What the next value begins with: '"', '{', '[', a digit, '-', 't', 'f', 'n', or 0 at the end. */
char json_reader_peek(struct json_reader *r);

/*
 * Writes the characters of a text that was read into `room` of at least text->bytes bytes; returns
 * how many. Half a surrogate pair becomes U+FFFD.
 */
size_t json_reader_decode(const struct json_text *text, char *room);

#endif
