/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_testing.h: a parse with its lists, and the checks of the tests of rules. */
#ifndef TROCAR_TESTS_UNIT_SHARED_RULES_RULES_TESTING_H
#define TROCAR_TESTS_UNIT_SHARED_RULES_RULES_TESTING_H

#include "tests/unit/shared/unit_testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shared/rules/rules.h"
#include "shared/tools/cleanup.h"

struct parsed {
	struct rules *rules;
	struct rules_faults faults, warnings;
	int r;
};

static inline void parsed_done(struct parsed *p)
{
	rules_free(p->rules);
	rules_faults_done(&p->faults);
	rules_faults_done(&p->warnings);
}

#define _cleanup_parsed_ _cleanup_(parsed_done)

/* From a buffer of the exact size, so that ASan sees a read behind it. */
static inline struct parsed parse_n(const char *text, size_t bytes)
{
	_cleanup_free_ char *exact = malloc(bytes ? bytes : 1);
	struct parsed p = { 0 };

	assert_non_null(exact);
	memcpy(exact, text, bytes);
	p.r = rules_parse(exact, bytes, &p.rules, &p.faults, &p.warnings);
	return p;
}

static inline struct parsed parse(const char *text)
{
	return parse_n(text, strlen(text));
}

/* A whole text around the elements of "rules". */
static inline struct parsed parse_rules(const char *elements)
{
	_cleanup_free_ char *text = NULL;

	assert_true(asprintf(&text, "{\"version\":1,\"rules\":[%s]}", elements) > 0);
	return parse(text);
}

static inline void assert_good(const struct parsed *p)
{
	for (size_t i = 0; i < p->faults.kept; i++)
		print_error("%s: %s\n", p->faults.items[i].pointer, p->faults.items[i].message);
	assert_int_equal(p->r, 0);
	assert_non_null(p->rules);
	assert_int_equal(p->faults.count, 0);
}

/* The i-th fault is at `pointer` and contains `part`. */
static inline void assert_fault(const struct parsed *p, size_t i, const char *pointer,
				const char *part)
{
	assert_int_equal(p->r, -EINVAL);
	assert_null(p->rules);
	assert_true(i < p->faults.kept);
	assert_string_equal(p->faults.items[i].pointer, pointer);
	if (!strstr(p->faults.items[i].message, part))
		fail_msg("\"%s\" lacks \"%s\"", p->faults.items[i].message, part);
}

/* Exactly one fault. */
static inline void assert_only_fault(const struct parsed *p, const char *pointer, const char *part)
{
	for (size_t i = 1; i < p->faults.kept; i++)
		print_error("%s: %s\n", p->faults.items[i].pointer, p->faults.items[i].message);
	assert_fault(p, 0, pointer, part);
	assert_int_equal(p->faults.count, 1);
}

#endif
