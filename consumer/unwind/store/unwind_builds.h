/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_builds.h: compiled builds of files in the pool, by number. A held build stays; of the
 * others, the longest unused one is evicted when space is needed. The caller holds a lock.
 */
#ifndef TROCAR_CONSUMER_UNWIND_STORE_UNWIND_BUILDS_H
#define TROCAR_CONSUMER_UNWIND_STORE_UNWIND_BUILDS_H

#include <stdbool.h>

#include "consumer/unwind/store/unwind_file.h"
#include "consumer/unwind/store/unwind_pool.h"

/* A build. Its index in the list is its number on the kernel side. */
struct unwind_build {
	bool live;
	uint32_t epoch; /* grows when it is evicted, for callers that remember the number */
	uint32_t holds;
	uint64_t used;		  /* sequence number of the last hold */
	uint32_t first, elements; /* in the pool */
	uint64_t table_base, compile_ns;
	uint32_t rows, unsupported_ppm; /* part of the text with rows that no rule can describe */
	struct unwind_layout layout;
};

struct unwind_builds {
	struct unwind_pool pool;
	struct unwind_build *items; /* UNWIND_FILES_MAX, owned */
	uint64_t uses, evicted, rows;
	size_t count; /* builds that are live */
};

/* Initialises an empty list. 0, -ENOMEM. Release with unwind_builds_done. */
int unwind_builds_init(struct unwind_builds *b, uint32_t pool_elements);
void unwind_builds_done(struct unwind_builds *b);

/*
 * Returns the live build that was compiled from a copy of this file, with the same build-id and
 * digest. Returns NULL if there is none, or if the file has no build-id of at least
 * BUILD_ID_BYTES_MIN bytes.
 */
struct unwind_build *unwind_builds_find(struct unwind_builds *b,
					const struct unwind_layout *layout);

/* Returns the number of pool elements that a finished table takes. */
uint32_t unwind_builds_elements(const struct unwind_table *t);

/*
 * Makes a build for a finished table and holds it once; copies nothing yet. Returns 0; -ENOSPC;
 * -ENOMEM.
 */
int unwind_builds_add(struct unwind_builds *b, const struct unwind_layout *layout,
		      const struct unwind_table *t, uint64_t compile_ns,
		      struct unwind_build **ret_build);

/*
 * Writes the rows and the page index of a build that has no reader yet to the pool of `pool_fd`,
 * and their positions to *file. Returns 0 or -errno of mmap(2). Needs no lock.
 */
int unwind_builds_write(const struct unwind_build *build, const struct unwind_table *t, int pool_fd,
			struct unwind_file *file);

/* Removes a build that was just added, because its rows could not be written. */
void unwind_builds_remove(struct unwind_builds *b, struct unwind_build *build);

void unwind_builds_hold(struct unwind_builds *b, struct unwind_build *build);

#endif
