/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/event_budget.h"

#include "consumer/rules/shares.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static void write_left_out(void *context, struct jsonw *w)
{
	const struct line_rule *rule = context;
	uint64_t all = 0;

	for (int i = 0; i < LINE_KIND_COUNT_; i++)
		all += rule->left_out[i];
	jsonw_u64(w, "count", all);
	jsonw_object(w, "left_out");
	for (int i = 0; i < LINE_KIND_COUNT_; i++)
		if (rule->left_out[i])
			jsonw_u64(w, line_budget_kind_name((enum line_kind)i), rule->left_out[i]);
	jsonw_object_end(w);
}

static void say_left_out(void *context, const struct line_rule *rule)
{
	struct event_budget *b = context;
	struct event_subject subject = event_log_subject(b->log, NULL, 0);

	if (b->log->active->set)
		subject.rule = rules_find(b->log->active->set->rules, rule->name);
	event_line_error(
		b->log->lines, &subject, "lines_left_out",
		"find the program that starts so many processes under the rule's name, make the "
		"rule narrower, or raise --lines-per-minute",
		write_left_out, (void *)rule,
		"lines about processes and watches of rule %s were left out within a minute: its "
		"limit is %llu, and one owner gets half of the rest",
		rule->name[0] ? rule->name : "(none)", (unsigned long long)b->lines.max);
}

static void turn_minute(struct event_budget *b, uint64_t now_ns, bool end)
{
	line_budget_turn(&b->lines, now_ns, end, say_left_out, b);
}

static void on_minute(void *context, uint32_t events)
{
	turn_minute(context, clock_mono_ns(), false);
}

void event_budget_init(struct event_budget *b, const struct event_log *log, uint64_t per_minute)
{
	*b = (struct event_budget){ .log = log };
	line_budget_init(&b->lines, per_minute);
}

void event_budget_done(struct event_budget *b)
{
	loop_remove(b->timer);
	b->timer = NULL;
	line_budget_done(&b->lines);
}

int event_budget_listen(struct event_budget *b, struct loop *loop)
{
	return loop_timer(loop, on_minute, b, &b->timer);
}

void event_budget_end(struct event_budget *b)
{
	turn_minute(b, clock_mono_ns(), true);
}

/* Returns a hash of place and user, so that users within one place count separately; not 0. */
static uint64_t hash_owner(const struct event_budget *b, const struct event_about *about)
{
	char owner[CGROUP_OWNER_BYTES] = "";
	uint64_t hash;

	if (!about->owner)
		cgroups_owner(b->log->cgroups, about->cgroup_id, 0, owner);
	hash = idmap_text_key(about->owner ? about->owner->name : owner);
	hash = (hash ^ about->uid) * 0x9e3779b97f4a7c15ULL;
	return hash ? hash : 1;
}

static const char *rule_name(const struct rule *rule)
{
	return rule ? rule->name : "";
}

/*
 * Sets the timer at the first omitted line, so that a minute without omitted lines causes no
 * wake-up.
 */
static void set_timer(struct event_budget *b, uint64_t now_ns)
{
	if (!b->timer || b->timer_minute == b->lines.minute)
		return;
	b->timer_minute = b->lines.minute;
	loop_timer_set(b->timer, line_budget_rest_ns(&b->lines, now_ns), 0);
}

bool event_budget_take(struct event_budget *b, const struct event_about *about, enum line_kind kind)
{
	uint64_t now_ns = clock_mono_ns();

	turn_minute(b, now_ns, false);
	if (line_budget_take(&b->lines, rule_name(about->rule), hash_owner(b, about), kind))
		return true;
	set_timer(b, now_ns);
	return false;
}

bool event_budget_has_room(struct event_budget *b, const struct event_about *about)
{
	turn_minute(b, clock_mono_ns(), false);
	return line_budget_has_room(&b->lines, rule_name(about->rule), hash_owner(b, about));
}

void event_budget_leave_out(struct event_budget *b, const struct rule *rule, enum line_kind kind)
{
	uint64_t now_ns = clock_mono_ns();

	turn_minute(b, now_ns, false);
	line_budget_leave_out(&b->lines, rule_name(rule), kind);
	set_timer(b, now_ns);
}
