/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings.h: the executable mappings of a process as they were read (mappings_read.h,
 * mappings_walk.h); finds the module and file offset of a raw address. Main thread only.
 */
#ifndef TROCAR_CONSUMER_MAPPINGS_MAPPINGS_H
#define TROCAR_CONSUMER_MAPPINGS_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/symbols/symbols.h"

#define MAPPINGS_MAX	    16384 /* limit of the executable mappings of one process */
#define MAPPINGS_ROUNDS_MAX 1024  /* readings of the iterator for one process (MAPPING_MORE) */

struct mapping {
	uint64_t start, end;
	uint64_t file_offset;
	struct module *module; /* held (symbols_hold) */
	uint64_t since_ns;     /* CLOCK_MONOTONIC: unchanged in all readings since then */
};

/* The mappings of one process, sorted by start. */
struct mappings {
	struct mapping *items; /* owned */
	size_t count;
	struct module *exe; /* held; NULL: not seen */
	bool compiled;	    /* some executable memory has no file: code that a runtime compiled */
	bool stale;	    /* one of its modules was retired: read the mappings again */
	uint64_t read_ns;   /* when the reading began, CLOCK_MONOTONIC */
	uint32_t image;	    /* of these mappings, as in struct sample */
};

void mappings_done(struct mappings *m);

/*
 * Copies since_ns of the mappings that are unchanged since `earlier`, a reading of the same image.
 */
void mappings_carry(const struct mappings *earlier, struct mappings *m);

/* Releases *to and makes it a copy of `from`. 0; -ENOMEM: *to is as before. */
int mappings_copy(const struct mappings *from, struct mappings *to);

/* Returns the mapping that contains `address`, or NULL. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t address);

/* Returns the offset of `address` in the mapped file. */
static inline uint64_t mapping_offset(const struct mapping *m, uint64_t address)
{
	return address - m->start + m->file_offset;
}

/* A language runtime identified by the mapped files. */
struct runtime {
	const char *name; /* "python", "node", ...; NULL: none recognised */
	char version[32]; /* "3.11"; "" if the file names do not contain it */
	const char *how;  /* "exe" or "library": which file showed it */
};

/* Finds the runtime by the rows of runtimes.def. */
void mappings_runtime(const struct mappings *m, struct runtime *ret_runtime);

#endif
