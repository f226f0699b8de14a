/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_internal.h: what the files of the rules parser share: the faults found in a text, the
 * indices over a set. Nothing outside shared/rules/ includes it.
 */
#ifndef TROCAR_SHARED_RULES_RULES_INTERNAL_H
#define TROCAR_SHARED_RULES_RULES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/json/json_node.h"
#include "shared/rules/rules.h"

#define RULES_BUDGET_DEFAULT_S 600

/* Faults as they are found, by place; at most RULES_FAULTS_MAX kept of each stage. */
struct rules_collect {
	const char *text; /* borrowed: where the faults are in */
	size_t bytes;
	struct rules_pending *items; /* owned */
	size_t kept, space;
	size_t count; /* found, in all stages */
	size_t base;  /* `kept` when the stage began */
	int error;    /* 0 or -ENOMEM; sticks */
};

/* Adds a fault of a value, or of the whole text at a byte offset. */
void rules_collect_add(struct rules_collect *c, const struct json_node *node, const char *format,
		       ...) __attribute__((format(printf, 3, 4)));
void rules_collect_add_at(struct rules_collect *c, size_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds "is <the value>; must be <right>". */
void rules_collect_wrong(struct rules_collect *c, const struct json_node *node, const char *right);

/* Begins a stage with its own share of kept faults. */
void rules_collect_stage(struct rules_collect *c);

/* Moves the collected faults to `faults`, in the order of the text, with their lines. */
void rules_collect_give(struct rules_collect *c, struct rules_faults *faults);
void rules_collect_done(struct rules_collect *c);

/* Where a rule stands in the text; NULL for what it lacks. */
struct rules_place {
	const struct json_node *name, *match;
};

/*
 * Fills by_name, by_comm and by_cgroup of a set whose rules stand. Rules without a (valid) name or
 * match are left out of them. 0, -ENOMEM.
 */
int rules_index_build(struct rules *rules);

/* Adds a fault for every name and every match that an earlier rule has already. Sorted set. */
void rules_index_faults(const struct rules *rules, const struct rules_place *places,
			struct rules_collect *c);

/* Adds a warning for every rule whose prefixes lie within those of another. -ENOMEM. */
int rules_index_warnings(const struct rules *rules, const struct rules_place *places,
			 struct rules_collect *c);

/*
 * Of the `n` rules at `sorted` (same comm, sorted by cgroup_prefix), the one with the longest
 * prefix of `path`; a rule without cgroup_prefix has the empty one. n when none.
 */
size_t rules_index_longest(const struct rules *rules, const uint32_t *sorted, size_t n,
			   const char *path, size_t path_bytes);

/* The range of by_comm with this comm (`bytes` of it) and this kind. */
void rules_index_group(const struct rules *rules, const char *comm, size_t bytes, bool exact,
		       size_t *ret_begin, size_t *ret_end);

#endif
