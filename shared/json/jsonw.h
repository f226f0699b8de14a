/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jsonw.h: a small streaming JSON writer into one growing buffer. It escapes by RFC 8259 and all
 * that utf8_is_control knows, so that a text may be printed on a terminal as it is; it replaces
 * bytes that are no UTF-8 by U+FFFD, and never produces a half-valid text: an error (no memory, or
 * longer than the wall) sticks, and jsonw_end reports it. The first key or element needs no comma
 * from the caller. A document of json-c takes 7.5 times as long to build and print.
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
	size_t max_bytes; /* wall */
	int error;	  /* first error, 0 or -errno */
	bool comma;	  /* the next value needs one */
};

/* An empty writer that grows up to max_bytes; no allocation yet. Release with jsonw_done. */
void jsonw_init(struct jsonw *w, size_t max_bytes);
void jsonw_done(struct jsonw *w);

/* Forgets the text and the error, keeps the buffer. */
void jsonw_reset(struct jsonw *w);

/* Structure. `key` is trusted text without characters that need escaping; NULL inside an array. */
void jsonw_object(struct jsonw *w, const char *key);
void jsonw_object_end(struct jsonw *w);
void jsonw_array(struct jsonw *w, const char *key);
void jsonw_array_end(struct jsonw *w);

/* Values; `key` NULL inside an array. jsonw_string takes NULL as null. */
void jsonw_string(struct jsonw *w, const char *key, const char *text);
void jsonw_string_n(struct jsonw *w, const char *key, const char *text, size_t bytes);
void jsonw_u64(struct jsonw *w, const char *key, uint64_t number);
void jsonw_i64(struct jsonw *w, const char *key, int64_t number);
void jsonw_bool(struct jsonw *w, const char *key, bool yes);
void jsonw_null(struct jsonw *w, const char *key);
/* Hex digits of `bytes` bytes, two each, lower case. */
void jsonw_hex(struct jsonw *w, const char *key, const uint8_t *data, size_t bytes);
/* A number with three decimals: milli = 1234 writes 1.234. */
void jsonw_milli(struct jsonw *w, const char *key, int64_t milli);
/* Inserts valid JSON text as it is (text made by another jsonw). */
void jsonw_raw(struct jsonw *w, const char *key, const char *json, size_t bytes);
/* A key from outside, escaped: for labels. */
void jsonw_string_key(struct jsonw *w, const char *key_text, const char *text);

/*
 * A point to come back to: jsonw_rewind undoes everything since jsonw_mark, an error that came
 * after it too, so that a caller can try whether one more piece fits below the wall.
 */
struct jsonw_mark {
	size_t bytes;
	bool comma;
	int error;
};
struct jsonw_mark jsonw_mark(const struct jsonw *w);
void jsonw_rewind(struct jsonw *w, struct jsonw_mark mark);

/* 0 when all of the text stands, else the first error: -ENOMEM or -EMSGSIZE. */
int jsonw_end(const struct jsonw *w);

#endif
