/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_parse.c: parses a text into a rule set. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/rules/rules_keys.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* Stores the value for later: rules need `defaults`, which may come after them in the text. */
static void set_rules(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	p->rules_at = value;
}

static void set_defaults(struct rules_parse_state *p, const struct json_node *value, void *target)
{
	p->defaults_at = value;
}

static void take_rules(struct rules_parse_state *p, const struct json_node *value)
{
	uint32_t n = json_node_elements(value), i = 0;
	struct rules_cursor at = RULES_CURSOR_BEGIN;
	struct rules *rules = p->rules;

	if (n > RULES_MAX) {
		rules_collect_add(
			&p->collect, value,
			"has %u rules; must have at most %u (the further ones were not read)", n,
			RULES_MAX);
		n = RULES_MAX;
	}
	rules->rules = calloc(MAX(n, 1u), sizeof(*rules->rules));
	p->places = calloc(MAX(n, 1u), sizeof(*p->places));
	if (!rules->rules || !p->places) {
		p->collect.error = -ENOMEM;
		return;
	}
	for (const struct json_node *m = json_node_first(value); i < n;
	     m = json_node_next(m), i++) {
		rules->count = i + 1;
		rules_rule_take(p, m, &rules->rules[i]);
		p->places[i] = (struct rules_place){ m, json_node_member(m, "name"),
						     json_node_member(m, "match") };
		if (!p->places[i].match)
			continue;
		rules_cursor_move(&at, p->collect.text, p->places[i].match->offset);
		rules->rules[i].match_line = at.line;
		rules->rules[i].match_column = at.column;
	}
}

#define SET(member) offsetof(struct rules, member)

static const struct rules_key top_keys[] = {
	{ "version", KEY_UINT, .required = true, .min = 1, .max = 1, .offset = SET(version) },
	{ "rules", KEY_ARRAY, .required = true, .right = "an array of rules", .set = set_rules },
	{ "budget_s", KEY_UINT, .min = 1, .max = 3600, .offset = SET(budget_s) },
	{ "defaults", KEY_OBJECT, .right = "an object with when, capture and labels",
	  .set = set_defaults },
};

/* Adds the reason why the text is not JSON. */
static void add_json_fault(struct rules_collect *c, const struct json_fault *fault)
{
	if (fault->offset == c->bytes)
		rules_collect_add_at(c, fault->offset,
				     "is not JSON: ends early; must be one object, closed");
	else if (c->text[fault->offset] == '\0')
		rules_collect_add_at(c, fault->offset, "has a NUL byte; must be JSON text");
	else if (fault->too_deep)
		rules_collect_add_at(c, fault->offset,
				     "is nested too deep; must have at most %d levels",
				     RULES_NESTING);
	else
		rules_syntax_fault(c, fault);
}

static void add_repeated(struct rules_parse_state *p)
{
	for (uint32_t i = 0; i < p->tree.count; i++)
		if (p->tree.nodes[i].repeats)
			rules_collect_add(&p->collect, &p->tree.nodes[i],
					  "is more than once in this object; keep one of them");
}

/* Reads each value by itself, then compares the rules with each other. */
static int check_values(struct rules_parse_state *p)
{
	const struct json_node *root = p->tree.nodes;
	int r;

	p->rules = calloc(1, sizeof(*p->rules));
	if (!p->rules)
		return -ENOMEM;
	p->rules->budget_s = RULES_BUDGET_DEFAULT_S;
	if (!json_node_is(root, JSON_OBJECT)) {
		rules_collect_wrong(&p->collect, root, "an object with version and rules");
		return -EINVAL;
	}
	rules_keys_take(p, root, top_keys, ARRAY_SIZE(top_keys), p->rules);
	rules_rule_defaults(p, p->defaults_at);
	if (p->rules_at)
		take_rules(p, p->rules_at);
	if (p->collect.error)
		return p->collect.error;
	r = rules_index_build(p->rules);
	if (r < 0)
		return r;
	rules_collect_stage(&p->collect);
	rules_index_faults(p->rules, p->places, &p->collect);
	return p->collect.count ? -EINVAL : 0;
}

/* Parses the whole text; leaves the set in p->rules, or the faults in p->collect. */
static int parse_text(struct rules_parse_state *p)
{
	struct rules_collect *c = &p->collect;
	struct json_fault fault;
	int r;

	if (c->bytes > RULES_TEXT_BYTES) {
		rules_collect_add_at(c, 0, "has %zu bytes; must have at most %u", c->bytes,
				     RULES_TEXT_BYTES);
		return -EINVAL;
	}
	r = json_tree_read(c->text, c->bytes, RULES_NESTING, &p->tree, &fault);
	if (r == -EBADMSG) {
		add_json_fault(c, &fault);
		return -EINVAL;
	}
	if (r < 0)
		return r;
	add_repeated(p);
	rules_syntax_halves(c, &p->tree);
	rules_collect_stage(c);
	return check_values(p);
}

static void parse_done(struct rules_parse_state *p)
{
	rules_collect_done(&p->collect);
	json_tree_done(&p->tree);
	rules_free(p->rules);
	free(p->places);
	free(p->defaults.labels);
}

/* Collects the warnings of a set without faults, in a separate collector. */
static int collect_warnings(const struct rules_parse_state *p, struct rules_faults *warnings)
{
	_cleanup_(rules_collect_done) struct rules_collect c = { .text = p->collect.text,
								 .bytes = p->collect.bytes };
	int r;

	rules_warnings_add(p->rules, p->places, &c);
	rules_collect_stage(&c);
	r = rules_index_warnings(p->rules, p->places, &c);
	if (r < 0)
		return r;
	rules_collect_give(&c, warnings);
	return c.error;
}

int rules_parse(const char *text, size_t bytes, struct rules **ret_rules,
		struct rules_faults *faults, struct rules_faults *warnings)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t before =
		bytes >= strlen(mark) && !memcmp(text, mark, strlen(mark)) ? strlen(mark) : 0;
	_cleanup_(parse_done) struct rules_parse_state p = { .collect = { text + before,
									  bytes - before } };
	int r = parse_text(&p);

	if (r == 0 && !p.collect.error)
		r = collect_warnings(&p, warnings);
	if (r == -EINVAL && !p.collect.error)
		rules_collect_give(&p.collect, faults);
	if (p.collect.error)
		return p.collect.error;
	if (r < 0)
		return r;
	*ret_rules = TAKE_PTR(p.rules);
	return 0;
}
