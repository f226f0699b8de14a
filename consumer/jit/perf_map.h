/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map.h: reads the names of code that a runtime compiled into memory from the file that it
 * writes for profilers: /tmp/perf-PID.map, a line "START SIZE NAME" for each function, the numbers
 * in hex (Linux tools/perf/Documentation/jit-interface.txt). The file belongs to the watched
 * process: it may be of any size, sparse, and change during the read. Of a large file only the end
 * is read, which is the newest; where entries overlap, the later one counts: the parser cuts them
 * into pieces that do not overlap. The parser is fuzzed (tests/fuzz/symbols/jit.c).
 */
#ifndef TROCAR_CONSUMER_JIT_PERF_MAP_H
#define TROCAR_CONSUMER_JIT_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/elf/reason.h"

#define PERF_MAP_FOLDER	     "/tmp"
#define PERF_MAP_BYTES_MAX   (16u << 20) /* bytes read from the file's end */
#define PERF_MAP_SYMBOLS_MAX 200000	 /* the newest entries that are kept */
#define PERF_MAP_NAME_BYTES  512	 /* NUL included; a longer name is cut */

struct jit_map;

/*
 * Opens the map of a living process in the host's `folder`: a regular file that the process's user
 * owns, and that was written since the process started. REASON_NONE with a descriptor that the
 * caller closes; REASON_PROCESS_GONE when the process has ended; REASON_NO_PERF_MAP when there is
 * no file, or the process is in another PID namespace, so that the host's folder is not its own;
 * else what is wrong with the file.
 */
enum reason perf_map_open(const char *folder, const struct process_key *process, int *ret_fd);

/*
 * Reads the end of an opened map of `process`, after it has checked what the descriptor shows: a
 * regular file, written since the process started. REASON_NONE with *ret_map, which perf_map_free
 * releases.
 */
enum reason perf_map_load(int fd, const struct process_key *process, struct jit_map **ret_map);

/* Parses a map from memory, which it does not keep; skips malformed lines. 0 or -ENOMEM. */
int perf_map_parse(const char *text, size_t bytes, struct jit_map **ret_map);
void perf_map_free(struct jit_map *map);

/*
 * Returns the newest function that holds `address`, with its start in *ret_start; NULL when none
 * does.
 */
const char *perf_map_find(const struct jit_map *map, uint64_t address, uint64_t *ret_start);

/*
 * Whether the file has lines before those that were read: then a function without a name may stand
 * there.
 */
bool perf_map_is_cut(const struct jit_map *map);

/* Returns the bytes of heap. */
size_t perf_map_bytes(const struct jit_map *map);

#endif
