/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/counter_signal.h"

#include <stdio.h>
#include <stdlib.h>

#include "consumer/signals/signal_programs.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

void *counter_signal_new(size_t bytes, const char *off_reason)
{
	struct signal *s = calloc(1, bytes);

	if (s)
		s->off_reason = off_reason ? off_reason : "it has not been attached yet";
	return s;
}

bool counter_signal_hold(struct signal *s, const struct signal_host *host,
			 const struct signal_target *target, const char *one_process,
			 void (*empty)(const struct pinned_maps *pins))
{
	if (s->held || target->stop_ns)
		return false;
	if (one_process && (target->only_tgid || target->by_process)) {
		s->off_reason = one_process;
		return false;
	}
	if (empty && !host->programs->of[s->id].holders)
		empty(host->pins);
	s->held = signal_programs_hold(host->programs, s->id, &s->off_reason) == 0;
	return s->held;
}

void counter_signal_started(struct signal *s, const struct signal_host *host,
			    const struct signal_target *target, int r, const char *unreadable)
{
	if (r < 0)
		counter_signal_end(s, host, unreadable, NULL, NULL);
	else
		counter_signal_run(s, target);
}

void counter_signal_run(struct signal *s, const struct signal_target *target)
{
	s->off_reason = NULL;
	if (s->tried)
		s->late_ms = (clock_mono_ns() - target->start_ns) / NSEC_PER_MSEC;
}

void counter_signal_end(struct signal *s, const struct signal_host *host, const char *off_reason,
			void *evidence, const struct ledger *counted)
{
	if (s->held)
		signal_programs_drop(host->programs, s->id);
	s->held = false;
	s->off_reason = off_reason;
	s->evidence = off_reason ? NULL : evidence;
	s->counted = off_reason ? NULL : counted;
}

bool counter_signal_write_begin(const char *key, bool has_evidence, const char *off_reason,
				struct jsonw *w)
{
	char key_reason[64];

	if (has_evidence) {
		jsonw_object(w, key);
		return true;
	}
	snprintf(key_reason, sizeof(key_reason), "%s_reason", key);
	jsonw_null(w, key);
	jsonw_string(w, key_reason, off_reason);
	return false;
}
