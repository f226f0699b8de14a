/* SPDX-License-Identifier: BSD-2-Clause */
/* What the main thread says of sessions: start, held triggers, the list. */
#include <string.h>

#include "consumer/agent.h"
#include "consumer/session.h"
#include "shared/clock.h"
#include "shared/macro.h"

static void write_reason(const struct session *s, struct jsonw *w)
{
	const struct trigger_reason *reason = &s->reason;

	jsonw_object(w, "reason");
	jsonw_object(w, trigger_name(reason->kind));
	switch (reason->kind) {
	case TRIGGER_PRESSURE:
		jsonw_string(w, "resource", resource_name(s->when.resource));
		jsonw_string(w, "kind", s->when.full ? "full" : "some");
		jsonw_u64(w, "stall_ms", reason->stall_ms);
		jsonw_u64(w, "window_ms", s->when.window_ms);
		break;
	case TRIGGER_REQUEST:
		jsonw_u64(w, "uid", reason->uid);
		jsonw_u64(w, "pid", reason->pid);
		break;
	case TRIGGER_EXEC:
		jsonw_u64(w, "pid", reason->pid);
		jsonw_string(w, "comm", reason->comm);
		break;
	}
	jsonw_object_end(w);
	jsonw_object_end(w);
}

static struct line_subject session_subject(const struct session *s)
{
	return (struct line_subject){
		.rule = s->rule,
		.generation = s->set ? s->set->generation : 0,
		.cgroup = s->cgroup,
		.cgroup_id = s->cgroup_id,
		.container = container_parse(s->cgroup),
		.session = s->id,
	};
}

/* Why a signal that the session is to have does not run; NULL when it does. */
static const char *missing_reason(const struct session *s, enum signal_bit signal)
{
	if (signal == SIGNAL_ONCPU)
		return s->cpus_ticking ? NULL : s->unsampled_why;
	if (signal == SIGNAL_SWITCH)
		return s->switches.counted ? NULL : s->switches.why;
	return "this version has no program for it";
}

/* oncpu always, switch where it is wanted, and what else the rule names. */
static uint32_t signals_wanted(const struct session *s)
{
	uint32_t named = s->rule && !s->rule->signals_auto ? s->rule->signals : 0;

	return named | 1u << SIGNAL_ONCPU | (s->switches.wanted ? 1u << SIGNAL_SWITCH : 0);
}

uint32_t session_signals_missing(const struct session *s)
{
	uint32_t wanted = signals_wanted(s), missing = 0;

	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (wanted & 1u << i && missing_reason(s, (enum signal_bit)i))
			missing |= 1u << i;
	return missing;
}

static void write_signals(const struct session *s, struct jsonw *w)
{
	uint32_t wanted = signals_wanted(s), missing = session_signals_missing(s);

	jsonw_array(w, "signals");
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (wanted & ~missing & 1u << i)
			jsonw_string(w, NULL, signal_name((enum signal_bit)i));
	jsonw_array_end(w);
	if (!missing)
		return;
	jsonw_array(w, "signals_missing");
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		if (!(missing & 1u << i))
			continue;
		jsonw_object(w, NULL);
		jsonw_string(w, "signal", signal_name((enum signal_bit)i));
		jsonw_string(w, "reason", missing_reason(s, (enum signal_bit)i));
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static const char *signals_reason(const struct session *s)
{
	if (s->rule && !s->rule->signals_auto)
		return session_signals_missing(s)
			       ? "asked for by the rule; what is missing makes the verdict "
				 "inconclusive"
			       : "asked for by the rule";
	if (s->switches.wanted)
		return "auto: at cpu pressure, what runs on the CPUs and who gives them up";
	return "auto: what runs on the CPUs explains every resource in part";
}

void session_announce(struct session *s)
{
	const struct agent *a = s->agent;
	struct line_subject subject = session_subject(s);
	struct jsonw w;

	switches_begin(s);
	line_begin(&a->lines, &w, "session.start", &subject);
	write_reason(s, &w);
	write_signals(s, &w);
	jsonw_string(&w, "signals_reason", signals_reason(s));
	sampler_write(&a->sampler, &w);
	jsonw_u64(&w, "pre_ms", s->pre_ms);
	jsonw_u64(&w, "during_ms", s->during_ms);
	jsonw_u64(&w, "hz", a->pins.abi.hz);
	jsonw_u64(&w, "recorder_hz", a->pins.abi.hz / RECORDER_DIVISOR);
	jsonw_u64(&w, "slot", s->slot);
	line_end(&a->lines, &w);
}

/* One line per reason and 10 s, or per cooldown if that is longer: a trigger can cross ten times a
 * second. */
void session_say_held(struct watch *w, const struct rule *rule, const struct trigger_reason *reason,
		      const struct held *held)
{
	struct agent *a = w->agent;
	struct line_subject subject = event_log_subject(&a->log, rule, w->cgroup_id);
	struct binding *b = rule ? watch_binding(w, rule) : NULL;
	uint64_t now = clock_mono_ns(), repeats = 0;
	struct jsonw json;

	a->sessions.held++;
	if (b) {
		uint64_t quiet_ns = MAX(rule->cooldown_ms * NSEC_PER_MSEC, 10 * NSEC_PER_SEC);

		if (b->held_ns && now - b->held_ns < quiet_ns) {
			b->held++;
			return;
		}
		repeats = b->held;
		b->held = 0;
		b->held_ns = now;
	}
	line_begin(&a->lines, &json, "trigger.held", &subject);
	jsonw_string(&json, "trigger", trigger_name(reason->kind));
	jsonw_string(&json, "reason", held->reason);
	jsonw_u64(&json, "retry_ms", held->retry_ms);
	if (reason->when) {
		jsonw_string(&json, "resource", resource_name(reason->when->resource));
		jsonw_string(&json, "kind", reason->when->full ? "full" : "some");
		jsonw_u64(&json, "stall_ms", reason->stall_ms);
	}
	if (repeats)
		jsonw_u64(&json, "repeats", repeats);
	line_end(&a->lines, &json);
}

static void write_running(const struct session *s, struct jsonw *w)
{
	char text[SESSION_TEXT_BYTES];

	line_session_text(s->id, text);
	jsonw_object(w, NULL);
	jsonw_string(w, "session", text);
	jsonw_string(w, "rule", s->rule ? s->rule->name : NULL);
	jsonw_string(w, "cgroup", s->cgroup);
	jsonw_string(w, "state", s->ending ? "ending" : "capture");
	jsonw_string(w, "reason", trigger_name(s->reason.kind));
	jsonw_u64(w, "age_ms", (clock_mono_ns() - s->start_ns) / NSEC_PER_MSEC);
	jsonw_u64(w, "samples", s->phase[PHASE_BEFORE].emitted + s->phase[PHASE_DURING].emitted);
	jsonw_object_end(w);
}

static void write_ended(const struct session_summary *e, struct jsonw *w)
{
	char text[SESSION_TEXT_BYTES];

	line_session_text(e->id, text);
	jsonw_object(w, NULL);
	jsonw_string(w, "session", text);
	jsonw_string(w, "rule", e->rule[0] ? e->rule : NULL);
	jsonw_string(w, "cgroup", e->cgroup);
	jsonw_string(w, "state", "ended");
	jsonw_string(w, "reason", trigger_name(e->trigger));
	jsonw_u64(w, "age_ms", (clock_mono_ns() - e->end_ns) / NSEC_PER_MSEC);
	jsonw_u64(w, "samples", e->samples);
	jsonw_object_end(w);
}

void sessions_write(const struct agent *a, struct jsonw *w)
{
	const struct sessions *all = &a->sessions;
	size_t n = MIN(all->n_ended, (size_t)SESSIONS_ENDED);

	jsonw_array(w, NULL);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (all->running[i])
			write_running(all->running[i], w);
	for (size_t i = 1; i <= n; i++)
		write_ended(&all->ended[(all->n_ended - i) % SESSIONS_ENDED], w);
	jsonw_array_end(w);
}
