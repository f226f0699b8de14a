/* SPDX-License-Identifier: BSD-2-Clause */
/* pretty.h: the readable names of one symbol table, each demangled when it is first asked for. */
#ifndef TROCAR_CONSUMER_PRETTY_H
#define TROCAR_CONSUMER_PRETTY_H

#include <stddef.h>

struct pretty;

/*
 * The readable name of `raw`, which must live and stay at its place as long as *p; `raw` itself
 * when it is not mangled or there is no memory. *p is NULL at first. The string lives until
 * pretty_free.
 */
const char *pretty_name(struct pretty **p, const char *raw);

/* NULL is fine. */
void pretty_free(struct pretty *p);

/* Bytes of heap; 0 for NULL. */
size_t pretty_bytes(const struct pretty *p);

#endif
