/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scope.h: the cgroup prefixes that the loader was given (`trocar-loader load --scope`). The kernel
 * side looks at nobody outside of them; the consumer reads them so as not to watch in vain, and to
 * say so. Main thread only.
 */
#ifndef TROCAR_CONSUMER_WATCH_SCOPE_H
#define TROCAR_CONSUMER_WATCH_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/output/event_line.h"
#include "shared/abi/abi.h"
#include "shared/json/jsonw.h"

struct scope {
	struct cgroup_key prefixes[SCOPE_PREFIXES];
	size_t count; /* 0: everything may be watched */
	uint64_t refused;
	bool said; /* that something was refused, of the present rules */
};

/* Reads the prefixes from the pinned map `fd`. 0 or -errno. */
int scope_read(int fd, struct scope *ret_scope);

/* Whether the cgroup at `path`, below the hierarchy's root, may be watched. */
bool scope_holds(const struct scope *s, const char *path);

/* Counts a cgroup that is not watched for being outside; says the first of a rule set. */
void scope_refuse(struct scope *s, const char *path, const struct lines *lines);

/* Writes the array `name` of the prefixes. */
void scope_write_prefixes(const struct scope *s, const char *name, struct jsonw *w);

/* Writes the object `scope` of the status, when there is a scope. */
void scope_write(const struct scope *s, struct jsonw *w);

#endif
