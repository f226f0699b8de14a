/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_builds.h: compiled builds of files in the pool, by number. A held one stays; of the others
 * the longest unused is given up when room is needed. Not for several threads at once: the caller
 * has a lock.
 */
#ifndef TROCAR_CONSUMER_UNWIND_BUILDS_H
#define TROCAR_CONSUMER_UNWIND_BUILDS_H

#include <stdbool.h>

#include "consumer/unwind/store/unwind_file.h"
#include "consumer/unwind/store/unwind_pool.h"

/* A place in the list is the number that the kernel side knows the build by. */
struct unwind_build {
	bool live;
	uint32_t epoch; /* grows when it is given up: whoever remembers it asks anew */
	uint32_t holds;
	uint64_t used;		  /* grows with each hold */
	uint32_t first, elements; /* in the pool */
	uint64_t table_base, compile_ns;
	uint32_t rows, unsupported_ppm; /* of the bytes of text with rows: those no rule can say */
	struct unwind_layout layout;
};

struct unwind_builds {
	struct unwind_pool pool;
	struct unwind_build *items; /* UNWIND_FILES_MAX, owned */
	uint64_t uses, evicted, rows;
	size_t count; /* live ones */
};

/* 0, -ENOMEM. Release with unwind_builds_done. */
int unwind_builds_init(struct unwind_builds *b, uint32_t pool_elements);
void unwind_builds_done(struct unwind_builds *b);

/* The live one with this build-id, or NULL; NULL too for a file without one. */
struct unwind_build *unwind_builds_find(struct unwind_builds *b,
					const struct unwind_layout *layout);

/* Elements that a finished table takes in the pool. */
uint32_t unwind_builds_elements(const struct unwind_table *t);

/* Makes a build for a finished table, held once; nothing is copied yet. 0; -ENOSPC; -ENOMEM. */
int unwind_builds_add(struct unwind_builds *b, const struct unwind_layout *layout,
		      const struct unwind_table *t, uint64_t compile_ns,
		      struct unwind_build **ret_build);

/*
 * Writes the rows and the page index of a build that nobody reads yet into the pool behind
 * `pool_fd`, and where they are into *file. 0 or -errno of mmap(2). Needs no lock.
 */
int unwind_builds_write(const struct unwind_build *build, const struct unwind_table *t, int pool_fd,
			struct unwind_file *file);

/* Takes back what was added a moment ago: its rows could not be written. */
void unwind_builds_remove(struct unwind_builds *b, struct unwind_build *build);

void unwind_builds_hold(struct unwind_builds *b, struct unwind_build *build);

#endif
