/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neighbour_rows.h: makes the rows of lines `neighbour`: one of each other cgroup, and one of all
 * cgroups below the directory that an administrator handed to a user (delegated.h), because the
 * user makes as many of them as he likes. Rows are made when a session closes: by then the paths
 * are known that it had to look for. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_NEIGHBOUR_ROWS_H
#define TROCAR_CONSUMER_SIGNALS_NEIGHBOUR_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/delegated.h"

struct cgroup_names;
struct cgroups;

/* The owner of a row. It is the first member of a signal's element by cgroup. */
struct neighbour_row {
	uint64_t cgroup_id;
	char *path;	     /* owned; NULL: it is not known */
	const char *unnamed; /* why that is so; a literal */
	size_t cgroups;	     /* how many: above 1, it is a directory */
	size_t group;	     /* number of the user's directory plus 1; 0: none */
	uint32_t uid;	     /* of the user, 0: none */
};

/* Where rows come from; a test has its own. */
struct neighbour_names {
	/* Returns the number of the user's directory that the cgroup is in, plus 1; 0: in none. */
	size_t (*group)(void *context, uint64_t cgroup_id);
	/* Sets all but `cgroups` and `group`, which are set. */
	void (*name)(void *context, struct neighbour_row *row);
	void *context;
};

/* Elements that begin with a row. */
struct neighbour_rows_kind {
	size_t bytes;				      /* of one */
	int (*compare)(const void *a, const void *b); /* that with the most comes first */
	/* Whether two of one directory are one row: then it is 0. NULL: they always are. */
	int (*compare_kind)(const void *a, const void *b);
	void (*add)(void *to, const void *more); /* all but the row */
};

/*
 * Adds up the `count` elements that are of one directory, sorts them, and names the first `named`.
 * A sum has the members of its largest element, except for the row and the sums of `add`. Returns
 * how many there are.
 */
size_t neighbour_rows_make(void *items, size_t count, size_t named,
			   const struct neighbour_rows_kind *kind,
			   const struct neighbour_names *names);

/* Has the paths of elements of `bytes` bytes looked for that are not known, as a session ends. */
void neighbour_rows_ask(const void *items, size_t count, size_t bytes, struct cgroup_names *names,
			struct cgroups *cgroups);

/* The names that a session knows. */
struct neighbour_rows_source {
	struct cgroup_names *names; /* borrowed */
	struct cgroups *cgroups;    /* borrowed */
	struct delegated_list delegated;
};

/* Returns the callbacks; `p` has `names` and `cgroups`. Release with neighbour_rows_source_done. */
struct neighbour_names neighbour_rows_names(struct neighbour_rows_source *p);
void neighbour_rows_source_done(struct neighbour_rows_source *p);

#endif
