/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shares.h: counts how much of each bounded resource every owner holds. While there is space, every
 * owner gets it. When there is none, a newcomer takes an idle element of an owner that holds more
 * than the newcomer would then. So no owner can keep others out, and two owners with equal amounts
 * do not take from each other in turns. Makes no system call; main thread only.
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
	SHARE_TABLES,	/* unwind tables */
	SHARE_ROWS,	/* bytes of the unwind pool used by no other owner */
	SHARE_CAPTURED, /* milliseconds within the last hour */
	SHARE_COUNT_,
};

/* Returns the name of the share: "watches", "tables", "rows_bytes", "captured_ms". */
const char *share_name(enum share share);

struct owner {
	char *name; /* as cgroups_owner writes it; owned */
	unsigned int refs;
	uint64_t held[SHARE_COUNT_];
	struct budget captured;
};

struct shares {
	struct idmap owners;	/* hash of the name -> struct owner *, owned */
	struct budget captured; /* captured in cgroups removed before their owner was looked up */
};

void shares_init(struct shares *s);
void shares_done(struct shares *s);

/*
 * Returns the owner of that name with one more reference; NULL without memory: then no share is
 * counted.
 */
struct owner *shares_owner(struct shares *s, const char *name);

struct cgroups;

/* Returns the owner of a cgroup with one more reference (shares_put); NULL if it is unknown. */
struct owner *shares_of_cgroup(struct shares *s, struct cgroups *cgroups, uint64_t cgroup_id,
			       uint32_t pid_hint);

/* Takes one more reference and returns `owner`; NULL is allowed. */
struct owner *shares_ref(struct owner *owner);

/* Drops a reference; NULL is allowed. */
void shares_put(struct shares *s, struct owner *owner);

/* Frees the owners without references that have captured nothing within the last hour. */
void shares_sweep(struct shares *s, uint64_t now_ns);

/* Change the amount that `owner` holds; with NULL they do nothing. */
void shares_add(struct owner *owner, enum share share, uint64_t n);
void shares_sub(struct owner *owner, enum share share, uint64_t n);

/*
 * Returns whether `from` has more of the share than `to` would have with `n` more. False if either
 * is NULL.
 */
bool shares_yield(const struct owner *from, const struct owner *to, enum share share, uint64_t n);

/* Sets held[share] of all owners to 0, before it is counted again. */
void shares_clear(struct shares *s, enum share share);

/*
 * Returns the milliseconds that the overall budget of `max_ms` per hour lets `owner` capture at
 * `at_ns`, which is now or later; *ret_of_owner: this owner has less left than all together. An
 * only owner may use all of it, one of several half. An owner may use its equal part even when
 * others have used up the whole, until all together have used twice the budget.
 */
uint64_t shares_left_ms(struct shares *s, struct owner *owner, uint64_t max_ms, uint64_t at_ns,
			bool *ret_of_owner);

/*
 * Returns the rest of `owner`'s equal part of a rule's budget. Counts its captured time by all
 * rules. `used_ms` of the budget are used up.
 */
uint64_t shares_part_left_ms(struct shares *s, struct owner *owner, uint64_t max_ms,
			     uint64_t used_ms, uint64_t at_ns);

/* Counts captured milliseconds for `owner`, or for no owner (NULL). */
void shares_captured(struct shares *s, struct owner *owner, uint64_t now_ns, uint32_t ms);

/* Takes back the part of `ms` that was counted at `captured_ns` and not captured. */
void shares_return(struct shares *s, struct owner *owner, uint64_t captured_ns, uint32_t ms);

/* Computes for each share `capacity` divided by the number of owners that hold any of it. */
void shares_parts(const struct shares *s, const uint64_t capacity[SHARE_COUNT_],
		  uint64_t ret_parts[SHARE_COUNT_]);

/*
 * Lists the owners that hold something, at most `max`, sorted by the largest part of any capacity
 * that they hold, the largest first. Returns their number. Updates held[SHARE_CAPTURED].
 */
size_t shares_top(struct shares *s, const uint64_t capacity[SHARE_COUNT_], uint64_t now_ns,
		  const struct owner **ret_top, size_t max);

#endif
