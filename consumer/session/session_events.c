/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/session/session_events.h"

#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/sampler_status.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static bool some_missing(const struct session_result *r)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (r->signals[i] && r->signals[i]->off_reason)
			return true;
	return false;
}

static void write_signals(const struct session_result *r, struct jsonw *w)
{
	jsonw_array(w, "signals");
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		if (r->signals[i] && !r->signals[i]->off_reason)
			jsonw_string(w, NULL, rules_signal_name((enum signal_bit)i));
	jsonw_array_end(w);
	if (!some_missing(r))
		return;
	jsonw_array(w, "signals_missing");
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		if (!r->signals[i] || !r->signals[i]->off_reason)
			continue;
		jsonw_object(w, NULL);
		jsonw_string(w, "signal", rules_signal_name((enum signal_bit)i));
		jsonw_string(w, "reason", r->signals[i]->off_reason);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static const char *signals_reason(const struct signal_kind *const *kinds,
				  const struct session_result *r)
{
	bool request = r->reason.kind == TRIGGER_REQUEST && r->reason.signals;

	if (!signals_asked(r->rule, &r->reason))
		return signals_auto_why(kinds, signals_wanted(kinds, r->rule, &r->reason));
	if (some_missing(r))
		return request ? "asked for by the request; missing evidence makes the verdict "
				 "inconclusive"
			       : "asked for by the rule; missing evidence makes the verdict "
				 "inconclusive";
	return request ? "asked for by the request" : "asked for by the rule";
}

void session_events_start(const struct sessions *all, const struct session *s,
			  const struct event_lines *lines)
{
	struct event_subject subject = session_result_subject(s->result);
	const struct abi_header *abi = &all->host.pins->abi;
	struct jsonw w;

	event_line_begin(lines, &w, "session.start", &subject);
	trigger_reason_write(&s->result->reason, &w);
	write_signals(s->result, &w);
	jsonw_string(&w, "signals_reason", signals_reason(all->host.kinds, s->result));
	sampler_status_write(all->sampler, &w);
	session_result_write_pre(s->result, &w);
	jsonw_u64(&w, "during_ms", s->during_ms);
	if (s->during_reason)
		jsonw_string(&w, "during_reason", s->during_reason);
	jsonw_u64(&w, "hz", abi->hz);
	jsonw_u64(&w, "recorder_hz", abi->hz / RECORDER_DIVISOR);
	jsonw_u64(&w, "slot", s->target.slot);
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		const struct signal *signal = s->result->signals[i];

		if (signal && signal->kind && signal->kind->write_start)
			signal->kind->write_start(signal, &w);
	}
	event_line_end(lines, &w);
}

static void write_running(const struct session *s, struct jsonw *w)
{
	const struct session_result *r = s->result;
	char text[SESSION_TEXT_BYTES];

	event_line_session_text(r->id, text);
	jsonw_object(w, NULL);
	jsonw_string(w, "session", text);
	jsonw_string(w, "rule", r->rule ? r->rule->name : NULL);
	jsonw_string(w, "cgroup", r->cgroup);
	jsonw_string(w, "state", s->ending ? "ending" : "capture");
	jsonw_string(w, "reason", trigger_reason_name(r->reason.kind));
	jsonw_u64(w, "age_ms", (clock_mono_ns() - r->start_ns) / NSEC_PER_MSEC);
	jsonw_u64(w, "samples", session_result_samples(r));
	jsonw_object_end(w);
}

static void write_ended(const struct session_summary *e, struct jsonw *w)
{
	char text[SESSION_TEXT_BYTES];

	event_line_session_text(e->id, text);
	jsonw_object(w, NULL);
	jsonw_string(w, "session", text);
	jsonw_string(w, "rule", e->rule[0] ? e->rule : NULL);
	jsonw_string(w, "cgroup", e->cgroup);
	jsonw_string(w, "state", "ended");
	jsonw_string(w, "reason", trigger_reason_name(e->trigger));
	jsonw_u64(w, "age_ms", (clock_mono_ns() - e->end_ns) / NSEC_PER_MSEC);
	jsonw_u64(w, "samples", e->samples);
	jsonw_object_end(w);
}

void session_events_write_list(const struct sessions *all, struct jsonw *w)
{
	size_t n = MIN(all->n_ended, (size_t)SESSIONS_ENDED);

	jsonw_array(w, NULL);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (all->running[i])
			write_running(all->running[i], w);
	for (size_t i = 1; i <= n; i++)
		write_ended(&all->ended[(all->n_ended - i) % SESSIONS_ENDED], w);
	jsonw_array_end(w);
}
