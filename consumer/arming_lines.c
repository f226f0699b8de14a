/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of sampling and of the broker. */
#include "consumer/agent.h"
#include "consumer/arming.h"
#include "shared/macro.h"

static const char *const by_names[] = {
	[ARMING_NONE] = "none",
	[ARMING_BROKER] = "broker",
	[ARMING_ALWAYS] = "always",
};

/* Events that tick now, and how often. */
static uint64_t rate_milli_hz(const struct agent *a)
{
	const struct arming *m = &a->arming;
	uint64_t hz = a->pins.abi.hz * 1000ULL;

	if (a->pins.abi.cpus_sampled)
		return hz;
	if (!m->n_events)
		return 0;
	return m->captures ? hz : hz / RECORDER_DIVISOR;
}

void arming_write(const struct agent *a, struct jsonw *w)
{
	const char *reason, *why;
	enum arming_by by = arming_by(a, &reason);
	size_t ticking, missing;

	arming_state(a, &ticking, &missing, &why);
	jsonw_object(w, "sampling");
	jsonw_string(w, "by", by_names[by]);
	jsonw_string(w, "reason", reason);
	jsonw_u64(w, "events", ticking);
	jsonw_u64(w, "missing", missing);
	jsonw_milli(w, "hz", (int64_t)rate_milli_hz(a));
	jsonw_object_end(w);
}

/* {"name": n, ...} of what is not 0. */
static void write_counts(struct jsonw *w, const char *key, const uint64_t *counts, uint32_t n,
			 const char *(*name)(uint32_t i))
{
	jsonw_object(w, key);
	for (uint32_t i = 0; i < n; i++)
		if (counts[i])
			jsonw_u64(w, name(i), counts[i]);
	jsonw_object_end(w);
}

static const char *request_name(uint32_t request)
{
	return broker_row(request)->name;
}

/* The broker's own counts: of all who asked it since the load, us included. */
static void write_pin(const struct agent *a, struct jsonw *w)
{
	struct broker_counts counts;
	uint64_t granted[BROKER_COUNT_], refused[REFUSAL_COUNT_];

	if (pins_broker(&a->pins, &counts) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(granted); i++)
		granted[i] = counts.granted[i];
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		refused[i] = counts.refused[i];
	jsonw_object(w, "by_all");
	jsonw_u64(w, "starts", counts.starts);
	write_counts(w, "granted", granted, BROKER_COUNT_, request_name);
	write_counts(w, "refused", refused, REFUSAL_COUNT_, broker_refusal_name);
	jsonw_object_end(w);
}

/* What became of the requests of both links. */
static void sum_counts(const struct agent *a, struct link_counts *ret_counts)
{
	struct link_counts files;

	link_counts(a->link, ret_counts);
	link_counts(a->files, &files);
	for (size_t i = 0; i < ARRAY_SIZE(files.granted); i++)
		ret_counts->granted[i] += files.granted[i];
	for (size_t i = 0; i < ARRAY_SIZE(files.refused); i++)
		ret_counts->refused[i] += files.refused[i];
	ret_counts->unreachable += files.unreachable;
}

void arming_write_broker(const struct agent *a, struct jsonw *w)
{
	struct link_counts counts;
	const char *why = NULL;
	bool there = link_there(a->link, &why);

	sum_counts(a, &counts);
	jsonw_object(w, "broker");
	jsonw_bool(w, "there", there);
	if (!there)
		jsonw_string(w, "reason", why);
	write_counts(w, "granted", counts.granted, BROKER_COUNT_, request_name);
	write_counts(w, "refused", counts.refused, REFUSAL_COUNT_, broker_refusal_name);
	jsonw_u64(w, "unreachable", counts.unreachable);
	write_pin(a, w);
	jsonw_object_end(w);
}
