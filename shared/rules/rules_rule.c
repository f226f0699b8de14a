/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_rule.c: reads one rule; docs/rules.md describes it to operators. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/rules/rules_keys.h"
#include "shared/tools/macro.h"

/* match */

enum { MATCH_COMM, MATCH_COMM_PREFIX, MATCH_CGROUP_PREFIX };

/*
 * Allocates `n` names. Frees those of an earlier call: set_match reports a match with both comm and
 * comm_prefix.
 */
static bool make_comms(struct rules_parse_state *p, struct rule *r, uint32_t n, bool exact)
{
	free(r->comms);
	r->comms = calloc(MAX(n, 1u), sizeof(*r->comms));
	r->n_comms = 0;
	r->comm_exact = exact;
	if (!r->comms)
		p->collect.error = -ENOMEM;
	return r->comms;
}

#define COMM_RIGHT "a string of 1 to 15 bytes without NUL (the kernel keeps 15 of a name)"

static void take_comm(struct rules_parse_state *p, const struct json_node *value, struct rule *r)
{
	if (rules_keys_is_string(value, 1, RULE_COMM_BYTES - 1))
		memcpy(r->comms[r->n_comms++], value->text, value->bytes);
	else
		rules_collect_wrong(&p->collect, value, COMM_RIGHT);
}

static void set_comm(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	uint32_t n = json_node_is(value, JSON_ARRAY) ? json_node_elements(value) : 1;
	struct rule *r = target;

	if (!n || n > RULE_COMMS_MAX) {
		rules_collect_add(&p->collect, value, "has %u names; must have 1 to %u", n,
				  RULE_COMMS_MAX);
		return;
	}
	if (!make_comms(p, r, n, true))
		return;
	if (!json_node_is(value, JSON_ARRAY))
		take_comm(p, value, r);
	else
		for (const struct json_node *m = json_node_first(value); m; m = json_node_next(m))
			take_comm(p, m, r);
	p->n_comms += r->n_comms;
	if (p->n_comms > RULES_MAX && p->n_comms - r->n_comms <= RULES_MAX)
		rules_collect_add(&p->collect, value,
				  "brings the set to %u names; must have at most %u", p->n_comms,
				  RULES_MAX);
}

static void set_comm_prefix(struct rules_parse_state *p, const struct json_node *value,
			    void *target)
{
	struct rule *r = target;

	if (make_comms(p, r, 1, false))
		take_comm(p, value, r);
}

#define CGROUP_RIGHT "a path of 1 to 255 bytes below the cgroup2 mount, beginning with /"

static void set_cgroup_prefix(struct rules_parse_state *p, const struct json_node *value,
			      void *target)
{
	const char *path = value->text;
	struct rule *r = target;

	if (path[0] != '/') {
		rules_collect_wrong(&p->collect, value, CGROUP_RIGHT);
		return;
	}
	r->cgroup_prefix = strdup(path);
	if (!r->cgroup_prefix)
		p->collect.error = -ENOMEM;
}

static const struct rules_key match_keys[] = {
	[MATCH_COMM] = { "comm", KEY_ANY, .right = COMM_RIGHT, .set = set_comm },
	[MATCH_COMM_PREFIX] = { "comm_prefix", KEY_ANY, .right = COMM_RIGHT,
				.set = set_comm_prefix },
	[MATCH_CGROUP_PREFIX] = { "cgroup_prefix", KEY_STRING, .min = 1, .max = 255,
				  .right = CGROUP_RIGHT, .set = set_cgroup_prefix },
	{ "unit", KEY_NONE, .right = "\"cgroup_prefix\": \"/system.slice/NAME.service\"" },
	{ "service", KEY_NONE, .right = "\"cgroup_prefix\": \"/system.slice/NAME.service\"" },
	{ "cgroup", KEY_NONE, .right = "\"cgroup_prefix\": \"/PATH\"" },
};

static void set_match(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	const uint32_t both = 1u << MATCH_COMM | 1u << MATCH_COMM_PREFIX;
	size_t before = p->collect.count;
	struct rule *r = target;
	uint32_t seen;

	seen = rules_keys_take(p, value, match_keys, ARRAY_SIZE(match_keys), r);
	if (seen == 0)
		rules_collect_add(&p->collect, value,
				  "names nothing; must have comm or comm_prefix, or cgroup_prefix");
	if ((seen & both) == both)
		rules_collect_add(&p->collect, value,
				  "has comm and comm_prefix; must have one of the two");
	if (p->collect.count == before)
		return;
	/* A match with a fault must not be compared with the matches of other rules. */
	r->n_comms = 0;
	free(r->cgroup_prefix);
	r->cgroup_prefix = NULL;
}

/* capture */

#define SCOPE_RIGHT "\"cgroup\" or \"process\""

static void set_scope(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	const char *scope = value->text;
	struct rule *r = target;

	if (strcmp(scope, "process") == 0)
		r->scope_process = true;
	else if (strcmp(scope, "cgroup") == 0)
		r->scope_process = false;
	else
		rules_collect_wrong(&p->collect, value, SCOPE_RIGHT);
}

#define UNWIND_RIGHT "\"auto\", \"fp\" or \"table\""

static void set_unwind(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	const char *word = value->text;
	struct rule *r = target;

	for (int i = 0; i < RULE_UNWIND_COUNT_; i++) {
		if (strcmp(word, rule_unwind_name((enum rule_unwind)i)) != 0)
			continue;
		r->unwind = (enum rule_unwind)i;
		return;
	}
	rules_collect_wrong(&p->collect, value, UNWIND_RIGHT);
}

static void set_signals(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	const uint32_t alone = RULES_SIGNALS_AUTO;
	uint32_t n = json_node_elements(value), all = 0;
	struct rule *r = target;

	if (n == 0 || n > SIGNAL_COUNT_) {
		rules_collect_add(&p->collect, value, "has %u elements; must be %s", n,
				  rules_signals_right);
		return;
	}
	for (const struct json_node *m = json_node_first(value); m; m = json_node_next(m)) {
		uint32_t bit =
			json_node_is(m, JSON_STRING) ? rules_signal_bit(m->text, m->bytes) : 0;

		if (bit == 0 || (all & bit) || ((all | bit) & alone && n > 1))
			rules_collect_wrong(&p->collect, m, rules_signals_right);
		all |= bit;
	}
	r->signals_auto = all & alone;
	r->signals = all & (alone - 1);
}

#define RULE(member) offsetof(struct rule, member)

static const struct rules_key capture_keys[] = {
	{ "pre_ms", KEY_UINT, .min = 0, .max = 30000, .offset = RULE(pre_ms) },
	{ "during_ms", KEY_UINT, .min = 100, .max = 60000, .offset = RULE(during_ms) },
	{ "cooldown_ms", KEY_UINT, .min = 0, .max = 3600000, .offset = RULE(cooldown_ms) },
	{ "scope", KEY_STRING, .max = 64, .right = SCOPE_RIGHT, .set = set_scope },
	{ "signals", KEY_ARRAY, .right = rules_signals_right, .set = set_signals },
	{ "unwind", KEY_STRING, .max = 64, .right = UNWIND_RIGHT, .set = set_unwind },
	{ "budget_s", KEY_UINT, .min = 1, .max = 3600, .offset = RULE(budget_s) },
};

static void set_capture(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	rules_keys_take(p, value, capture_keys, ARRAY_SIZE(capture_keys), target);
}

/* labels */

#define LABEL_KEY_RIGHT "a key of 1 to 63 bytes: a letter or _, then letters, digits, _ . -"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_label_key(const char *key, size_t bytes)
{
	if (bytes == 0 || bytes >= RULE_LABEL_KEY_BYTES || !is_letter(key[0]))
		return false;
	for (size_t i = 1; i < bytes; i++)
		if (!is_letter(key[i]) && !is_digit(key[i]) && key[i] != '.' && key[i] != '-')
			return false;
	return true;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

static void take_label(struct rules_parse_state *p, const struct json_node *member, struct rule *r)
{
	struct rule_label *label;
	uint32_t same = 0;

	if (!is_label_key(member->key, member->key_bytes)) {
		rules_collect_add(&p->collect, member, "is no label; must be %s", LABEL_KEY_RIGHT);
		return;
	}
	if (!rules_keys_is_string(member, 0, RULE_LABEL_VALUE_BYTES - 1) ||
	    has_control(member->text)) {
		rules_collect_wrong(&p->collect, member,
				    "a string of at most 255 bytes without control characters");
		return;
	}
	while (same < r->n_labels && strcmp(r->labels[same].key, member->key) != 0)
		same++;
	label = &r->labels[same];
	memcpy(label->key, member->key, member->key_bytes + 1);
	memcpy(label->value, member->text, member->bytes + 1);
	r->n_labels += same == r->n_labels;
}

static size_t count_label_bytes(const struct rule *r)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < r->n_labels; i++)
		bytes += strlen(r->labels[i].key) + strlen(r->labels[i].value);
	return bytes;
}

static void set_labels(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	uint32_t n = value->children;
	struct rule *r = target;
	struct rule_label *labels;

	if (n > RULE_LABELS_MAX) {
		rules_collect_add(&p->collect, value, "has %u labels; must have at most %d", n,
				  RULE_LABELS_MAX);
		return;
	}
	if (n == 0)
		return;
	labels = reallocarray(r->labels, r->n_labels + n, sizeof(*labels));
	if (!labels) {
		p->collect.error = -ENOMEM;
		return;
	}
	r->labels = labels;
	for (const struct json_node *m = json_node_first(value); m; m = json_node_next(m))
		take_label(p, m, r);
	if (r->n_labels > RULE_LABELS_MAX)
		rules_collect_add(&p->collect, value,
				  "has %u labels with those of /defaults/labels; must have at most "
				  "%d",
				  r->n_labels, RULE_LABELS_MAX);
	if (count_label_bytes(r) > RULE_LABELS_BYTES)
		rules_collect_add(&p->collect, value,
				  "has %zu bytes of keys and values; must have at most %d, because "
				  "every line of the rule carries them",
				  count_label_bytes(r), RULE_LABELS_BYTES);
}

/* the rule */

#define NAME_RIGHT "1 to 64 bytes: a small letter, then small letters, digits, _ and -"

static void set_name(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	const char *name = value->text;
	struct rule *r = target;
	bool good = name[0] >= 'a' && name[0] <= 'z';

	for (const char *c = name; *c; c++)
		good &= (*c >= 'a' && *c <= 'z') || is_digit(*c) || *c == '_' || *c == '-';
	if (good)
		snprintf(r->name, sizeof(r->name), "%s", name);
	else
		rules_collect_wrong(&p->collect, value, NAME_RIGHT);
}

#define ON_RIGHT "\"exec\" or \"oom_kill\""

static void set_on(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	struct rule *r = target;

	r->on_exec = strcmp(value->text, "exec") == 0;
	r->on_oom_kill = strcmp(value->text, "oom_kill") == 0;
	if (!r->on_exec && !r->on_oom_kill)
		rules_collect_wrong(&p->collect, value, ON_RIGHT);
}

static const struct rules_key rule_keys[] = {
	{ "name", KEY_STRING, .required = true, .min = 1, .max = RULE_NAME_BYTES - 1,
	  .right = NAME_RIGHT, .set = set_name },
	{ "match", KEY_OBJECT, .required = true,
	  .right = "an object with comm or comm_prefix, cgroup_prefix, or both", .set = set_match },
	{ "when", KEY_ARRAY, .right = "an array of thresholds", .set = rules_when_set },
	{ "on", KEY_STRING, .max = 64, .right = ON_RIGHT, .set = set_on },
	{ "capture", KEY_OBJECT, .right = "an object", .set = set_capture },
	{ "labels", KEY_OBJECT, .right = "an object of strings", .set = set_labels },
};

/*
 * Adds a fault to "exec" without a name: the BPF program finds the rule of an execve by the new
 * name.
 */
static void check_exec(struct rules_parse_state *p, const struct json_node *value,
		       const struct rule *r)
{
	if (r->on_exec && r->cgroup_prefix && !r->n_comms)
		rules_collect_add(
			&p->collect, json_node_member(value, "on"),
			"is \"exec\" without a name to wait for; must be together with comm or "
			"comm_prefix in match");
}

/* The value of pre_ms until a key sets it. */
#define PRE_MS_NONE UINT32_MAX

static uint32_t default_pre_ms(const struct rule *r)
{
	uint32_t window_ms = r->n_when ? 0 : RULES_WINDOW_DEFAULT_MS;

	for (uint32_t i = 0; i < r->n_when; i++)
		window_ms = MAX(window_ms, r->when[i].stuck ? RULE_STUCK_MS : r->when[i].window_ms);
	return RULES_PRE_CALM_MS + window_ms;
}

static const struct rules_key defaults_keys[] = {
	{ "when", KEY_ARRAY, .right = "an array of thresholds", .set = rules_when_set },
	{ "capture", KEY_OBJECT, .right = "an object", .set = set_capture },
	{ "labels", KEY_OBJECT, .right = "an object of strings", .set = set_labels },
};

void rules_rule_defaults(struct rules_parse_state *p, const struct json_node *value)
{
	p->defaults = (struct rule){ .pre_ms = PRE_MS_NONE,
				     .during_ms = 3000,
				     .cooldown_ms = 30000,
				     .budget_s = RULES_BUDGET_DEFAULT_S,
				     .signals_auto = true };
	if (value)
		rules_keys_take(p, value, defaults_keys, ARRAY_SIZE(defaults_keys), &p->defaults);
}

/*
 * Copies the labels of `defaults` into the rule. Labels of the rule with the same key replace them.
 */
static void copy_labels(struct rules_parse_state *p, struct rule *r)
{
	size_t bytes = r->n_labels * sizeof(*r->labels);

	r->labels = NULL;
	if (!bytes)
		return;
	r->labels = malloc(bytes);
	if (r->labels)
		memcpy(r->labels, p->defaults.labels, bytes);
	else
		p->collect.error = -ENOMEM;
	r->n_labels = r->labels ? r->n_labels : 0;
}

void rules_rule_take(struct rules_parse_state *p, const struct json_node *value,
		     struct rule *ret_rule)
{
	*ret_rule = p->defaults;
	copy_labels(p, ret_rule);
	if (!json_node_is(value, JSON_OBJECT)) {
		rules_collect_wrong(&p->collect, value, "an object with name and match");
		return;
	}
	rules_keys_take(p, value, rule_keys, ARRAY_SIZE(rule_keys), ret_rule);
	if (ret_rule->pre_ms == PRE_MS_NONE)
		ret_rule->pre_ms = default_pre_ms(ret_rule);
	check_exec(p, value, ret_rule);
}
