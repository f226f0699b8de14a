/* SPDX-License-Identifier: BSD-2-Clause */
/* pretty.h: the readable names of one symbol table; each is demangled when it is first needed. */
#ifndef TROCAR_CONSUMER_SYMBOLS_PRETTY_H
#define TROCAR_CONSUMER_SYMBOLS_PRETTY_H

#include <stddef.h>

struct pretty;

/*
 * Returns the readable name of `raw`, which must not move or be freed while *p lives; returns `raw`
 * itself if it is not mangled, or without memory. *p is NULL at first. The string lives until
 * pretty_free.
 */
const char *pretty_name(struct pretty **p, const char *raw);

/* Frees all names; NULL is allowed. */
void pretty_free(struct pretty *p);

/* Returns the bytes of heap; 0 for NULL. */
size_t pretty_bytes(const struct pretty *p);

#endif
