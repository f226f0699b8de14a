/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_pools.h"

#include <stdio.h>
#include <string.h>

#include "consumer/answer/find_sockets.h"
#include "consumer/evidence/waits/pool_places.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Words for the wait of a thread that takes no work. */
static const char *say_wait(uint8_t state)
{
	static const char *const words[] = {
		[WAIT_BLOCKED + WAIT_IO] = "for disks and files",
		[WAIT_BLOCKED + WAIT_MEMORY] = "for memory",
		[WAIT_BLOCKED + WAIT_LOCK] = "for locks or other threads",
		[WAIT_BLOCKED + WAIT_SLEEP] = "for a timer",
		[WAIT_BLOCKED + WAIT_PIPE] = "in pipes",
		[WAIT_BLOCKED + WAIT_SOCKET] = "on sockets",
		[WAIT_BLOCKED + WAIT_CHILD] = "for other processes to end",
		[WAIT_BLOCKED + WAIT_FAULT] = "in page faults",
		[WAIT_BLOCKED + WAIT_STOPPED] = "stopped by a signal",
		[WAIT_BLOCKED + WAIT_TRACED] = "stopped by a tracer",
		[WAIT_BLOCKED + WAIT_FROZEN] = "frozen",
	};

	return state < ARRAY_SIZE(words) && words[state] ? words[state] : "for something else";
}

static unsigned long long take_percent(uint64_t part_ns, uint64_t of_ns)
{
	return of_ns ? part_ns * 100 / of_ns : 0;
}

static struct finding_evidence evidence_of(const struct pool_place *busy)
{
	struct finding_evidence e = {
		.type = "stack", .signal = "offcpu", .pid = busy->tgid, .key = "wait"
	};

	snprintf(e.value, sizeof(e.value), "%s", wait_kind_name(busy->state));
	return e;
}

void find_pools_starved(struct findings_search *s)
{
	const struct session_waits *waits = &s->summary->waits;
	char says[FINDINGS_SAYS_BYTES], caller[128] = "";
	uint64_t length_ns = s->found.time_ns[FINDINGS_SESSION];
	struct finding_evidence e;
	struct pool_starved p;

	if (!pool_places_starved(&s->summary->pools, waits->during_ms, waits->calm_ms, &p))
		return;
	if (p.busy->caller)
		snprintf(caller, sizeof(caller), " (called by %.100s)", p.busy->caller);
	snprintf(says, sizeof(says),
		 "no thread of %.*s was free for new work: %llu of them waited %s, for %llu %% of "
		 "their time in %.120s%s; in the baseline %llu %% of it was in %.120s",
		 COMM_BYTES, p.busy->pool, (unsigned long long)p.threads, say_wait(p.busy->state),
		 take_percent(p.busy->ns, p.all_ns), p.busy->fn ? p.busy->fn : "unnamed code",
		 caller, take_percent(p.calm->calm_ns, p.calm_all_ns),
		 p.calm->fn ? p.calm->fn : "unnamed code");
	find_sockets_say_waiting(s, says);
	e = evidence_of(p.busy);
	findings_search_add(s, FINDING_STARVED_POOL,
			    (uint64_t)((double)length_ns * (double)(p.all_ns - p.free_ns) /
				       (double)MAX(p.all_ns, (uint64_t)1)),
			    says, &e);
}
