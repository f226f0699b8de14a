/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shares.h: who holds how much of what there is a bounded amount of. While there is room everybody
 * gets it; when there is none, a newcomer takes the place of something idle of an owner who has
 * more than the newcomer's would have then. So nobody can keep others out, and two who have the
 * same do not take from each other in turns. Pure; main thread only.
 */
#ifndef TROCAR_CONSUMER_RULES_SHARES_H
#define TROCAR_CONSUMER_RULES_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/rules/ruleset.h"
#include "shared/tools/idmap.h"

enum share {
	SHARE_WATCHES,	/* slots */
	SHARE_TABLES,	/* of unwinding */
	SHARE_ROWS,	/* bytes of the pool that others do not use too */
	SHARE_CAPTURED, /* milliseconds within the last hour */
	SHARE_COUNT_,
};

/* "watches", "tables", "rows_bytes", "captured_ms". */
const char *share_name(enum share share);

struct owner {
	char *name; /* as cgroups_owner has it; owned */
	unsigned int refs;
	uint64_t held[SHARE_COUNT_];
	struct budget captured;
};

struct shares {
	struct idmap owners;	/* hash of the name -> struct owner *, owned */
	struct budget captured; /* of cgroups that had gone before their owner was looked up */
};

void shares_init(struct shares *s);
void shares_done(struct shares *s);

/* The owner of that name with one reference more; NULL without memory: then nobody is asked. */
struct owner *shares_owner(struct shares *s, const char *name);

struct cgroups;

/* The owner of a cgroup, with a reference (shares_put); NULL when it is not known. */
struct owner *shares_of_cgroup(struct shares *s, struct cgroups *cgroups, uint64_t cgroup_id,
			       uint32_t pid_hint);

/* One reference more to the same; NULL is allowed. */
struct owner *shares_ref(struct owner *owner);

/* Gives a reference back; NULL is allowed. */
void shares_put(struct shares *s, struct owner *owner);

/* Forgets those to whom nobody refers and who have captured nothing within the hour. */
void shares_sweep(struct shares *s, uint64_t now_ns);

/* Owners, with which `owner` may be NULL: then these do nothing. */
void shares_add(struct owner *owner, enum share share, uint64_t n);
void shares_sub(struct owner *owner, enum share share, uint64_t n);

/* Whether `from` has more than `to` would have with `n` more of it. False for NULL. */
bool shares_yield(const struct owner *from, const struct owner *to, enum share share, uint64_t n);

/* Makes held[share] 0 for all: it is counted anew. */
void shares_clear(struct shares *s, enum share share);

enum capture_verdict {
	CAPTURE_MAY,
	CAPTURE_OWNER_SPENT, /* this owner has had its half, and is not the only one */
	CAPTURE_ALL_SPENT,
};

/*
 * Whether the overall budget of `max_ms` in an hour lets `owner` capture. Alone, an owner may have
 * all of it; with others half. What is an owner's equal part it may have although others have used
 * up the whole, until all together have used twice of it.
 */
enum capture_verdict shares_may_capture(struct shares *s, struct owner *owner, uint64_t max_ms,
					uint64_t now_ns);

/*
 * The same of a rule's budget, of which `used_ms` are used up: whether `owner` has captured less
 * than its equal part of it, by all rules.
 */
bool shares_has_part(struct shares *s, struct owner *owner, uint64_t max_ms, uint64_t used_ms,
		     uint64_t now_ns);

/* Captured milliseconds, of an owner or (NULL) of nobody known. */
void shares_captured(struct shares *s, struct owner *owner, uint64_t now_ns, uint32_t ms);

/* Of each, `capacity` divided by those who hold any of it. */
void shares_parts(const struct shares *s, const uint64_t capacity[SHARE_COUNT_],
		  uint64_t ret_parts[SHARE_COUNT_]);

/*
 * Those who hold something, the largest part of any capacity first, at most `max`; returns how
 * many. held[SHARE_CAPTURED] is brought up to date.
 */
size_t shares_top(struct shares *s, const uint64_t capacity[SHARE_COUNT_], uint64_t now_ns,
		  const struct owner **ret_top, size_t max);

#endif
