/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.c: frees, matches, compares and writes a parsed rule set, and names the values of its
 * enums.
 */
#include "shared/rules/rules.h"

#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/rules/rules_internal.h"
#include "shared/tools/array.h"
#include "shared/tools/macro.h"

const char *rules_resource_name(enum resource resource)
{
	static const char *const names[] = {
		[RESOURCE_CPU] = "cpu",
		[RESOURCE_MEMORY] = "memory",
		[RESOURCE_IO] = "io",
	};

	_Static_assert(ARRAY_SIZE(names) == RESOURCE_COUNT_, "a name per resource");
	return names[resource];
}

const char *rules_signal_name(enum signal_bit signal)
{
	static const char *const names[] = {
#define SIGNAL(id, json, help) [SIGNAL_##id] = (json),
#include "shared/abi/signals.def"
#undef SIGNAL
	};

	_Static_assert(ARRAY_SIZE(names) == SIGNAL_COUNT_ && SIGNAL_COUNT_ <= 32,
		       "a name and a bit per signal");
	return names[signal];
}

static bool is_word(const char *word, const char *name, size_t bytes)
{
	return strlen(word) == bytes && !memcmp(word, name, bytes);
}

uint32_t rules_signal_bit(const char *name, size_t bytes)
{
	if (is_word("auto", name, bytes))
		return RULES_SIGNALS_AUTO;
	for (unsigned int i = 0; i < SIGNAL_COUNT_; i++)
		if (is_word(rules_signal_name((enum signal_bit)i), name, bytes))
			return 1u << i;
	return 0;
}

const char rules_signals_right[] = "[\"auto\"], or a non-empty array without repeats of:"
#define SIGNAL(id, json, help) " " json
#include "shared/abi/signals.def"
#undef SIGNAL
	;

void rules_free(struct rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->count; i++) {
		free(rules->rules[i].comms);
		free(rules->rules[i].cgroup_prefix);
		free(rules->rules[i].labels);
	}
	free(rules->rules);
	free(rules->entries);
	free(rules->by_comm);
	free(rules->by_cgroup);
	free(rules->by_name);
	free(rules);
}

bool rule_has_comm(const struct rule *rule, const char *comm, bool exact)
{
	for (uint32_t i = 0; i < rule->n_comms && rule->comm_exact == exact; i++)
		if (!strcmp(rule->comms[i], comm))
			return true;
	return false;
}

static const struct rule *find_best(const struct rules *rules, const uint32_t *sorted, size_t n,
				    const char *path)
{
	size_t at;

	if (n == 0)
		return NULL;
	at = rules_index_longest(rules, sorted, n, path, strlen(path));
	return at < n ? &rules->rules[rules->entries[sorted[at]].rule] : NULL;
}

static const struct rule *match_comm(const struct rules *rules, const char *comm, size_t bytes,
				     bool exact, const char *path)
{
	size_t begin, end;

	rules_index_group(rules, comm, bytes, exact, &begin, &end);
	return find_best(rules, rules->by_comm + begin, end - begin, path);
}

/* Finds the rule for a process name. `comm` is the whole name (`exact`) or its beginning. */
static const struct rule *match_name(const struct rules *rules, const char *comm, bool exact,
				     const char *cgroup_path)
{
	const char *path = cgroup_path ? cgroup_path : ""; /* only an absent prefix matches it */
	size_t bytes = strnlen(comm, RULE_COMM_BYTES - 1);
	const struct rule *found = NULL;

	if (rules->n_by_comm && bytes && exact)
		found = match_comm(rules, comm, bytes, true, path);
	for (; rules->n_by_comm && bytes && !found; bytes--)
		found = match_comm(rules, comm, bytes, false, path);
	return found ? found : find_best(rules, rules->by_cgroup, rules->n_by_cgroup, path);
}

const struct rule *rules_match(const struct rules *rules, const char *comm, const char *cgroup_path)
{
	return match_name(rules, comm, true, cgroup_path);
}

const struct rule *rules_match_named(const struct rules *rules, const struct rules_entry *named,
				     const char *cgroup_path)
{
	return match_name(rules, rules_entry_comm(rules, named),
			  rules->rules[named->rule].comm_exact, cgroup_path);
}

const struct rule *rules_match_cgroup(const struct rules *rules, const char *cgroup_path)
{
	return find_best(rules, rules->by_cgroup, rules->n_by_cgroup, cgroup_path);
}

const struct rule *rules_find(const struct rules *rules, const char *name)
{
	size_t at = LOWER_BOUND(i, 0, rules->n_by_name,
				strcmp(rules->rules[rules->by_name[i]].name, name) < 0);
	const struct rule *r = at < rules->n_by_name ? &rules->rules[rules->by_name[at]] : NULL;

	return r && strcmp(r->name, name) == 0 ? r : NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_when(const struct rule *a, const struct rule *b)
{
	if (a->n_when != b->n_when)
		return false;
	for (uint32_t i = 0; i < a->n_when; i++) {
		const struct rule_when *x = &a->when[i], *y = &b->when[i];

		if (x->quiet != y->quiet || x->stuck != y->stuck || x->milli_pct != y->milli_pct ||
		    x->resource != y->resource || x->full != y->full ||
		    x->stall_ms != y->stall_ms || x->window_ms != y->window_ms)
			return false;
	}
	return true;
}

static bool same_labels(const struct rule *a, const struct rule *b)
{
	if (a->n_labels != b->n_labels)
		return false;
	for (uint32_t i = 0; i < a->n_labels; i++)
		if (strcmp(a->labels[i].key, b->labels[i].key) != 0 ||
		    strcmp(a->labels[i].value, b->labels[i].value) != 0)
			return false;
	return true;
}

static bool same_comms(const struct rule *a, const struct rule *b)
{
	if (a->n_comms != b->n_comms || a->comm_exact != b->comm_exact)
		return false;
	for (uint32_t i = 0; i < a->n_comms; i++)
		if (strcmp(a->comms[i], b->comms[i]) != 0)
			return false;
	return true;
}

bool rule_equal(const struct rule *a, const struct rule *b)
{
	return same_comms(a, b) && same_text(a->cgroup_prefix, b->cgroup_prefix) &&
	       a->on_exec == b->on_exec && a->on_oom_kill == b->on_oom_kill &&
	       a->scope_process == b->scope_process && a->signals_auto == b->signals_auto &&
	       a->unwind == b->unwind && a->signals == b->signals && a->pre_ms == b->pre_ms &&
	       a->during_ms == b->during_ms && a->cooldown_ms == b->cooldown_ms &&
	       a->budget_s == b->budget_s && same_when(a, b) && same_labels(a, b);
}

static void write_match(const struct rule *r, struct jsonw *w)
{
	jsonw_object(w, "match");
	if (r->n_comms == 1)
		jsonw_string(w, r->comm_exact ? "comm" : "comm_prefix", r->comms[0]);
	if (r->n_comms > 1) {
		jsonw_array(w, "comm");
		for (uint32_t i = 0; i < r->n_comms; i++)
			jsonw_string(w, NULL, r->comms[i]);
		jsonw_array_end(w);
	}
	if (r->cgroup_prefix)
		jsonw_string(w, "cgroup_prefix", r->cgroup_prefix);
	jsonw_object_end(w);
}

static void write_pressure(const struct rule_when *t, struct jsonw *w)
{
	jsonw_string(w, "pressure", rules_resource_name(t->resource));
	/* Rounds down; the parser rounds up, so that parsing the text again gives the same ms. */
	if (t->percent)
		jsonw_milli(w, t->full ? "full_pct" : "some_pct",
			    (int64_t)t->stall_ms * 100000 / t->window_ms);
	else
		jsonw_u64(w, t->full ? "full_ms" : "some_ms", t->stall_ms);
}

static void write_when(const struct rule *r, struct jsonw *w)
{
	jsonw_array(w, "when");
	for (uint32_t i = 0; i < r->n_when; i++) {
		const struct rule_when *t = &r->when[i];

		jsonw_object(w, NULL);
		if (t->stuck)
			jsonw_milli(w, "stuck_threads_pct", t->milli_pct);
		else if (t->quiet)
			jsonw_milli(w, "quiet_pct", t->milli_pct);
		else
			write_pressure(t, w);
		if (!t->stuck)
			jsonw_u64(w, "window_ms", t->window_ms);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static void write_signals(const struct rule *r, struct jsonw *w)
{
	jsonw_array(w, "signals");
	if (r->signals_auto)
		jsonw_string(w, NULL, "auto");
	for (unsigned int i = 0; i < SIGNAL_COUNT_; i++)
		if (r->signals & 1u << i)
			jsonw_string(w, NULL, rules_signal_name((enum signal_bit)i));
	jsonw_array_end(w);
}

const char *rule_unwind_name(enum rule_unwind unwind)
{
	static const char *const names[RULE_UNWIND_COUNT_] = { "auto", "fp", "table" };

	return names[unwind];
}

static void write_capture(const struct rule *r, struct jsonw *w)
{
	jsonw_object(w, "capture");
	jsonw_u64(w, "pre_ms", r->pre_ms);
	jsonw_u64(w, "during_ms", r->during_ms);
	jsonw_u64(w, "cooldown_ms", r->cooldown_ms);
	jsonw_string(w, "scope", r->scope_process ? "process" : "cgroup");
	write_signals(r, w);
	jsonw_string(w, "unwind", rule_unwind_name(r->unwind));
	jsonw_u64(w, "budget_s", r->budget_s);
	jsonw_object_end(w);
}

static void write_rule(const struct rule *r, struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "name", r->name);
	write_match(r, w);
	write_when(r, w);
	if (r->on_exec)
		jsonw_string(w, "on", "exec");
	if (r->on_oom_kill)
		jsonw_string(w, "on", "oom_kill");
	write_capture(r, w);
	jsonw_object(w, "labels");
	for (uint32_t i = 0; i < r->n_labels; i++)
		jsonw_string_key(w, r->labels[i].key, r->labels[i].value);
	jsonw_object_end(w);
	jsonw_object_end(w);
}

void rules_write(const struct rules *rules, struct jsonw *w, const char *key)
{
	jsonw_object(w, key);
	jsonw_u64(w, "version", rules->version);
	jsonw_u64(w, "budget_s", rules->budget_s);
	jsonw_array(w, "rules");
	for (size_t i = 0; i < rules->count; i++)
		write_rule(&rules->rules[i], w);
	jsonw_array_end(w);
	jsonw_object_end(w);
}
