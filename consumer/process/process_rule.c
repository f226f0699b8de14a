/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/process_rule.h"

#include <string.h>

/* The inputs for judging a sample. */
struct tick {
	const struct ruleset *set; /* the set in force */
	struct cgroups *cgroups;
	const struct sample *record;
	uint64_t cgroup_id;
};

static const char *find_path(const struct tick *t)
{
	return cgroups_path(t->cgroups, t->cgroup_id, t->record->tgid);
}

/*
 * Returns the rule and the comm that the kernel side matched; NULL if it matched no rule of the set
 * in force.
 */
static const struct rules_entry *find_named(const struct tick *t)
{
	const struct sample *s = t->record;

	if (!(s->flags & SAMPLE_MATCHED) || s->generation != t->set->generation ||
	    s->rule >= t->set->rules->n_entries)
		return NULL;
	return &t->set->rules->entries[s->rule];
}

/* Returns whether the kernel side matched a rule of another set. */
static bool is_of_other_set(const struct tick *t)
{
	const struct sample *s = t->record;

	return s->flags & SAMPLE_MATCHED && s->rule != NO_SLOT &&
	       s->generation != t->set->generation;
}

/* Returns the rule of a process with a name that matches no rule. */
static const struct rule *find_by_cgroup(const struct tick *t)
{
	const char *path = t->set->rules->n_by_cgroup ? find_path(t) : NULL;

	return path ? rules_match_cgroup(t->set->rules, path) : NULL;
}

static bool is_its_name(const struct tick *t, const struct rule *rule,
			const struct rules_entry *named)
{
	const struct rules *rules = t->set->rules;

	return rule_has_comm(rule, rules_entry_comm(rules, named),
			     rules->rules[named->rule].comm_exact);
}

/* Judges a sample with a rule of another set by the current state of its process. */
static uint32_t judge_again(const struct tick *t, const struct process *p)
{
	const struct sample *s = t->record;

	if (p && p->generation == t->set->generation)
		return RULE_ID_NONE;
	/* Only the name of the first thread is the name of the process. */
	if (s->tid != s->tgid)
		return RULE_ID_UNKNOWN;
	return ruleset_id(t->set, rules_match(t->set->rules, s->comm, find_path(t)));
}

uint32_t process_rule_at_tick(const struct active_rules *active, struct cgroups *cgroups,
			      const struct sample *record, const struct process *p,
			      uint64_t cgroup_id)
{
	const struct tick t = { active->set, cgroups, record, cgroup_id };
	const struct rule *rule = p ? p->rule : NULL;
	const struct rules_entry *named;

	if (!active->set)
		return RULE_ID_NONE;
	named = find_named(&t);
	if (named && (!rule || !is_its_name(&t, rule, named)))
		rule = rules_match_named(t.set->rules, named, find_path(&t));
	else if (!rule && is_of_other_set(&t))
		return judge_again(&t, p);
	else if (!rule)
		rule = find_by_cgroup(&t);
	return ruleset_id(t.set, rule);
}
