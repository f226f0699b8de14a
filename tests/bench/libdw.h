/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdw.h: the symbolizer of elfutils over the same files, beside ours. It maps them, reads their
 * tables at the first lookup and keeps no index of its own.
 */
#ifndef TROCAR_TESTS_BENCH_LIBDW_H
#define TROCAR_TESTS_BENCH_LIBDW_H

#include <stddef.h>
#include <stdint.h>

struct libdw;

/* Of `count` files; a file that it refuses ends the tool. Release with libdw_free. */
struct libdw *libdw_new(const char *const *paths, size_t count);
void libdw_free(struct libdw *d);

/* The name of the function at file offset `offset` of file `file`, or NULL. */
const char *libdw_name(struct libdw *d, size_t file, uint64_t offset);

#endif
