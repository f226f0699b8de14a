/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_reader.h: reads the facts of a cgroup from the kernel's files, in cgroup2 and in the v1
 * hierarchies of a hybrid host, and the facts of the machine in /proc. Main thread only.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_READER_H
#define TROCAR_CONSUMER_FACTS_FACTS_READER_H

#include "consumer/cgroup/cgroups.h"
#include "consumer/facts/facts.h"
#include "consumer/facts/facts_place.h"

struct facts_reader {
	struct cgroups *cgroups;  /* cgroup2, borrowed */
	facts_place_call of_root; /* facts_place.h; NULL: no process of the root is known */
	void *context;		  /* its argument */
	enum facts_where where[FACTS_SOURCE_COUNT_];
	struct cgroups v1[FACTS_SOURCE_COUNT_]; /* mount_fd -1: not mounted */
};

/*
 * Finds the controllers in v1 hierarchies, and opens these hierarchies. `cgroups` is borrowed and
 * open. Without v1 hierarchies everything is read from cgroup2. Returns 0 or -errno.
 */
int facts_reader_open(struct facts_reader *r, struct cgroups *cgroups);
void facts_reader_done(struct facts_reader *r); /* also of an all-zero reader */

/*
 * Finds the place of the facts of the cgroup at `path`. For CPU, memory and pids this is the
 * nearest cgroup above it with a limit, if it has no limit itself. Returns 0 or -ENOMEM.
 */
int facts_reader_place(struct facts_reader *r, const char *path, struct facts_place *ret_place);

/* The open files of one place. All zero: none is open. */
struct facts_files {
	uint64_t has;		   /* a bit for each file that was to be opened */
	int fd[FACTS_FILE_COUNT_]; /* owned; -errno: it could not be opened */
};

/*
 * Opens the files of the cgroup at `path` and `place`, down to `depth`. A descriptor stays with the
 * cgroup in which it was opened: once that is removed, reading fails with ENODEV
 * (fs/kernfs/file.c), even if a new cgroup has the path. Release with facts_reader_files_close.
 */
void facts_reader_files_open(struct facts_reader *r, const char *path,
			     const struct facts_place *place, enum facts_depth depth,
			     struct facts_files *ret_files);
void facts_reader_files_close(struct facts_files *files);

/*
 * Reads the open files. Unreadable facts are absent, with -errno in facts.error: -ESRCH if no v1
 * cgroup is known, -EXDEV if it is the root of its hierarchy, which has the whole host's counters,
 * -ENODEV if the cgroup was removed.
 */
void facts_reader_files_read(const struct facts_files *files, struct facts *ret_facts);

/* Reads the facts of the cgroup at `path` once: opens the files and closes them again. */
void facts_reader_read(struct facts_reader *r, const char *path, const struct facts_place *place,
		       enum facts_depth depth, struct facts *ret_facts);

#endif
