/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_internal.h: what the files of the rules parser share: the positions of a text, the faults
 * found in it, the indices over a set. Nothing outside shared/rules*.c includes it.
 */
#ifndef TROCAR_SHARED_RULES_INTERNAL_H
#define TROCAR_SHARED_RULES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules.h"

#define RULES_NO_NODE	       UINT32_MAX
#define RULES_BUDGET_DEFAULT_S 600

enum rules_node_kind {
	RULES_NODE_OBJECT,
	RULES_NODE_ARRAY,
	RULES_NODE_STRING,
	RULES_NODE_OTHER, /* a number, true, false, null */
};

/*
 * One value of the text. Nodes stand in the order of the text: the first child of node i is i + 1.
 */
struct rules_node {
	uint32_t offset;   /* of the value's first byte */
	uint32_t parent;   /* RULES_NO_NODE for the root */
	uint32_t next;	   /* next sibling, RULES_NO_NODE at the end */
	uint32_t children; /* members or elements */
	uint32_t key;	   /* in an object: offset of the key's bytes; in an array: the index */
	uint32_t key_bytes;
	uint8_t kind;	 /* enum rules_node_kind */
	uint8_t decoded; /* the key had escapes: `key` counts from `keys`, not from `text` */
	uint8_t hidden;	 /* the same key comes again later: json-c kept only that value */
};

/* The positions of all values of a text. */
struct rules_scan {
	const char *text; /* borrowed */
	size_t bytes;
	struct rules_node *nodes; /* owned */
	uint32_t count, space;
	char *keys; /* owned; keys that had escapes, decoded; no longer than the text */
	size_t keys_bytes;
};

/* Faults as they are found, by place; at most RULES_FAULTS_MAX kept of each stage. */
struct rules_collect {
	const struct rules_scan *scan; /* borrowed */
	struct rules_pending *items;   /* owned */
	size_t kept, space;
	size_t count; /* found, in all stages */
	size_t base;  /* `kept` when the stage began */
	int error;    /* 0 or -ENOMEM; sticks */
};

/*
 * Scans `bytes` bytes (at most RULES_TEXT_BYTES) that need not be JSON; what is none, or nested
 * deeper than RULES_NESTING, is a fault in `c` and -EINVAL. Keys that come twice in one object are
 * faults too, but the scan goes on. -ENOMEM. Release with rules_scan_done in every case.
 */
int rules_scan_run(struct rules_scan *s, const char *text, size_t bytes, struct rules_collect *c);
void rules_scan_done(struct rules_scan *s);

/* The key of a member, not terminated. */
const char *rules_scan_key(const struct rules_scan *s, uint32_t node, size_t *ret_bytes);

/* The last member of that name, or RULES_NO_NODE. */
uint32_t rules_scan_member(const struct rules_scan *s, uint32_t object, const char *name);

/* The first child, or RULES_NO_NODE. */
uint32_t rules_scan_first(const struct rules_scan *s, uint32_t node);

/* How many bytes of text the value of this node takes; for containers, 1. */
size_t rules_scan_extent(const struct rules_scan *s, uint32_t node);

/* Adds a fault at a node, or (RULES_NO_NODE) of the whole text at a byte offset. */
void rules_collect_add(struct rules_collect *c, uint32_t node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void rules_collect_add_at(struct rules_collect *c, size_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds "is <the value>; must be <right>". */
void rules_collect_wrong(struct rules_collect *c, uint32_t node, const char *right);

/* Begins a stage with its own share of kept faults. */
void rules_collect_stage(struct rules_collect *c);

/* Moves the collected faults to `faults`, in the order of the text, with their lines. */
void rules_collect_give(struct rules_collect *c, struct rules_faults *faults);
void rules_collect_done(struct rules_collect *c);

/* Where a rule stands in the text; RULES_NO_NODE for what it lacks. */
struct rules_place {
	uint32_t name, match;
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
