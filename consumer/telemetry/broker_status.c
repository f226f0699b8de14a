/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/telemetry/broker_status.h"

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/* Writes {"name": n, ...}, without the counts that are 0. */
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

/* Writes the broker's own counts: for all callers since the load, including this consumer. */
static void write_pin(const struct pinned_maps *pins, struct jsonw *w)
{
	struct broker_counts counts;
	uint64_t granted[BROKER_COUNT_], refused[REFUSAL_COUNT_];

	if (pinned_maps_broker(pins, &counts) < 0)
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

/* Sums the results of the requests on both connections. */
static void sum_counts(struct broker_client *main, struct broker_client *files,
		       struct broker_client_counts *ret_counts)
{
	struct broker_client_counts more;

	broker_client_counts(main, ret_counts);
	broker_client_counts(files, &more);
	for (size_t i = 0; i < ARRAY_SIZE(more.granted); i++)
		ret_counts->granted[i] += more.granted[i];
	for (size_t i = 0; i < ARRAY_SIZE(more.refused); i++)
		ret_counts->refused[i] += more.refused[i];
	ret_counts->unreachable += more.unreachable;
}

void broker_status_write(struct broker_client *main, struct broker_client *files,
			 const struct pinned_maps *pins, struct jsonw *w)
{
	struct broker_client_counts counts;
	const char *why = NULL;
	bool there = broker_client_there(main, &why);

	sum_counts(main, files, &counts);
	jsonw_object(w, "broker");
	jsonw_bool(w, "there", there);
	if (!there)
		jsonw_string(w, "reason", why);
	write_counts(w, "granted", counts.granted, BROKER_COUNT_, request_name);
	write_counts(w, "refused", counts.refused, REFUSAL_COUNT_, broker_refusal_name);
	jsonw_u64(w, "unreachable", counts.unreachable);
	write_pin(pins, w);
	jsonw_object_end(w);
}
