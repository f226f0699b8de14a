/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan.h: a strict JSON reader (RFC 8259, UTF-8) that walks a text once and builds nothing: the
 * caller asks for what it expects next. Made for event lines: a stack line of 30 frames is read 20
 * times faster than into json-c objects. The first fault sticks: every call behind it fails, and
 * `fault` says what would be right at `at`. Fuzzed against json-c (tests/fuzz/ctl/events.c).
 */
#ifndef TROCAR_CTL_SCAN_H
#define TROCAR_CTL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCAN_NESTING 64

/* A string between its quotes, as it stands in the text. */
struct scan_text {
	const char *data; /* NULL: there was none */
	size_t bytes;
	bool escaped; /* has a '\': scan_plain makes the characters of it */
};

struct scan {
	const char *start, *at, *end; /* borrowed */
	const char *fault;	      /* static; NULL: none so far */
	unsigned int depth;
	bool comma; /* the next key or element needs one before it */
};

void scan_init(struct scan *s, const char *text, size_t bytes);

/* Notes a fault unless there is one; returns false. `fault` must live on. */
bool scan_refuse(struct scan *s, const char *fault);

/* Enters an object or an array. False: something else stands here. */
bool scan_object(struct scan *s);
bool scan_array(struct scan *s);

/* The next key of the object; false at its end, which is consumed, or at a fault. */
bool scan_key(struct scan *s, struct scan_text *ret_key);

/* Whether the array has another element; at its end that is consumed. False also at a fault. */
bool scan_element(struct scan *s);

/* Values. scan_string takes null too, as a text with data NULL, when `null` says so. */
bool scan_string(struct scan *s, bool null, struct scan_text *ret_text);

/* A whole number within [min, max], below 2^64. */
bool scan_u64(struct scan *s, uint64_t min, uint64_t max, uint64_t *ret_number);

/* Passes over one value of any kind. */
bool scan_skip(struct scan *s);

/* True when nothing but blanks is left and no fault was seen. */
bool scan_done(struct scan *s);

/* What the next value begins with: '"', '{', '[', a digit, '-', 't', 'f', 'n', or 0 at the end. */
char scan_peek(struct scan *s);

/*
 * The characters of a scanned text into `room` of at least text->bytes bytes; returns how many. A
 * lone surrogate becomes U+FFFD.
 */
size_t scan_plain(const struct scan_text *text, char *room);

#endif
