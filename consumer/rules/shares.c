/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/rules/shares.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroups.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* There are few owners: users with a tree of their own, and cgroups at the second level. */
#define OWNERS_MAX 16384

static const char *const names[] = {
	[SHARE_WATCHES] = "watches",
	[SHARE_TABLES] = "tables",
	[SHARE_ROWS] = "rows_bytes",
	[SHARE_CAPTURED] = "captured_ms",
};
_Static_assert(ARRAY_SIZE(names) == SHARE_COUNT_, "a name per share");

const char *share_name(enum share share)
{
	return names[share];
}

void shares_init(struct shares *s)
{
	*s = (struct shares){};
	idmap_init(&s->owners, OWNERS_MAX);
}

static void owner_free(void *value)
{
	struct owner *owner = value;

	free(owner->name);
	free(owner);
}

void shares_done(struct shares *s)
{
	idmap_free(&s->owners, owner_free);
}

struct owner *shares_owner(struct shares *s, const char *name)
{
	uint64_t key = idmap_text_key(name);
	struct owner *owner = idmap_get(&s->owners, key);

	if (!owner) {
		owner = calloc(1, sizeof(*owner));
		if (!owner)
			return NULL;
		owner->name = strdup(name);
		if (!owner->name || idmap_put(&s->owners, key, owner) < 0) {
			owner_free(owner);
			return NULL;
		}
	}
	owner->refs++;
	return owner;
}

struct owner *shares_of_cgroup(struct shares *s, struct cgroups *cgroups, uint64_t cgroup_id,
			       uint32_t pid_hint)
{
	char name[CGROUP_OWNER_BYTES];

	if (!cgroup_id || !cgroups_owner(cgroups, cgroup_id, pid_hint, name))
		return NULL;
	return shares_owner(s, name);
}

struct owner *shares_ref(struct owner *owner)
{
	if (owner)
		owner->refs++;
	return owner;
}

void shares_put(struct shares *s, struct owner *owner)
{
	if (owner)
		owner->refs--;
}

void shares_sweep(struct shares *s, uint64_t now_ns)
{
	_cleanup_free_ struct owner **idle = calloc(s->owners.count + 1, sizeof(struct owner *));
	struct owner *owner;
	size_t n = 0;
	uint64_t key;

	if (!idle)
		return;
	idmap_for_each (&s->owners, i, key, owner)
		if (!owner->refs && !budget_spent_ms(&owner->captured, now_ns))
			idle[n++] = owner;
	while (n) {
		owner = idle[--n];
		idmap_remove(&s->owners, idmap_text_key(owner->name));
		owner_free(owner);
	}
}

void shares_add(struct owner *owner, enum share share, uint64_t n)
{
	if (owner)
		owner->held[share] += n;
}

void shares_sub(struct owner *owner, enum share share, uint64_t n)
{
	if (owner)
		owner->held[share] -= MIN(n, owner->held[share]);
}

bool shares_yield(const struct owner *from, const struct owner *to, enum share share, uint64_t n)
{
	return from && to && from != to && from->held[share] > to->held[share] + n;
}

void shares_clear(struct shares *s, enum share share)
{
	struct owner *owner;
	uint64_t key;

	idmap_for_each (&s->owners, i, key, owner)
		owner->held[share] = 0;
}

/* The captured time of the last hour. */
struct spent {
	uint64_t mine, all;
	uint64_t owners; /* number of owners that captured, including the newcomer */
};

static struct spent count_spent(struct shares *s, struct owner *owner, uint64_t at_ns)
{
	struct spent spent = { .owners = 1 };
	struct owner *other;
	uint64_t key;

	if (owner)
		spent.mine = budget_spent_ms(&owner->captured, at_ns);
	spent.all = spent.mine + budget_spent_ms(&s->captured, at_ns);
	idmap_for_each (&s->owners, i, key, other) {
		uint64_t ms = other != owner ? budget_spent_ms(&other->captured, at_ns) : 0;

		spent.all += ms;
		spent.owners += ms > 0;
	}
	return spent;
}

/*
 * Returns how much the owner has left of its equal share of `max_ms`, although all owners together
 * have used `used_ms`: nothing once they have used twice the whole.
 */
static uint64_t part_left_ms(const struct spent *spent, uint64_t max_ms, uint64_t used_ms)
{
	uint64_t part_ms = max_ms / spent->owners;

	if (spent->owners < 2 || spent->mine >= part_ms || used_ms >= 2 * max_ms)
		return 0;
	return MIN(part_ms - spent->mine, 2 * max_ms - used_ms);
}

uint64_t shares_part_left_ms(struct shares *s, struct owner *owner, uint64_t max_ms,
			     uint64_t used_ms, uint64_t at_ns)
{
	struct spent spent = count_spent(s, owner, at_ns);

	return part_left_ms(&spent, max_ms, used_ms);
}

uint64_t shares_left_ms(struct shares *s, struct owner *owner, uint64_t max_ms, uint64_t at_ns,
			bool *ret_of_owner)
{
	struct spent spent = count_spent(s, owner, at_ns);
	uint64_t half_ms = max_ms / 2, own_ms = half_ms - MIN(half_ms, spent.mine);
	uint64_t left_ms = max_ms - MIN(max_ms, spent.all);

	left_ms = MAX(left_ms, part_left_ms(&spent, max_ms, spent.all));
	*ret_of_owner = spent.owners > 1 && own_ms <= left_ms;
	return *ret_of_owner ? own_ms : left_ms;
}

void shares_captured(struct shares *s, struct owner *owner, uint64_t now_ns, uint32_t ms)
{
	budget_spend(owner ? &owner->captured : &s->captured, now_ns, ms);
}

void shares_return(struct shares *s, struct owner *owner, uint64_t captured_ns, uint32_t ms)
{
	budget_return(owner ? &owner->captured : &s->captured, captured_ns, ms);
}

void shares_parts(const struct shares *s, const uint64_t capacity[SHARE_COUNT_],
		  uint64_t ret_parts[SHARE_COUNT_])
{
	uint64_t holders[SHARE_COUNT_] = { 0 }, key;
	const struct owner *owner;

	idmap_for_each (&s->owners, i, key, owner)
		for (int share = 0; share < SHARE_COUNT_; share++)
			holders[share] += owner->held[share] > 0;
	for (int share = 0; share < SHARE_COUNT_; share++)
		ret_parts[share] = capacity[share] / MAX(holders[share], (uint64_t)1);
}

/* Returns the owner's largest share of any capacity, in millionths. */
static uint64_t weight_of(const struct owner *owner, const uint64_t capacity[SHARE_COUNT_])
{
	uint64_t most = 0;

	for (int share = 0; share < SHARE_COUNT_; share++)
		if (capacity[share])
			most = MAX(most, owner->held[share] * 1000000 / capacity[share]);
	return most;
}

/* Inserts the owner by weight into the `n` heaviest so far; returns the new count. */
static size_t insert_owner(const struct owner **top, size_t n, size_t max,
			   const struct owner *owner, const uint64_t capacity[SHARE_COUNT_])
{
	uint64_t weight = weight_of(owner, capacity);
	size_t at = n;

	while (at > 0 && weight_of(top[at - 1], capacity) < weight)
		at--;
	if (at >= max)
		return n;
	n = MIN(n + 1, max);
	memmove(&top[at + 1], &top[at], (n - at - 1) * sizeof(const struct owner *));
	top[at] = owner;
	return n;
}

size_t shares_top(struct shares *s, const uint64_t capacity[SHARE_COUNT_], uint64_t now_ns,
		  const struct owner **ret_top, size_t max)
{
	struct owner *owner;
	size_t n = 0;
	uint64_t key;

	idmap_for_each (&s->owners, i, key, owner) {
		owner->held[SHARE_CAPTURED] = budget_spent_ms(&owner->captured, now_ns);
		if (weight_of(owner, capacity))
			n = insert_owner(ret_top, n, max, owner, capacity);
	}
	return n;
}
