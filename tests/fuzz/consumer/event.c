/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of the events ring: what is let through has a known kind and a path that ends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/discovery/process_events.h"
#include "shared/abi/abi.h"
#include "shared/tools/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_free_ struct event *e = malloc(bytes ? bytes : 1);

	if (!e)
		return 0;
	memcpy(e, data, bytes);
	if (!process_events_valid(e, bytes))
		return 0;
	if (e->kind < EVENT_EXEC || e->kind > EVENT_OOM || bytes < sizeof(*e))
		abort();
	if (e->kind == EVENT_OOM && bytes < sizeof(*e) + sizeof(struct oom_victim))
		abort();
	if (e->path_bytes && strlen(e->path) >= e->path_bytes)
		abort();
	return 0;
}
