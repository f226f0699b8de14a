/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/sampler_status.h"
#include "shared/json/jsonw.h"

static const char *const by_names[] = {
	[SAMPLER_NONE] = "none",
	[SAMPLER_BROKER] = "broker",
	[SAMPLER_ALWAYS] = "always",
};

/* Returns the rate of the running events in thousandths of a hertz; 0 if none runs. */
static uint64_t rate_milli_hz(const struct sampler *s)
{
	uint64_t hz = s->pins->abi.hz * 1000ULL;

	if (s->pins->abi.cpus_sampled)
		return hz;
	if (!s->n_events)
		return 0;
	return s->captures ? hz : hz / RECORDER_DIVISOR;
}

void sampler_status_write(const struct sampler *s, struct jsonw *w)
{
	const char *reason, *why;
	enum sampler_by by = sampler_by(s, &reason);
	size_t ticking, missing;

	sampler_state(s, &ticking, &missing, &why);
	jsonw_object(w, "sampling");
	jsonw_string(w, "by", by_names[by]);
	jsonw_string(w, "reason", reason);
	jsonw_u64(w, "events", ticking);
	jsonw_u64(w, "missing", missing);
	jsonw_milli(w, "hz", (int64_t)rate_milli_hz(s));
	jsonw_object_end(w);
}
