/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_index.c: sorts a rule set, which makes matching fast and finds repeated names, repeated
 * matches, and prefixes within other prefixes, each in O(n log n).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/rules/rules_internal.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define COMM_MAX   15  /* bytes; so at most as many comm prefixes nest */
#define CGROUP_MAX 255 /* bytes; so at most as many cgroup prefixes nest */
#define NO_RULE	   UINT32_MAX

static const char *get_cgroup(const struct rule *r)
{
	return r->cgroup_prefix ? r->cgroup_prefix : "";
}

static int compare_names(const void *a, const void *b, void *rules)
{
	const struct rule *all = rules;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int r = strcmp(all[x].name, all[y].name);

	return r ? r : (x > y) - (x < y);
}

/*
 * Orders by comm, prefix before exact: so a prefix comes before every comm that it is a prefix of.
 */
static int compare_comms(const struct rule *a, const struct rule *b)
{
	int r = memcmp(a->comm, b->comm, sizeof(a->comm));

	return r ? r : (int)a->comm_exact - (int)b->comm_exact;
}

static int compare_matches(const void *a, const void *b, void *rules)
{
	const struct rule *all = rules;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int r = compare_comms(&all[x], &all[y]);

	if (r == 0)
		r = strcmp(get_cgroup(&all[x]), get_cgroup(&all[y]));
	return r ? r : (x > y) - (x < y);
}

static void sort_indices(struct rules *rules, uint32_t *indices, size_t n,
			 int (*compare)(const void *a, const void *b, void *rules))
{
	if (n > 1)
		qsort_r(indices, n, sizeof(*indices), compare, rules->rules);
}

int rules_index_build(struct rules *rules)
{
	size_t space = MAX(rules->count, (size_t)1);

	rules->by_name = calloc(space, sizeof(uint32_t));
	rules->by_comm = calloc(space, sizeof(uint32_t));
	rules->by_cgroup = calloc(space, sizeof(uint32_t));
	if (!rules->by_name || !rules->by_comm || !rules->by_cgroup)
		return -ENOMEM; /* the set's owner frees all three */
	for (uint32_t i = 0; i < rules->count; i++) {
		const struct rule *r = &rules->rules[i];

		if (r->name[0])
			rules->by_name[rules->n_by_name++] = i;
		if (r->comm[0])
			rules->by_comm[rules->n_by_comm++] = i;
		else if (r->cgroup_prefix)
			rules->by_cgroup[rules->n_by_cgroup++] = i;
	}
	sort_indices(rules, rules->by_name, rules->n_by_name, compare_names);
	sort_indices(rules, rules->by_comm, rules->n_by_comm, compare_matches);
	sort_indices(rules, rules->by_cgroup, rules->n_by_cgroup, compare_matches);
	return 0;
}

/*
 * Compares a rule's comm and kind with a comm of `bytes` bytes (at most COMM_MAX), in the order of
 * the sort.
 */
static int compare_with_comm(const struct rule *r, const char *comm, size_t bytes, bool exact)
{
	int c = memcmp(r->comm, comm, bytes);

	if (c == 0 && r->comm[bytes])
		c = 1;
	return c ? c : (int)r->comm_exact - (int)exact;
}

/*
 * Returns the first index in by_comm whose rule is not below the comm (with `above`: is above it).
 */
static size_t find_bound(const struct rules *rules, const char *comm, size_t bytes, bool exact,
			 bool above)
{
	size_t low = 0, high = rules->n_by_comm;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = compare_with_comm(&rules->rules[rules->by_comm[mid]], comm, bytes, exact);

		if (c < 0 || (above && c == 0))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void rules_index_group(const struct rules *rules, const char *comm, size_t bytes, bool exact,
		       size_t *ret_begin, size_t *ret_end)
{
	size_t begin = find_bound(rules, comm, bytes, exact, false), end = begin;

	/* Most ranges are empty or have one rule: only a longer one pays for a second search. */
	if (begin < rules->n_by_comm &&
	    compare_with_comm(&rules->rules[rules->by_comm[begin]], comm, bytes, exact) == 0)
		end = find_bound(rules, comm, bytes, exact, true);
	*ret_begin = begin;
	*ret_end = end;
}

/* Counts those of the `n` sorted rules whose cgroup prefix is not above path[0..bytes]. */
static size_t count_not_above(const struct rules *rules, const uint32_t *sorted, size_t n,
			      const char *path, size_t bytes)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const char *prefix = get_cgroup(&rules->rules[sorted[mid]]);
		int c = strncmp(prefix, path, bytes);

		if (c < 0 || (c == 0 && !prefix[bytes]))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The last prefix that is not above the path is either its longest prefix, or shares only its first
 * bytes: then a shorter matching prefix lies within those bytes. Each step shortens the path to
 * them.
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
		prefix = get_cgroup(&rules->rules[sorted[found - 1]]);
		for (same = 0; same < bytes && prefix[same] == path[same]; same++)
			;
		if (!prefix[same])
			break;
		bytes = same;
	}
	/* Of equal prefixes (a faulty set has them) take the first in the file. */
	while (found > 1 && strcmp(get_cgroup(&rules->rules[sorted[found - 2]]), prefix) == 0)
		found--;
	return found - 1;
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

		if (i == 0 || compare_comms(&all[first], &all[at]) != 0 ||
		    strcmp(get_cgroup(&all[first]), get_cgroup(&all[at])) != 0)
			first = at;
		else
			rules_collect_add(
				c, places[at].match,
				"is also the match of /rules/%u (\"%s\"), so that \"%s\" could "
				"never be chosen; must differ, or be one rule",
				first, all[first].name, all[at].name);
	}
}

/*
 * The state of a search for shadowed rules; within[i] is the rule whose prefix rule i lies within,
 * or NO_RULE.
 */
struct sweep {
	const struct rules *rules;
	uint32_t *within;
};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Finds nested prefixes among sorted rules of the same comm (or of none): they form a stack. */
static void sweep_cgroups(struct sweep *s, const uint32_t *sorted, size_t n)
{
	uint32_t stack[CGROUP_MAX];
	size_t depth = 0;

	for (size_t i = 0; i < n; i++) {
		const struct rule *r = &s->rules->rules[sorted[i]];

		if (!r->cgroup_prefix)
			continue;
		while (depth && !starts_with(r->cgroup_prefix,
					     get_cgroup(&s->rules->rules[stack[depth - 1]])))
			depth--;
		if (depth)
			s->within[sorted[i]] = stack[depth - 1];
		/*
		 * Equal prefixes are faults and end the parse before this; nested ones grow by a
		 * byte at least, so the stack needs at most CGROUP_MAX places.
		 */
		stack[depth++] = sorted[i];
	}
}

/* A range of by_comm in which all rules have the same comm and kind. */
struct group {
	size_t begin, end;
};

/*
 * Returns a rule of the group that one cgroup can match together with `cgroup`: one of the two
 * prefixes lies within the other.
 */
static uint32_t find_compatible(const struct sweep *s, struct group g, const char *cgroup)
{
	const uint32_t *sorted = s->rules->by_comm + g.begin;
	size_t n = g.end - g.begin, at;

	at = rules_index_longest(s->rules, sorted, n, cgroup, strlen(cgroup));
	if (at < n)
		return sorted[at];
	at = count_not_above(s->rules, sorted, n, cgroup, strlen(cgroup));
	if (at < n && starts_with(get_cgroup(&s->rules->rules[sorted[at]]), cgroup))
		return sorted[at];
	return NO_RULE;
}

/*
 * Compares the rules of one group with the groups whose comm prefix theirs lies within, the longest
 * first.
 */
static void sweep_group(struct sweep *s, struct group g, const struct group *stack, size_t depth)
{
	for (size_t i = g.begin; i < g.end; i++) {
		uint32_t at = s->rules->by_comm[i];

		for (size_t d = depth; d > 0 && s->within[at] == NO_RULE; d--)
			s->within[at] =
				find_compatible(s, stack[d - 1], get_cgroup(&s->rules->rules[at]));
	}
}

static struct group find_group(const struct rules *rules, size_t begin)
{
	struct group g = { begin, begin + 1 };

	while (g.end < rules->n_by_comm && compare_comms(&rules->rules[rules->by_comm[begin]],
							 &rules->rules[rules->by_comm[g.end]]) == 0)
		g.end++;
	return g;
}

static void sweep_comms(struct sweep *s)
{
	const struct rules *rules = s->rules;
	struct group stack[COMM_MAX], g;
	size_t depth = 0;

	for (size_t i = 0; i < rules->n_by_comm; i = g.end) {
		const struct rule *r = &rules->rules[rules->by_comm[i]];

		g = find_group(rules, i);
		while (depth &&
		       !starts_with(r->comm,
				    rules->rules[rules->by_comm[stack[depth - 1].begin]].comm))
			depth--;
		sweep_cgroups(s, rules->by_comm + g.begin, g.end - g.begin);
		sweep_group(s, g, stack, depth);
		if (!r->comm_exact)
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
			"\"%s\" lies within the prefix of \"%s\" (/rules/%u): what matches both "
			"goes to \"%s\", the longest match",
			rules->rules[i].name, rules->rules[within[i]].name, within[i],
			rules->rules[i].name);
	}
	return 0;
}
