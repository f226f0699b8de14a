/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map.h: parses the names of code that a runtime compiled into memory, from the file that it
 * writes for profilers: /tmp/perf-PID.map, a line "START SIZE NAME" for each function, the numbers
 * in hex (Linux tools/perf/Documentation/jit-interface.txt). If entries overlap, the later one
 * counts: the parser cuts them into pieces that do not overlap. A line does not contain the time of
 * its code. So an address that got another function after the samples began has no name: a sample
 * may be of either. The parser is fuzzed (tests/fuzz/symbols/jit.c).
 */
#ifndef TROCAR_CONSUMER_JIT_PERF_MAP_H
#define TROCAR_CONSUMER_JIT_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/elf/reason.h"

#define PERF_MAP_SYMBOLS_MAX 200000 /* the newest entries are kept */
#define PERF_MAP_NAME_BYTES  512    /* NUL included; a longer name is cut */

struct jit_map;

/*
 * Parses a map from memory, which it does not keep; skips malformed lines. The first `old_bytes` of
 * it existed before the first sample that is to be named. Returns 0 with *ret_map, which
 * perf_map_free releases, or -ENOMEM.
 */
int perf_map_parse(const char *text, size_t bytes, size_t old_bytes, struct jit_map **ret_map);
void perf_map_free(struct jit_map *map);

/*
 * Names the function that contains `address`. Returns REASON_NONE with *ret_fn and *ret_start; else
 * REASON_NO_SYMBOL, REASON_PERF_MAP_CUT (it may be in the unread part), or REASON_CODE_REUSED.
 */
enum reason perf_map_find(const struct jit_map *map, uint64_t address, const char **ret_fn,
			  uint64_t *ret_start);

/* Records that the file has lines before the parsed ones. */
void perf_map_set_cut(struct jit_map *map);

/* Returns the bytes of heap. */
size_t perf_map_bytes(const struct jit_map *map);

#endif
