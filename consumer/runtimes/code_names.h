/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * code_names.h: the names, files and line tables of the code objects that the kernel side has
 * copied (struct runtime_name), by number. Bounded; the oldest ones leave first. The main thread
 * adds them, the symbolizer thread finds them. The texts are foreign processes'.
 */
#ifndef TROCAR_CONSUMER_RUNTIMES_CODE_NAMES_H
#define TROCAR_CONSUMER_RUNTIMES_CODE_NAMES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/runtime_abi.h"
#include "shared/tools/idmap.h"

#define CODE_NAMES_MAX	     32768
#define CODE_NAMES_BYTES_MAX (16u << 20)

struct code_name;

struct code_names_stats {
	size_t count, bytes;
	uint64_t added, evicted;
	uint64_t refused; /* malformed, or without memory */
};

struct code_names {
	pthread_mutex_t lock; /* of all other members */
	struct idmap by_number;
	struct code_name *oldest, *newest; /* by arrival */
	struct code_name *dead; /* evicted, but their texts may be in use until code_names_trim */
	bool held;		/* texts are in use */
	struct code_names_stats stats;
};

/* One frame of a runtime; texts live until code_names_trim. */
struct code_place {
	const char *fn, *file; /* UTF-8 */
	int32_t line;	       /* 0: unknown */
};

void code_names_init(struct code_names *n);
void code_names_done(struct code_names *n);

/* Adds a record of the ring `runtime_names`, of `bytes` bytes. Main thread. */
void code_names_add(struct code_names *n, const void *record, size_t bytes);

/*
 * Finds the function, file and line of a frame (RUNTIME_WORD). Returns false if its code object has
 * no name here. Symbolizer thread.
 */
bool code_names_find(struct code_names *n, uint64_t word, struct code_place *ret_place);

/* Invalidates all texts that were returned. Symbolizer thread. */
void code_names_trim(struct code_names *n);

/* Copies the statistics. Any thread. */
void code_names_stats(struct code_names *n, struct code_names_stats *ret_stats);

#endif
