/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_internal.h: declarations shared by the files of the rules parser: the collected faults of a
 * text, the sorted indices of a set. Only shared/rules/ includes it.
 */
#ifndef TROCAR_SHARED_RULES_RULES_INTERNAL_H
#define TROCAR_SHARED_RULES_RULES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/json/json_tree.h"
#include "shared/rules/rules.h"

#define RULES_BUDGET_DEFAULT_S 600

/* The faults found so far; keeps at most RULES_FAULTS_MAX of each stage. */
struct rules_collect {
	const char *text; /* borrowed: the text with the faults */
	size_t bytes;
	struct rules_pending *items; /* owned */
	size_t kept, space;
	size_t count; /* faults found, in all stages */
	size_t base;  /* `kept` when the stage began */
	int error;    /* 0 or -ENOMEM; stays set */
};

/* Adds a fault at a value, or at a byte offset of the whole text. */
void rules_collect_add(struct rules_collect *c, const struct json_node *node, const char *format,
		       ...) __attribute__((format(printf, 3, 4)));
void rules_collect_add_at(struct rules_collect *c, size_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds "is <the value>; must be <right>". */
void rules_collect_wrong(struct rules_collect *c, const struct json_node *node, const char *right);

/* Begins a stage with its own share of kept faults. */
void rules_collect_stage(struct rules_collect *c);

/* Moves the collected faults to `faults`, in the order of the text, with their line numbers. */
void rules_collect_give(struct rules_collect *c, struct rules_faults *faults);
void rules_collect_done(struct rules_collect *c);

/*
 * Adds the fault at the first byte that is not JSON. The message identifies a comment, a comma
 * after the last member, and quotes of another kind. fault->offset is within the text.
 */
void rules_syntax_fault(struct rules_collect *c, const struct json_fault *fault);

/* Adds a fault for each string with half of a surrogate pair, which is not a character. */
void rules_syntax_halves(struct rules_collect *c, const struct json_tree *tree);

/* The place of a rule in the text; NULL for missing ones. */
struct rules_place {
	const struct json_node *rule, *name, *match;
};

/* A place in a text that moves forward only: each byte is read once. */
struct rules_cursor {
	size_t offset;
	uint32_t line, column; /* from 1; columns count characters */
};

#define RULES_CURSOR_BEGIN ((struct rules_cursor){ 0, 1, 1 })

void rules_cursor_move(struct rules_cursor *c, const char *text, size_t to);

/*
 * Fills entries, by_name, by_comm and by_cgroup of a set after its rules were read. Leaves out
 * rules without a valid name or match. Returns 0 or -ENOMEM.
 */
int rules_index_build(struct rules *rules);

/*
 * Adds a fault for every name and every match that an earlier rule already has. Needs the indices.
 */
void rules_index_faults(const struct rules *rules, const struct rules_place *places,
			struct rules_collect *c);

/*
 * Adds a warning for every rule with prefixes that are within the prefixes of another rule. Returns
 * 0 or -ENOMEM.
 */
int rules_index_warnings(const struct rules *rules, const struct rules_place *places,
			 struct rules_collect *c);

/* Adds warnings about parts of each rule that can never work, or were certainly not intended. */
void rules_warnings_add(const struct rules *rules, const struct rules_place *places,
			struct rules_collect *c);

/*
 * Returns the index, among the `n` entries at `sorted` (same comm, sorted by cgroup_prefix), of the
 * one with the longest prefix of `path`; an entry without cgroup_prefix has the empty prefix.
 * Returns n if there is none.
 */
size_t rules_index_longest(const struct rules *rules, const uint32_t *sorted, size_t n,
			   const char *path, size_t path_bytes);

/* Finds the range of by_comm with this comm (`bytes` of it) and this kind. */
void rules_index_group(const struct rules *rules, const char *comm, size_t bytes, bool exact,
		       size_t *ret_begin, size_t *ret_end);

#endif
