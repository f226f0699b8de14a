/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neighbour_rows.h: makes the rows of `neighbour` lines: one for each other cgroup, and one for all
 * cgroups below a directory that an administrator delegated to a user (delegated.h), because the
 * user can create any number of them. Where there are more than rows, small cgroups of one
 * directory share a row too: hundreds of jobs below one slice are one neighbour. Rows are made when
 * a session closes, because the paths that it requested are known by then. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_NEIGHBOUR_ROWS_H
#define TROCAR_CONSUMER_SIGNALS_NEIGHBOUR_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/delegated.h"
#include "shared/tools/idmap.h"

struct cgroup_names;
struct cgroups;

#define NEIGHBOUR_SIBLINGS 4   /* cgroups of one directory from which on they share a row */
#define NEIGHBOUR_PARENTS  256 /* directories that are looked at for this */

/* The identity of a row. It is the first member of a signal's per-cgroup element. */
struct neighbour_row {
	uint64_t cgroup_id;
	char *path;	     /* owned; NULL: unknown */
	const char *unnamed; /* why the path is unknown; a literal */
	size_t cgroups;	     /* number of cgroups; above 1, the row is a directory */
	size_t group;	     /* number of the shared directory plus 1; 0: no directory */
	uint32_t uid;	     /* of the user; 0: none */
};

/* Source of the rows' names; tests supply their own. */
struct neighbour_names {
	/*
	 * Returns the number of the user's directory that contains the cgroup, plus 1; 0: no
	 * directory.
	 */
	size_t (*group)(void *context, uint64_t cgroup_id);
	/*
	 * Returns the number of the directory right above the cgroup, plus 1, distinct from the
	 * numbers that `group` returns; 0: it is the root, unknown, or one too many. NULL: no
	 * directory but users' is shared.
	 */
	size_t (*parent)(void *context, uint64_t cgroup_id);
	/* Sets all members of the row except `cgroups` and `group`, which are already set. */
	void (*name)(void *context, struct neighbour_row *row);
	void *context;
};

/* Describes elements that begin with a row. */
struct neighbour_rows_kind {
	size_t bytes;				      /* of one element */
	size_t named;				      /* number of elements with a row */
	int (*compare)(const void *a, const void *b); /* puts the largest element first */
	/* Returns 0 if two elements of one directory belong in one row. NULL: they always do. */
	int (*compare_kind)(const void *a, const void *b);
	void (*add)(void *to, const void *more); /* adds every member but the row */
};

/*
 * Adds up those of the `count` elements that are in one directory, sorts the elements, and names
 * the first kind->named. Of more elements, the largest half of kind->named keep their own rows, and
 * of the others NEIGHBOUR_SIBLINGS and more below one directory are added up. A sum keeps the
 * members of its largest element, except for the row and the members that `add` sums. The other
 * elements are added to `rest`, an element of zeros, and their cgroups to rest->row.cgroups.
 * Returns the number of named elements.
 */
size_t neighbour_rows_make(void *items, size_t count, const struct neighbour_rows_kind *kind,
			   const struct neighbour_names *names, void *rest);

/* Returns the name of one cgroup for a sentence: its path, but words for the root cgroup.
 */
const char *neighbour_rows_name(const char *path);

#define NEIGHBOUR_SAYS_BYTES 300

/* Writes the row's name for a sentence, cut if needed, as "/batch" or "40 cgroups in /batch". */
void neighbour_rows_say(const struct neighbour_row *row, char text[NEIGHBOUR_SAYS_BYTES]);

/*
 * Requests the unknown paths of `count` elements of `bytes` bytes each. Called as a session ends.
 */
void neighbour_rows_ask(const void *items, size_t count, size_t bytes, struct cgroup_names *names,
			struct cgroups *cgroups);

/* A directory with several small cgroups. */
struct neighbour_parent {
	char *path; /* owned */
	uint64_t id;
};

/* The names that a session has. */
struct neighbour_rows_source {
	struct cgroup_names *names; /* borrowed */
	struct cgroups *cgroups;    /* borrowed */
	struct delegated_list delegated;
	struct neighbour_parent *parents; /* owned; NEIGHBOUR_PARENTS, NULL before the first */
	size_t n_parents;
	struct idmap by_path; /* to an element of `parents` */
};

/*
 * Initialises *p and returns its callbacks. Release *p with neighbour_rows_source_done.
 */
struct neighbour_names neighbour_rows_names(struct neighbour_rows_source *p,
					    struct cgroup_names *names, struct cgroups *cgroups);
void neighbour_rows_source_done(struct neighbour_rows_source *p);

#endif
