/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * debug_files.h: the files that may name the functions of a build: a program or library, and its
 * split debug files, by build-id. Only regular files are opened, and only after a check of their
 * type, so that no FIFO blocks and no device wakes; with another build-id is not given out.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_DEBUG_FILES_H
#define TROCAR_CTL_SYMBOLIZE_DEBUG_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/events/pool.h"

#define DEBUG_FILES_MAX_BYTES (256u << 20) /* of memory for build-ids and paths */
#define DEBUG_FILES_DEPTH     32	   /* folders in folders */
#define DEBUG_FILES_PATH      4096

struct debug_files {
	struct pool_budget budget;
	struct pool ids, paths;
	struct debug_files_known {
		uint64_t shape;	      /* of `code` (debug_files_shape) */
		uint32_t code, debug; /* paths + 1; 0: none */
		bool shared;	      /* programs of different shapes have the id */
	} * known;		      /* one per id */
	uint32_t space;
	const char *root;     /* DEBUG_FILE_ROOT, or a test's folder */
	const char *cache;    /* a folder of debuginfod's client, or NULL */
	uint64_t files;	      /* with a build-id */
	uint64_t passed_over; /* folders and files that could not be looked at */
	uint32_t first;	      /* of these, for a message: a path of `paths` + 1... */
	int first_error;      /* ... and why */
};

/* Two descriptors of one build, -1 where there is none; the caller closes. */
struct debug_files_pair {
	int code, debug;
};

void debug_files_init(struct debug_files *d);
void debug_files_done(struct debug_files *d);

/*
 * Notes every file with a build-id below the folder `path`, which is walked as `fd` (borrowed).
 * Symbolic links to folders are not followed. What cannot be looked at is counted in passed_over.
 * 0, -ENOMEM, -ENOSPC.
 */
int debug_files_add(struct debug_files *d, int fd, const char *path);

/*
 * Returns a number of the program or library at `module` (a path, or NULL) that is of the build
 * `hex`
 * (`digits` hex digits): its copies have the same one, stripped or not; a file that a linker or a
 * person gave the same build-id has another one. 0: no such file is there.
 */
uint64_t debug_files_shape(const char *hex, size_t digits, const char *module);

/*
 * Opens the files of the build `hex` (`digits` hex digits): of the folders that were added, at
 * `module` (a path, or NULL), in the cache, and below the root. Where programs of different shapes
 * have this build-id, only that at `module` is opened. 0; -ENOENT: nothing is there; -ESTALE: only
 * a file of another build at `module`; -EACCES: it may not be read; -ENOTUNIQ: different programs
 * of the folders have this build-id, and none of it is at `module`.
 */
int debug_files_open(struct debug_files *d, const char *hex, size_t digits, const char *module,
		     struct debug_files_pair *ret_pair);

#endif
