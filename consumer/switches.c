/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/switches.h"

#include "consumer/agent.h"
#include "shared/clock.h"

/* What delays a service under CPU pressure is told apart by who ended its turns. */
static bool wants(const struct session *s)
{
	if (s->rule && !s->rule->signals_auto)
		return s->rule->signals & (1u << SIGNAL_SWITCH);
	return s->reason.kind == TRIGGER_PRESSURE && s->when.resource == RESOURCE_CPU;
}

static void attach(struct session *s)
{
	struct switches *w = &s->switches;

	if (signal_programs_hold(&s->agent->programs, SIGNAL_SWITCH, &w->why) < 0)
		return;
	w->counted = true;
	if (pins_switches(&s->agent->pins, s->slot, &w->count) == 0)
		return;
	signal_programs_drop(&s->agent->programs, SIGNAL_SWITCH);
	w->counted = false;
	w->why = "the counters cannot be read";
}

void switches_begin(struct session *s)
{
	s->switches.wanted = wants(s);
	if (s->switches.wanted)
		attach(s);
}

void switches_again(struct session *s)
{
	struct switches *w = &s->switches;

	if (!w->wanted || w->counted || s->ending)
		return;
	attach(s);
	if (w->counted)
		w->late_ms = (clock_mono_ns() - s->start_ns) / NSEC_PER_MSEC;
}

void switches_end(struct session *s)
{
	struct switches *w = &s->switches;
	struct slot_switches last;

	if (!w->counted)
		return;
	if (pins_switches(&s->agent->pins, s->slot, &last) == 0) {
		w->count.voluntary = last.voluntary - w->count.voluntary;
		w->count.involuntary = last.involuntary - w->count.involuntary;
	} else {
		w->counted = false;
		w->why = "the counters cannot be read";
	}
	signal_programs_drop(&s->agent->programs, SIGNAL_SWITCH);
}

void switches_write(const struct switches *switches, struct jsonw *w)
{
	if (!switches->wanted)
		return;
	if (!switches->counted) {
		jsonw_null(w, "switches");
		jsonw_string(w, "switches_reason", switches->why);
		return;
	}
	jsonw_object(w, "switches");
	jsonw_u64(w, "voluntary", switches->count.voluntary);
	jsonw_u64(w, "involuntary", switches->count.involuntary);
	if (switches->late_ms)
		jsonw_u64(w, "late_ms", switches->late_ms);
	jsonw_object_end(w);
}
