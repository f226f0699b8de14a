/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map.h: names of code that a runtime compiled into memory, from the file that it writes for
 * profilers: /tmp/perf-PID.map, a line "START SIZE NAME" for each function, the numbers in hex
 * (Linux tools/perf/Documentation/jit-interface.txt). The file belongs to the watched process: it
 * may be of any size, sparse, and change while it is read. Of a large one the end counts, which is
 * the newest; where entries overlap, too. The parser is fuzzed (tests/fuzz/symbols/jit.c).
 */
#ifndef TROCAR_CONSUMER_JIT_MAP_H
#define TROCAR_CONSUMER_JIT_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/elf/reason.h"

#define PERF_MAP_FOLDER	     "/tmp"
#define PERF_MAP_BYTES_MAX   (16u << 20) /* of the file's end that are read */
#define PERF_MAP_SYMBOLS_MAX 200000	 /* the newest */
#define PERF_MAP_NAME_BYTES  512	 /* NUL included; a longer name is kept cut */
#define PERF_MAP_OVERLAP_MAX 64 /* how far back an entry that reaches further is looked for */

struct jit_map;

/*
 * Opens the map of a living process in the host's `folder`: a regular file that its user owns, and
 * that was written since the process started.
 * REASON_NONE with a descriptor that is the caller's; REASON_PROCESS_GONE when the process has
 * ended; REASON_NO_PERF_MAP when there is none, or the process is of another PID namespace and the
 * host's folder not its own; else what is wrong with the file.
 */
enum reason perf_map_open(const char *folder, const struct process_key *process, int *ret_fd);

/*
 * Reads the end of an opened map of `process`, which is looked at as far as the descriptor goes: a
 * regular file, written since the process started. REASON_NONE with *ret_map, released with
 * perf_map_free.
 */
enum reason perf_map_load(int fd, const struct process_key *process, struct jit_map **ret_map);

/* The same from memory, which is not kept. 0 or -ENOMEM; what is no line of a map is left out. */
int perf_map_parse(const char *text, size_t bytes, struct jit_map **ret_map);
void perf_map_free(struct jit_map *map);

/* The newest function that holds `address`, *ret_start its start; NULL when none does. */
const char *perf_map_find(const struct jit_map *map, uint64_t address, uint64_t *ret_start);

size_t perf_map_count(const struct jit_map *map);

/* Bytes of heap. */
size_t perf_map_bytes(const struct jit_map *map);

#endif
