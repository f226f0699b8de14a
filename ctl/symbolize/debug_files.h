/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * debug_files.h: finds the files that have the function names of a build: a program or library, and
 * its split debug files, by build-id. Only regular files are opened, and only after a check of
 * their type, so that no FIFO blocks and no device is started. A file with another build-id is not
 * returned.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_DEBUG_FILES_H
#define TROCAR_CTL_SYMBOLIZE_DEBUG_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/events/pool.h"

#define DEBUG_FILES_MAX_BYTES (256u << 20) /* memory for build-ids and paths */
#define DEBUG_FILES_DEPTH     32	   /* depth of nested folders */
#define DEBUG_FILES_PATH      4096

struct debug_files {
	struct pool_budget budget;
	struct pool ids, paths;
	struct debug_files_known {
		uint64_t shape;	      /* of `code` (debug_files_shape) */
		uint32_t code, debug; /* numbers of `paths` + 1; 0: none */
		bool shared;	      /* programs of different shapes have this id */
	} * known;		      /* one per id */
	uint32_t space;
	const char *root;     /* DEBUG_FILE_ROOT, or a test's folder */
	const char *cache;    /* a folder of debuginfod's client, or NULL */
	uint64_t files;	      /* with a build-id */
	uint64_t passed_over; /* folders and files that could not be read */
	uint32_t first;	      /* the first of these, for a message: number of `paths` + 1... */
	int first_error;      /* ... and its error */
};

/* Two descriptors of one build, -1: none; the caller closes them. */
struct debug_files_pair {
	int code, debug;
};

void debug_files_init(struct debug_files *d);
void debug_files_done(struct debug_files *d);

/*
 * Records every file with a build-id below the folder `path`, which is open as `fd` (borrowed).
 * Does not follow symbolic links to folders. Counts unreadable folders and files in passed_over. 0,
 * -ENOMEM, -ENOSPC.
 */
int debug_files_add(struct debug_files *d, int fd, const char *path);

/*
 * Returns the shape, a number, of the program or library at `module` (a path, or NULL) if it is of
 * the build `hex` (`digits` hex digits). Copies of one program have the same shape, stripped or
 * not; another program that a linker or a person gave the same build-id has another shape. 0: there
 * is no such file.
 */
uint64_t debug_files_shape(const char *hex, size_t digits, const char *module);

/*
 * Opens the files of the build `hex` (`digits` hex digits): in the added folders, at `module` (a
 * path, or NULL), in the cache, and below the root. If programs of different shapes have this
 * build-id, only the one at `module` is opened. 0; -ENOENT: no file; -ESTALE: only a file of
 * another build, at `module`; -EACCES: the file at `module` may not be read; -ENOTUNIQ: different
 * programs in the folders have this build-id, and none of them is at `module`.
 */
int debug_files_open(struct debug_files *d, const char *hex, size_t digits, const char *module,
		     struct debug_files_pair *ret_pair);

#endif
