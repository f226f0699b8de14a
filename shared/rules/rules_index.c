/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_index.c: sorts a rule set. The order makes matching fast, and finds repeated names,
 * repeated matches and nested prefixes, each in O(n log n).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/rules/rules_internal.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define COMM_MAX   15  /* bytes, so at most COMM_MAX comm prefixes nest */
#define CGROUP_MAX 255 /* bytes, so at most CGROUP_MAX cgroup prefixes nest */
#define NO_RULE	   UINT32_MAX

static const struct rule *get_rule(const struct rules *rules, uint32_t entry)
{
	return &rules->rules[rules->entries[entry].rule];
}

static const char *get_comm(const struct rules *rules, uint32_t entry)
{
	return rules_entry_comm(rules, &rules->entries[entry]);
}

static const char *get_cgroup(const struct rules *rules, uint32_t entry)
{
	const struct rule *r = get_rule(rules, entry);

	return r->cgroup_prefix ? r->cgroup_prefix : "";
}

static int compare_names(const void *a, const void *b, void *rules)
{
	const struct rule *all = ((const struct rules *)rules)->rules;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int r = strcmp(all[x].name, all[y].name);

	return r ? r : (x > y) - (x < y);
}

/* Orders by comm, prefix before exact. So a prefix precedes every comm that begins with it. */
static int compare_comms(const struct rules *rules, uint32_t x, uint32_t y)
{
	int r = strcmp(get_comm(rules, x), get_comm(rules, y));

	return r ? r : (int)get_rule(rules, x)->comm_exact - (int)get_rule(rules, y)->comm_exact;
}

static int compare_matches(const void *a, const void *b, void *rules)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int r = compare_comms(rules, x, y);

	if (r == 0)
		r = strcmp(get_cgroup(rules, x), get_cgroup(rules, y));
	return r ? r : (x > y) - (x < y);
}

static void sort_indices(struct rules *rules, uint32_t *indices, size_t n,
			 int (*compare)(const void *a, const void *b, void *rules))
{
	if (n > 1)
		qsort_r(indices, n, sizeof(*indices), compare, rules);
}

/* Allocates the arrays; rules_free frees them, also after a failure. */
static int make_room(struct rules *rules)
{
	size_t names = MAX(rules->count, (size_t)1), entries = names;

	for (size_t i = 0; i < rules->count; i++)
		entries += rules->rules[i].n_comms;
	rules->entries = calloc(entries, sizeof(*rules->entries));
	rules->by_name = calloc(names, sizeof(uint32_t));
	rules->by_comm = calloc(entries, sizeof(uint32_t));
	rules->by_cgroup = calloc(names, sizeof(uint32_t));
	return rules->entries && rules->by_name && rules->by_comm && rules->by_cgroup ? 0 : -ENOMEM;
}

static void add_rule(struct rules *rules, uint32_t at)
{
	const struct rule *r = &rules->rules[at];

	if (r->name[0])
		rules->by_name[rules->n_by_name++] = at;
	for (uint32_t i = 0; i < r->n_comms; i++) {
		rules->by_comm[rules->n_by_comm++] = (uint32_t)rules->n_entries;
		rules->entries[rules->n_entries++] = (struct rules_entry){ at, i };
	}
	if (r->n_comms || !r->cgroup_prefix)
		return;
	rules->by_cgroup[rules->n_by_cgroup++] = (uint32_t)rules->n_entries;
	rules->entries[rules->n_entries++] = (struct rules_entry){ at, 0 };
}

int rules_index_build(struct rules *rules)
{
	int r = make_room(rules);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < rules->count; i++)
		add_rule(rules, i);
	sort_indices(rules, rules->by_name, rules->n_by_name, compare_names);
	sort_indices(rules, rules->by_comm, rules->n_by_comm, compare_matches);
	sort_indices(rules, rules->by_cgroup, rules->n_by_cgroup, compare_matches);
	return 0;
}

/*
 * Compares an entry's comm and kind with a comm of `bytes` bytes (at most COMM_MAX), in the order
 * of compare_comms.
 */
static int compare_with_comm(const struct rules *rules, uint32_t entry, const char *comm,
			     size_t bytes, bool exact)
{
	const char *own = get_comm(rules, entry);
	int c = strncmp(own, comm, bytes);

	if (c == 0 && own[bytes])
		c = 1;
	return c ? c : (int)get_rule(rules, entry)->comm_exact - (int)exact;
}

/*
 * Returns the first index in by_comm with an entry that is not below the comm; with `above`, that
 * is above it.
 */
static size_t find_bound(const struct rules *rules, const char *comm, size_t bytes, bool exact,
			 bool above)
{
	return LOWER_BOUND(i, 0, rules->n_by_comm,
			   compare_with_comm(rules, rules->by_comm[i], comm, bytes, exact) <
				   (int)above);
}

void rules_index_group(const struct rules *rules, const char *comm, size_t bytes, bool exact,
		       size_t *ret_begin, size_t *ret_end)
{
	size_t begin = find_bound(rules, comm, bytes, exact, false), end = begin;

	/* Most ranges are empty, and need no second search. */
	if (begin < rules->n_by_comm &&
	    compare_with_comm(rules, rules->by_comm[begin], comm, bytes, exact) == 0)
		end = find_bound(rules, comm, bytes, exact, true);
	*ret_begin = begin;
	*ret_end = end;
}

static bool is_not_above(const char *prefix, const char *path, size_t bytes)
{
	int c = strncmp(prefix, path, bytes);

	return c < 0 || (c == 0 && !prefix[bytes]);
}

/*
 * Counts the sorted entries with a cgroup prefix that is not above the first `bytes` bytes of
 * `path`.
 */
static size_t count_not_above(const struct rules *rules, const uint32_t *sorted, size_t n,
			      const char *path, size_t bytes)
{
	return LOWER_BOUND(i, 0, n, is_not_above(get_cgroup(rules, sorted[i]), path, bytes));
}

/*
 * The last prefix that is not above the path is either its longest prefix, or has only its first
 * bytes in common with it. In that case any shorter matching prefix is within those bytes, so the
 * next iteration cuts the path to them.
 */
size_t rules_index_longest(const struct rules *rules, const uint32_t *sorted, size_t n,
			   const char *path, size_t path_bytes)
{
	size_t bytes = MIN(path_bytes, (size_t)CGROUP_MAX), found, same;
	const char *prefix;

	for (;;) {
		found = count_not_above(rules, sorted, n, path, bytes);
		if (found == 0)
			return n;
		prefix = get_cgroup(rules, sorted[found - 1]);
		for (same = 0; same < bytes && prefix[same] == path[same]; same++)
			;
		if (!prefix[same])
			break;
		bytes = same;
	}
	/* Take the first in the file of equal prefixes; only a faulty set has them. */
	while (found > 1 && strcmp(get_cgroup(rules, sorted[found - 2]), prefix) == 0)
		found--;
	return found - 1;
}

/* Adds the fault that entry `at` has the same match as entry `first`. */
static void add_same_match(const struct rules *rules, const struct rules_place *places,
			   uint32_t first, uint32_t at, struct rules_collect *c)
{
	const struct rule *r = get_rule(rules, at), *same = get_rule(rules, first);
	const struct json_node *place = places[r - rules->rules].match;

	if (r == same)
		rules_collect_add(c, json_node_member(place, "comm"),
				  "has \"%s\" more than once; keep one of them",
				  get_comm(rules, at));
	else if (r->n_comms > 1 || same->n_comms > 1)
		rules_collect_add(
			c, place,
			"has \"%s\", which is in the match of /rules/%u (\"%s\") too, so that "
			"\"%s\" could never be chosen for it; must be in one of them",
			get_comm(rules, at), rules->entries[first].rule, same->name, r->name);
	else
		rules_collect_add(c, place,
				  "is also the match of /rules/%u (\"%s\"), so that \"%s\" could "
				  "never be chosen; must differ, or be one rule",
				  rules->entries[first].rule, same->name, r->name);
}

void rules_index_faults(const struct rules *rules, const struct rules_place *places,
			struct rules_collect *c)
{
	const struct rule *all = rules->rules;
	uint32_t first = 0;

	for (size_t i = 0; i < rules->n_by_name; i++) {
		uint32_t at = rules->by_name[i];

		if (i == 0 || strcmp(all[first].name, all[at].name) != 0)
			first = at;
		else
			rules_collect_add(c, places[at].name,
					  "\"%s\" is the name of /rules/%u already; must be unique",
					  all[at].name, first);
	}
	for (size_t i = 0; i < rules->n_by_comm + rules->n_by_cgroup; i++) {
		uint32_t at = i < rules->n_by_comm ? rules->by_comm[i]
						   : rules->by_cgroup[i - rules->n_by_comm];

		if (i == 0 || compare_comms(rules, first, at) != 0 ||
		    strcmp(get_cgroup(rules, first), get_cgroup(rules, at)) != 0)
			first = at;
		else
			add_same_match(rules, places, first, at, c);
	}
}

/*
 * The state of a search for nested rules; within[i] is the rule with the prefix that contains rule
 * i, or NO_RULE.
 */
struct sweep {
	const struct rules *rules;
	uint32_t *within;
};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*
 * Finds nested prefixes among sorted entries with the same comm, or without one. The stack has the
 * prefixes that contain the current one.
 */
static void sweep_cgroups(struct sweep *s, const uint32_t *sorted, size_t n)
{
	uint32_t stack[CGROUP_MAX];
	size_t depth = 0;

	for (size_t i = 0; i < n; i++) {
		const struct rule *r = get_rule(s->rules, sorted[i]);

		if (!r->cgroup_prefix)
			continue;
		while (depth &&
		       !starts_with(r->cgroup_prefix, get_cgroup(s->rules, stack[depth - 1])))
			depth--;
		if (depth)
			s->within[r - s->rules->rules] = s->rules->entries[stack[depth - 1]].rule;
		/*
		 * Equal prefixes are faults, which end the parse before this. Each nested prefix is
		 * at least one byte longer, so the stack needs at most CGROUP_MAX places.
		 */
		stack[depth++] = sorted[i];
	}
}

/* A range of by_comm in which all entries have the same comm and kind. */
struct group {
	size_t begin, end;
};

/*
 * Returns a rule of the group that can match the same cgroup as a rule with the prefix `cgroup`:
 * one of the two prefixes begins with the other. NO_RULE: there is none.
 */
static uint32_t find_compatible(const struct sweep *s, struct group g, const char *cgroup)
{
	const uint32_t *sorted = s->rules->by_comm + g.begin;
	size_t n = g.end - g.begin, at;

	at = rules_index_longest(s->rules, sorted, n, cgroup, strlen(cgroup));
	if (at < n)
		return s->rules->entries[sorted[at]].rule;
	at = count_not_above(s->rules, sorted, n, cgroup, strlen(cgroup));
	if (at < n && starts_with(get_cgroup(s->rules, sorted[at]), cgroup))
		return s->rules->entries[sorted[at]].rule;
	return NO_RULE;
}

/*
 * Compares the rules of one group with the groups of comm prefixes that its comm begins with, the
 * longest first.
 */
static void sweep_group(struct sweep *s, struct group g, const struct group *stack, size_t depth)
{
	for (size_t i = g.begin; i < g.end; i++) {
		uint32_t at = s->rules->by_comm[i], rule = s->rules->entries[at].rule;

		for (size_t d = depth; d > 0 && s->within[rule] == NO_RULE; d--)
			s->within[rule] =
				find_compatible(s, stack[d - 1], get_cgroup(s->rules, at));
	}
}

static struct group find_group(const struct rules *rules, size_t begin)
{
	struct group g = { begin, begin + 1 };

	while (g.end < rules->n_by_comm &&
	       compare_comms(rules, rules->by_comm[begin], rules->by_comm[g.end]) == 0)
		g.end++;
	return g;
}

static void sweep_comms(struct sweep *s)
{
	const struct rules *rules = s->rules;
	struct group stack[COMM_MAX], g;
	size_t depth = 0;

	for (size_t i = 0; i < rules->n_by_comm; i = g.end) {
		uint32_t at = rules->by_comm[i];

		g = find_group(rules, i);
		while (depth &&
		       !starts_with(get_comm(rules, at),
				    get_comm(rules, rules->by_comm[stack[depth - 1].begin])))
			depth--;
		sweep_cgroups(s, rules->by_comm + g.begin, g.end - g.begin);
		sweep_group(s, g, stack, depth);
		if (!get_rule(rules, at)->comm_exact)
			stack[depth++] = g;
	}
}

int rules_index_warnings(const struct rules *rules, const struct rules_place *places,
			 struct rules_collect *c)
{
	_cleanup_free_ uint32_t *within = NULL;
	struct sweep s;

	within = malloc(MAX(rules->count, (size_t)1) * sizeof(*within));
	if (!within)
		return -ENOMEM;
	memset(within, 0xff, rules->count * sizeof(*within));
	s = (struct sweep){ rules, within };
	sweep_cgroups(&s, rules->by_cgroup, rules->n_by_cgroup);
	sweep_comms(&s);
	for (size_t i = 0; i < rules->count; i++) {
		if (within[i] == NO_RULE)
			continue;
		rules_collect_add(
			c, places[i].match,
			"\"%s\" is within the prefix of \"%s\" (/rules/%u): processes in both go "
			"to \"%s\", the longest match",
			rules->rules[i].name, rules->rules[within[i]].name, within[i],
			rules->rules[i].name);
	}
	return 0;
}
