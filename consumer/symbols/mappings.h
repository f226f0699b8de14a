/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings.h: executable mappings of a process, read from the pinned `vmas` iterator, and the walk
 * from a raw address to module and file offset. Main thread only.
 */
#ifndef TROCAR_CONSUMER_MAPPINGS_H
#define TROCAR_CONSUMER_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols.h"

#define MAPPINGS_MAX	    16384 /* executable mappings kept of one process */
#define MAPPINGS_ROUNDS_MAX 1024  /* readings of the iterator for one process (MAPPING_MORE) */

struct mapping {
	uint64_t start, end;
	uint64_t file_offset;
	struct module *module; /* borrowed from symbols */
	uint64_t since_ns;     /* CLOCK_MONOTONIC: each reading since then has found it so */
};

/* Sorted by start. */
struct mappings {
	struct mapping *items; /* owned */
	size_t count;
	struct module *exe; /* borrowed; NULL when not seen */
	bool compiled;	    /* some executable memory has no file: a runtime's compiled code */
	uint64_t read_ns;   /* when that was begun, CLOCK_MONOTONIC */
	uint32_t image;	    /* whose they are, as in struct sample */
};

/*
 * Reads the mappings of `tgid` (whose start time must be start_ns) through the iterator pinned at
 * `vmas_path`; control->vma_tgid and vma_from are set and put back. *ret_mappings is new, release
 * with mappings_done. 0; -ESRCH when the process is gone or another has its pid; -EACCES when the
 * kernel side does not list it; -ESTALE when it got another image meanwhile; -EOVERFLOW beyond
 * MAPPINGS_MAX, MAPPINGS_ROUNDS_MAX or SYMBOLS_MODULES_MAX (what fitted is returned all the same:
 * the caller's to release); -EBADMSG for records that are not sound; -ENOMEM; -errno of open(2) and
 * read(2).
 */
int mappings_read(const char *vmas_path, struct control *control, uint32_t tgid, uint64_t start_ns,
		  struct symbols *symbols, struct mappings *ret_mappings);

void mappings_done(struct mappings *m);

/* Takes over from an earlier reading of the same image since when what is unchanged has been there.
 */
void mappings_carry(const struct mappings *earlier, struct mappings *m);

/* Makes *to, whose old content is released, a copy of `from`. 0; -ENOMEM: *to is as before. */
int mappings_copy(const struct mappings *from, struct mappings *to);

/* The mapping that holds `address`, or NULL. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t address);

/* Offset in the mapped file. */
static inline uint64_t mapping_offset(const struct mapping *m, uint64_t address)
{
	return address - m->start + m->file_offset;
}

/* A language runtime as seen in the mapped files. */
struct runtime {
	const char *name; /* "python", "node", ...; NULL when none is recognised */
	char version[32]; /* "3.11", "" when the file names do not say */
	const char *how;  /* "exe" or "library": what it was recognised by */
};

/* Recognises the runtime by the rows of runtimes.def. */
void mappings_runtime(const struct mappings *m, struct runtime *ret_runtime);

#endif
