/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scope.h: the cgroup prefixes of `trocar-loader load --scope`. The kernel side takes no sample
 * outside of them. The consumer reads them so that it does not watch a cgroup without effect, and
 * reports the cgroups that it refuses. Main thread only.
 */
#ifndef TROCAR_CONSUMER_WATCH_SCOPE_H
#define TROCAR_CONSUMER_WATCH_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/output/event_line.h"
#include "shared/abi/abi.h"

struct jsonw;

struct scope {
	struct cgroup_key prefixes[SCOPE_PREFIXES];
	size_t count; /* 0: everything may be watched */
	uint64_t refused;
	bool logged; /* a refused cgroup of the current rules has its line */
};

/* Reads the prefixes from the pinned map `fd`. Returns 0 or -errno. */
int scope_read(int fd, struct scope *ret_scope);

/* Returns whether the cgroup at `path`, below the hierarchy's root, may be watched. */
bool scope_holds(const struct scope *s, const char *path);

/* Counts a cgroup outside the scope; writes a line for the first one of a rule set. */
void scope_refuse(struct scope *s, const char *path, const struct event_lines *lines);

/* Writes the prefixes as the array `name`. */
void scope_write_prefixes(const struct scope *s, const char *name, struct jsonw *w);

/* Writes the object `scope` of the method `status` if there is a scope. */
void scope_write(const struct scope *s, struct jsonw *w);

#endif
