/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery_lines.h"

#include "consumer/agent.h"
#include "shared/clock.h"
#include "shared/macro.h"

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
			jsonw_u64(w, line_kind_name((enum line_kind)i), rule->left_out[i]);
	jsonw_object_end(w);
}

static void say_left_out(void *context, const struct line_rule *rule)
{
	struct agent *a = context;
	struct line_subject subject = {
		.rule = a->set ? rules_find(a->set->rules, rule->name) : NULL,
		.generation = a->set ? a->set->generation : 0,
	};

	line_error(
		&a->lines, &subject, "lines_left_out",
		"find who starts so many under the rule's name, make the rule narrower, or raise "
		"--lines-per-minute",
		write_left_out, (void *)rule,
		"lines about processes and watches of rule %s were left out within a minute: it "
		"may have %llu, and one owner half of what others leave",
		rule->name[0] ? rule->name : "(none)", (unsigned long long)a->line_budget.max);
}

static void turn(struct agent *a, uint64_t now_ns, bool end)
{
	line_budget_turn(&a->line_budget, now_ns, end, say_left_out, a);
}

static void on_minute(void *context, uint32_t events)
{
	turn(context, clock_mono_ns(), false);
}

int discovery_lines_listen(struct agent *a)
{
	return loop_timer(a->loop, on_minute, a, &a->lines_timer);
}

void discovery_lines_end(struct agent *a)
{
	turn(a, clock_mono_ns(), true);
}

/* Users within one place are told apart, and places; not 0. */
static uint64_t owner_of(struct agent *a, const struct line_about *about)
{
	char owner[CGROUP_OWNER_BYTES] = "";
	uint64_t hash;

	if (!about->owner)
		cgroups_owner(&a->cgroups, about->cgroup_id, 0, owner);
	hash = line_budget_key(about->owner ? about->owner->name : owner);
	hash = (hash ^ about->uid) * 0x9e3779b97f4a7c15ULL;
	return hash ? hash : 1;
}

static const char *name_of(const struct rule *rule)
{
	return rule ? rule->name : "";
}

/* The timer is set by the first line that is left out: who leaves out none is not woken for it. */
static void wait_for_the_end(struct agent *a, uint64_t now_ns)
{
	if (!a->lines_timer || a->lines_minute == a->line_budget.minute)
		return;
	a->lines_minute = a->line_budget.minute;
	loop_timer_set(a->lines_timer, line_budget_rest_ns(&a->line_budget, now_ns), 0);
}

bool discovery_line(struct agent *a, const struct line_about *about, enum line_kind kind)
{
	uint64_t now_ns = clock_mono_ns();

	turn(a, now_ns, false);
	if (line_budget_take(&a->line_budget, name_of(about->rule), owner_of(a, about), kind))
		return true;
	wait_for_the_end(a, now_ns);
	return false;
}

bool discovery_line_has_room(struct agent *a, const struct line_about *about)
{
	turn(a, clock_mono_ns(), false);
	return line_budget_has_room(&a->line_budget, name_of(about->rule), owner_of(a, about));
}

void discovery_line_left_out(struct agent *a, const struct rule *rule, enum line_kind kind)
{
	uint64_t now_ns = clock_mono_ns();

	turn(a, now_ns, false);
	line_budget_leave_out(&a->line_budget, name_of(rule), kind);
	wait_for_the_end(a, now_ns);
}
