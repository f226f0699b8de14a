/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rule texts. What is taken must come back equal when it is written and read again; a refused set
 * must have the reasons, in the order of the text.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/rules/rules.h"

#define WRITTEN_BYTES (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define must(yes)                \
	do {                     \
		if (!(yes))      \
			abort(); \
	} while (0)

static void check_faults(const struct rules_faults *faults)
{
	must(faults->kept == (faults->count < RULES_FAULTS_MAX ? faults->count : RULES_FAULTS_MAX));
	for (size_t i = 0; i < faults->kept; i++) {
		const struct rules_fault *f = &faults->items[i];

		must(f->line > 0 && f->column > 0 && f->message[0]);
		must(f->pointer[0] == '/' || f->pointer[0] == '\0');
		must(i == 0 || faults->items[i - 1].line <= f->line);
	}
}

static void check_again(const struct rules *rules)
{
	struct rules_faults faults, warnings;
	struct rules *again = NULL;
	struct jsonw w;

	jsonw_init(&w, WRITTEN_BYTES);
	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	rules_write(rules, &w, NULL);
	must(jsonw_end(&w) == 0);
	/* All defaults spelt out, a set may outgrow the wall; nothing else may be wrong with it. */
	if (w.bytes <= RULES_TEXT_BYTES) {
		must(rules_parse(w.data, w.bytes, &again, &faults, &warnings) == 0);
		must(again->count == rules->count && again->budget_s == rules->budget_s);
		for (size_t i = 0; i < rules->count; i++)
			must(rule_equal(&rules->rules[i], &again->rules[i]));
	}
	rules_free(again);
	rules_faults_done(&faults);
	rules_faults_done(&warnings);
	jsonw_done(&w);
}

/* Each rule is found by its name, and by its criteria. */
static void check_matches(const struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *r = &rules->rules[i];

		must(rules_find(rules, r->name) == r);
		for (uint32_t j = 0; j < r->n_comms; j++) {
			const struct rule *m;

			if (!r->comm_exact && strlen(r->comms[j]) == RULE_COMM_BYTES - 1)
				continue;
			m = rules_match(rules, r->comms[j], r->cgroup_prefix);
			must(m == r || (!r->comm_exact && m->comm_exact));
		}
		if (!r->n_comms)
			must(rules_match_cgroup(rules, r->cgroup_prefix) == r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct rules_faults faults, warnings;
	struct rules *rules = NULL;
	int r;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	r = rules_parse((const char *)data, bytes, &rules, &faults, &warnings);
	must((r == 0 && rules && faults.count == 0) ||
	     (r == -EINVAL && !rules && faults.count > 0));
	check_faults(&faults);
	check_faults(&warnings);
	if (rules) {
		check_again(rules);
		check_matches(rules);
	}
	rules_free(rules);
	rules_faults_done(&faults);
	rules_faults_done(&warnings);
	return 0;
}
