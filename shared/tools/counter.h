/* SPDX-License-Identifier: BSD-2-Clause */
/* counter.h: the growth of counters that may restart from 0, as when a cgroup is created anew. */
#ifndef TROCAR_SHARED_TOOLS_COUNTER_H
#define TROCAR_SHARED_TOOLS_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* False, and *ret_growth is 0: the counter was restarted between the two readings. */
static inline bool counter_growth(uint64_t before, uint64_t now, uint64_t *ret_growth)
{
	*ret_growth = now >= before ? now - before : 0;
	return now >= before;
}

#endif
