/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/session/session_result.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#include <stdlib.h>

void session_result_free(struct session_result *r)
{
	if (!r)
		return;
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		signals_free(r->signals[i]);
	facts_phases_free(r->facts);
	timeline_free(r->timeline);
	if (r->disks)
		facts_disks_done(r->disks);
	free(r->disks);
	ruleset_unref(r->set);
	free(r->cgroup);
	free(r);
}

void session_result_write_pre(const struct session_result *r, struct jsonw *w)
{
	static const char *const reasons[] = {
		[PRE_YOUNG] =
			"the watch has not recorded for longer, or another session came before",
		[PRE_UNTICKED] = "the CPUs have not been sampled for longer",
		[PRE_EVICTED] = "the recorder's memory was full (--recorder-kib)",
	};

	jsonw_u64(w, "pre_ms", r->pre_ms);
	if (r->pre_limit != PRE_WHOLE)
		jsonw_string(w, "pre_ms_reason", reasons[r->pre_limit]);
	jsonw_u64(w, "onset_ms", r->onset_ms);
}

void session_result_write_stopped(const struct session_result *r, struct jsonw *w)
{
	if (!r->stopped.stopped)
		return;
	jsonw_object(w, "stopped");
	jsonw_u64(w, "uid", r->stopped.uid);
	jsonw_u64(w, "pid", r->stopped.pid);
	jsonw_object_end(w);
}

struct event_subject session_result_subject(const struct session_result *r)
{
	return (struct event_subject){
		.rule = r->rule,
		.generation = r->set ? r->set->generation : 0,
		.cgroup = r->cgroup,
		.cgroup_id = r->cgroup_id,
		.container = container_parse(r->cgroup),
		.session = r->id,
	};
}

uint64_t session_result_first_ns(const struct session_result *r)
{
	return r->start_ns - MIN(r->start_ns, r->pre_ms * NSEC_PER_MSEC);
}

uint64_t session_result_samples(const struct session_result *r)
{
	uint64_t samples = 0;

	for (int i = 0; i < SIGNAL_COUNT_; i++)
		for (int p = 0; r->signals[i] && r->signals[i]->taken && p < PHASE_COUNT_; p++)
			samples += r->signals[i]->taken->phase[p].emitted;
	return samples;
}

size_t session_result_stacks(const struct session_result *r, size_t *ret_bytes)
{
	size_t count = 0;

	*ret_bytes = 0;
	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		if (!r->signals[i] || !r->signals[i]->taken)
			continue;
		count += r->signals[i]->taken->stacks.count;
		*ret_bytes += r->signals[i]->taken->stacks.bytes;
	}
	return count;
}
