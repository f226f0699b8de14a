/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_parse.c: from a text to a rule set. json-c gives the values, rules_scan.c their places. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "macro.h"
#include "rules_keys.h"

static void take_rule(struct rules_parse_state *p, struct rules_value v, uint32_t i)
{
	rules_rule_take(p, v, &p->rules->rules[i]);
	p->places[i].name = rules_scan_member(&p->scan, v.node, "name");
	p->places[i].match = rules_scan_member(&p->scan, v.node, "match");
}

static void set_rules(struct rules_parse_state *p, struct rules_value v, void *target)
{
	struct rules *rules = target;
	size_t n = json_object_array_length(v.json), i = 0;

	if (n > RULES_MAX) {
		rules_collect_add(
			&p->collect, v.node,
			"has %zu rules; must have at most %u (those behind were not read)", n,
			RULES_MAX);
		n = RULES_MAX;
	}
	rules->rules = calloc(MAX(n, (size_t)1), sizeof(*rules->rules));
	p->places = calloc(MAX(n, (size_t)1), sizeof(*p->places));
	if (!rules->rules || !p->places) {
		p->collect.error = -ENOMEM;
		return;
	}
	for (uint32_t m = rules_scan_first(&p->scan, v.node); m != RULES_NO_NODE && i < n;
	     m = p->scan.nodes[m].next, i++) {
		rules->count = i + 1;
		take_rule(p, (struct rules_value){ json_object_array_get_idx(v.json, i), m },
			  (uint32_t)i);
	}
}

#define SET(member) offsetof(struct rules, member)

static const struct rules_key top_keys[] = {
	{ "version", KEY_UINT, .required = true, .min = 1, .max = 1, .offset = SET(version) },
	{ "rules", KEY_ARRAY, .required = true, .right = "an array of rules", .set = set_rules },
	{ "budget_s", KEY_UINT, .min = 1, .max = 3600, .offset = SET(budget_s) },
};

static void cleanup_tokener(struct json_tokener **t)
{
	if (*t)
		json_tokener_free(*t);
}

static void cleanup_json(struct json_object **o)
{
	json_object_put(*o);
}

/* Reads the text with json-c. 0, -ENOMEM, or -EINVAL with the fault collected. */
static int tokenize(struct rules_parse_state *p, struct json_object **ret_json)
{
	_cleanup_(cleanup_tokener) struct json_tokener *t = NULL;
	_cleanup_(cleanup_json) struct json_object *json = NULL;
	enum json_tokener_error error;

	/* json-c counts the scalars in the innermost container as a level of their own. */
	t = json_tokener_new_ex(RULES_NESTING + 1);
	if (!t)
		return -ENOMEM;
	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	json = json_tokener_parse_ex(t, p->scan.text, (int)p->scan.bytes);
	error = json_tokener_get_error(t);
	if (error == json_tokener_success) {
		*ret_json = TAKE_PTR(json);
		return 0;
	}
	if (error == json_tokener_continue)
		rules_collect_add_at(&p->collect, p->scan.bytes,
				     "is not JSON: ends early; must be one object, closed");
	else if (error == json_tokener_error_depth)
		rules_collect_add_at(&p->collect, json_tokener_get_parse_end(t),
				     "is nested too deep; must have at most %d levels",
				     RULES_NESTING);
	else
		rules_collect_add_at(&p->collect, json_tokener_get_parse_end(t),
				     "is not JSON: %s; must be RFC 8259",
				     json_tokener_error_desc(error));
	return -EINVAL;
}

/* Reads what stands alone, then what rules say against each other. */
static int check(struct rules_parse_state *p, struct json_object *json)
{
	struct rules_value root = { json, 0 };
	int r;

	rules_collect_stage(&p->collect);
	p->rules = calloc(1, sizeof(*p->rules));
	if (!p->rules)
		return -ENOMEM;
	p->rules->budget_s = RULES_BUDGET_DEFAULT_S;
	if (!json_object_is_type(json, json_type_object)) {
		rules_collect_wrong(&p->collect, 0, "an object with version and rules");
		return -EINVAL;
	}
	rules_keys_take(p, root, top_keys, ARRAY_SIZE(top_keys), p->rules);
	r = rules_index_build(p->rules);
	if (r < 0)
		return r;
	rules_collect_stage(&p->collect);
	rules_index_faults(p->rules, p->places, &p->collect);
	return p->collect.count ? -EINVAL : 0;
}

/* All of it, up to the set or the collected faults. */
static int run(struct rules_parse_state *p)
{
	_cleanup_(cleanup_json) struct json_object *json = NULL;
	const char *nul;
	int r;

	nul = memchr(p->scan.text, '\0', p->scan.bytes);
	if (nul) {
		rules_collect_add_at(&p->collect, (size_t)(nul - p->scan.text),
				     "has a NUL byte; must be JSON text");
		return -EINVAL;
	}
	r = tokenize(p, &json);
	if (r < 0)
		return r;
	r = rules_scan_run(&p->scan, p->scan.text, p->scan.bytes, &p->collect);
	if (r < 0)
		return r;
	return check(p, json);
}

static void parse_done(struct rules_parse_state *p)
{
	rules_collect_done(&p->collect);
	rules_scan_done(&p->scan);
	rules_free(p->rules);
	free(p->places);
}

/* The warnings of a set that stands, collected by a collector of their own. */
static int warn(const struct rules_parse_state *p, struct rules_faults *warnings)
{
	_cleanup_(rules_collect_done) struct rules_collect c = { .scan = &p->scan };
	int r;

	r = rules_index_warnings(p->rules, p->places, &c);
	if (r < 0)
		return r;
	rules_collect_give(&c, warnings);
	return c.error;
}

int rules_parse(const char *text, size_t bytes, struct rules **ret_rules,
		struct rules_faults *faults, struct rules_faults *warnings)
{
	_cleanup_(parse_done) struct rules_parse_state p = { 0 };
	int r;

	p.scan = (struct rules_scan){ .text = text, .bytes = MIN(bytes, (size_t)RULES_TEXT_BYTES) };
	p.collect.scan = &p.scan;
	if (bytes > RULES_TEXT_BYTES) {
		rules_collect_add_at(&p.collect, 0, "has %zu bytes; must have at most %u", bytes,
				     RULES_TEXT_BYTES);
		r = -EINVAL;
	} else {
		r = run(&p);
	}
	if (r == 0 && !p.collect.error)
		r = warn(&p, warnings);
	if (r == -EINVAL && !p.collect.error)
		rules_collect_give(&p.collect, faults);
	if (p.collect.error)
		return p.collect.error;
	if (r < 0)
		return r;
	*ret_rules = TAKE_PTR(p.rules);
	return 0;
}
