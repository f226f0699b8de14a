/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/broker/broker.h"

#include "shared/abi/abi.h"
#include "shared/tools/macro.h"

static const struct broker_row rows[] = {
#define BROKER(id, name_, stage_, body, descriptors_, help_)                                 \
	[BROKER_##id] = { name_, BROKER_STAGE_##stage_,                                      \
			  sizeof(struct broker_request_header) + sizeof(body), descriptors_, \
			  help_ },
#include "shared/broker/broker.def"
#undef BROKER
};

static const struct {
	const char *name, *help;
} refusals[] = {
#define REFUSAL(id, json, text) [REFUSAL_##id] = { json, text },
#include "shared/broker/refusals.def"
#undef REFUSAL
};

#define BROKER(id, name, stage, body, count, help)                                                \
	_Static_assert(sizeof(struct broker_request_header) + sizeof(body) <= BROKER_REQUEST_MAX, \
		       "a request is too long");                                                  \
	_Static_assert((count) <= BROKER_DESCRIPTORS_MAX, "an answer has too many descriptors");
#include "shared/broker/broker.def"
#undef BROKER

_Static_assert(ARRAY_SIZE(rows) == BROKER_COUNT_, "a row per request");
_Static_assert(ARRAY_SIZE(refusals) == REFUSAL_COUNT_, "a row per refusal");
_Static_assert(BROKER_COUNT_ <= ARRAY_SIZE(((struct broker_counts *)0)->granted),
	       "a request has no counter");
_Static_assert(REFUSAL_COUNT_ <= ARRAY_SIZE(((struct broker_counts *)0)->refused),
	       "a refusal has no counter");

const struct broker_row *broker_row(uint32_t request)
{
	return request < ARRAY_SIZE(rows) ? &rows[request] : NULL;
}

const char *broker_refusal_name(uint32_t refusal)
{
	return refusal < ARRAY_SIZE(refusals) ? refusals[refusal].name : "unknown";
}

const char *broker_refusal_help(uint32_t refusal)
{
	return refusal < ARRAY_SIZE(refusals) ? refusals[refusal].help : "unknown";
}
