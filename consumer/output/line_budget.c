/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/line_budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/macro.h"

#define MINUTE_NS (60 * NSEC_PER_SEC)

static const char *const kind_names[] = {
	[LINE_MATCH] = "process.match",
	[LINE_EXIT] = "process.exit",
	[LINE_LEFT] = "process.left",
	[LINE_UNWIND] = "process.unwind",
	[LINE_WATCH_START] = "watch.start",
	[LINE_WATCH_STOP] = "watch.stop",
	[LINE_OOM] = "oom",
};
_Static_assert(ARRAY_SIZE(kind_names) == LINE_KIND_COUNT_, "a name per kind");

const char *line_budget_kind_name(enum line_kind kind)
{
	return kind_names[kind];
}

void line_budget_init(struct line_budget *b, uint64_t max)
{
	*b = (struct line_budget){ .max = max };
	idmap_init(&b->rules, RULES_MAX + 1);
}

static void free_rule(void *value)
{
	struct line_rule *rule = value;

	free(rule->owners);
	free(rule);
}

void line_budget_done(struct line_budget *b)
{
	idmap_free(&b->rules, free_rule);
}

/* Returns the rule's entry of this minute, creating it if needed; NULL without memory. */
static struct line_rule *find_or_make_rule(struct line_budget *b, const char *name)
{
	struct line_rule *rule = idmap_get(&b->rules, idmap_text_key(name));

	if (rule)
		return rule;
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return NULL;
	snprintf(rule->name, sizeof(rule->name), "%s", name);
	if (idmap_put(&b->rules, idmap_text_key(name), rule) < 0) {
		free(rule);
		return NULL;
	}
	return rule;
}

static struct line_owner *find_owner(const struct line_rule *rule, uint64_t owner)
{
	for (size_t i = 0; i < rule->n_owners; i++)
		if (rule->owners[i].owner == owner)
			return &rule->owners[i];
	return NULL;
}

/*
 * Whether an owner may write one more line: up to half of the lines that the others leave, rounded
 * up so that the last line can be written.
 */
static bool has_room(const struct line_budget *b, const struct line_rule *rule,
		     const struct line_owner *owner)
{
	uint64_t mine = owner ? owner->written : 0, others = rule->written - mine;

	return others < b->max && mine < (b->max - others + 1) / 2;
}

bool line_budget_has_room(const struct line_budget *b, const char *name, uint64_t owner)
{
	const struct line_rule *rule = idmap_get(&b->rules, idmap_text_key(name));

	return !rule || has_room(b, rule, find_owner(rule, owner));
}

static void leave_out(struct line_budget *b, struct line_rule *rule, enum line_kind kind)
{
	if (rule)
		rule->left_out[kind]++;
	b->left_out++;
}

void line_budget_leave_out(struct line_budget *b, const char *name, enum line_kind kind)
{
	leave_out(b, find_or_make_rule(b, name), kind);
}

static struct line_owner *add_owner(struct line_rule *rule, uint64_t owner)
{
	struct line_owner *more = reallocarray(rule->owners, rule->n_owners + 1, sizeof(*more));

	if (!more)
		return NULL;
	rule->owners = more;
	more[rule->n_owners] = (struct line_owner){ .owner = owner };
	return &more[rule->n_owners++];
}

bool line_budget_take(struct line_budget *b, const char *name, uint64_t owner, enum line_kind kind)
{
	struct line_rule *rule = find_or_make_rule(b, name);
	struct line_owner *mine = rule ? find_owner(rule, owner) : NULL;

	if (rule && has_room(b, rule, mine)) {
		mine = mine ? mine : add_owner(rule, owner);
		if (mine) {
			mine->written++;
			rule->written++;
			return true;
		}
	}
	leave_out(b, rule, kind);
	return false;
}

static bool some_left_out(const struct line_rule *rule)
{
	for (int i = 0; i < LINE_KIND_COUNT_; i++)
		if (rule->left_out[i])
			return true;
	return false;
}

void line_budget_turn(struct line_budget *b, uint64_t now_ns, bool end,
		      void (*call)(void *context, const struct line_rule *rule), void *context)
{
	uint64_t minute = now_ns / MINUTE_NS, key;
	struct line_rule *rule;

	if (b->minute == minute && !end)
		return;
	b->minute = minute;
	idmap_for_each (&b->rules, i, key, rule)
		if (some_left_out(rule))
			call(context, rule);
	idmap_free(&b->rules, free_rule);
}

uint64_t line_budget_rest_ns(const struct line_budget *b, uint64_t now_ns)
{
	uint64_t over_ns = (b->minute + 1) * MINUTE_NS;

	return over_ns > now_ns ? over_ns - now_ns : 1;
}
