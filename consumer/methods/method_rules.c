/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/method_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/discovery/rule_preview.h"
#include "consumer/discovery/rules_apply.h"
#include "consumer/io/turn.h"
#include "consumer/methods/methods.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

/* Maximum number of matches in one answer. */
#define PREVIEW_MAX 1000

int method_rules_get(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *w, struct control_error *error)
{
	struct methods *m = context;

	jsonw_object(w, NULL);
	jsonw_u64(w, "generation", m->d->active->set->generation);
	jsonw_string(w, "source", m->d->active->set->source);
	rules_write(m->d->active->set->rules, w, "rules");
	jsonw_object_end(w);
	return 0;
}

/* Parses params.text; puts faults into error->data. */
static int parse_text(const struct json_node *params, struct rules **ret_rules,
		      struct rules_faults *warnings, struct rules_faults *faults,
		      struct control_error *error)
{
	const struct json_node *text = json_node_get(params, "text");
	int r;

	if (!json_node_is(text, JSON_STRING))
		return control_error_fail(error, CONTROL_BAD_PARAMS,
					  "params.text: want the text of a rules file as a string");
	r = rules_parse(text->text, text->bytes, ret_rules, faults, warnings);
	if (r == 0)
		return 0;
	if (r != -EINVAL)
		return control_error_fail(error, CONTROL_INTERNAL, "%s", strerror(-r));
	jsonw_object(&error->data, NULL);
	jsonw_u64(&error->data, "fault_count", faults->count);
	rules_faults_write(faults, &error->data, "faults");
	jsonw_object_end(&error->data);
	return control_error_fail(error, CONTROL_REJECTED,
				  "%zu faults: nothing was applied, the running rules stay",
				  faults->count);
}

/* rules.check in progress. */
struct check {
	struct control_job job; /* must be the first member */
	struct rule_preview *preview;
	size_t count;
	struct jsonw warnings; /* an array */
};

static void free_check(struct control_job *job)
{
	struct check *c = (struct check *)job;

	rule_preview_free(c->preview);
	jsonw_done(&c->warnings);
	free(c);
}

static int step_check(struct control_job *job, struct jsonw *w, struct control_error *error)
{
	struct check *c = (struct check *)job;
	struct rule_preview_left left;
	int r = rule_preview_step(c->preview, turn_until_ns());

	if (r > 0)
		return 1;
	if (r < 0)
		return control_error_fail(error, CONTROL_INTERNAL,
					  "listing the matching processes: %s", strerror(-r));
	jsonw_object(w, NULL);
	jsonw_bool(w, "ok", true);
	jsonw_u64(w, "count", c->count);
	jsonw_raw(w, "warnings", c->warnings.data, c->warnings.bytes);
	rule_preview_write(c->preview, w, &left);
	jsonw_u64(w, "matches_omitted", left.omitted);
	jsonw_u64(w, "cgroups_unreadable", left.unreadable);
	jsonw_object_end(w);
	return 0;
}

/* Makes the job. Takes ownership of `rules`. 0 or -errno. */
static int new_check(struct methods *m, struct rules *rules, const struct rules_faults *warnings,
		     struct control_job **ret_job)
{
	struct check *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		rules_free(rules);
		return -ENOMEM;
	}
	c->job = (struct control_job){ .step = step_check, .free = free_check };
	c->count = rules->count;
	jsonw_init(&c->warnings, CONTROL_ANSWER_BYTES);
	rules_faults_write(warnings, &c->warnings, NULL);
	r = jsonw_end(&c->warnings);
	if (r == 0)
		r = rule_preview_new(m->d, rules, PREVIEW_MAX, &c->preview);
	else
		rules_free(rules);
	if (r < 0) {
		free_check(&c->job);
		return r;
	}
	*ret_job = &c->job;
	return 0;
}

int method_rules_check(void *context, const struct control_peer *peer,
		       const struct json_node *params, struct control_job **ret_job,
		       struct control_error *error)
{
	_cleanup_(rules_faults_done) struct rules_faults faults, warnings;
	struct rules *rules = NULL;
	int r;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	if (parse_text(params, &rules, &warnings, &faults, error) < 0 || !rules)
		return -1;
	r = new_check(context, rules, &warnings, ret_job);
	return r < 0 ? control_error_fail(error, CONTROL_INTERNAL, "%s", strerror(-r)) : 0;
}

int method_rules_set(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *w, struct control_error *error)
{
	_cleanup_(rules_faults_done) struct rules_faults faults, warnings;
	struct methods *m = context;
	struct applied applied = {};
	struct rules *rules = NULL;
	int r;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	if (parse_text(params, &rules, &warnings, &faults, error) < 0) {
		if (error->code == CONTROL_REJECTED)
			rules_apply_say_rejected(m->d, "socket", peer, &faults);
		return -1;
	}
	r = rules_apply_set(m->d, rules, "socket", peer, &warnings, &applied);
	if (r < 0)
		return control_error_fail(
			error, CONTROL_INTERNAL,
			"the rules do not fit the kernel's tables: %s; the running "
			"rules stay",
			strerror(-r));
	jsonw_object(w, NULL);
	jsonw_u64(w, "generation", applied.generation);
	jsonw_u64(w, "count", applied.count);
	rules_faults_write(&warnings, w, "warnings");
	jsonw_u64(w, "unchanged_watches", applied.unchanged_watches);
	jsonw_object_end(w);
	return 0;
}
