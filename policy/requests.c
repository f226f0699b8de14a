/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/policy.h"
#include "shared/broker/broker.h"
#include "shared/tools/macro.h"

static const struct {
	enum policy_process process;
	uint32_t request;
} requests[] = {
#define ASK(process, request, reason) { POLICY_##process, BROKER_##request },
#include "policy/requests.def"
#undef ASK
};

bool policy_requests_allow(enum policy_process process, uint32_t request)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].process == process && requests[i].request == request)
			return true;
	return false;
}
