/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/evidence/memory/session_reclaim.h"
#include "consumer/facts/disk_text.h"
#include "consumer/signals/thresholds.h"
#include "shared/tools/macro.h"

static double to_mib(uint64_t pages)
{
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1u << 20);
}

/* ---- the whole machine is short of memory */

/* Returns a neighbour's time in direct reclaim and compaction: the machine had no free memory. */
static uint64_t global_ns(const struct reclaim_neighbour *n)
{
	return n->kind_ns[RECLAIM_DIRECT] + n->kind_ns[RECLAIM_COMPACTION];
}

/* Returns the other cgroup with the most such time; NULL: none, or its name is not known. */
static const struct reclaim_neighbour *find_greedy(const struct reclaim_times *all)
{
	const struct reclaim_neighbour *most = NULL;

	for (size_t i = 0; i < all->n_neighbours; i++)
		if (!most || global_ns(&all->neighbours[i]) > global_ns(most))
			most = &all->neighbours[i];
	return most && most->row.path && strcmp(most->row.path, "/") != 0 ? most : NULL;
}

/* Returns the direct-reclaim and compaction time of all cgroups. */
static uint64_t everybody_ns(const struct reclaim_times *all)
{
	uint64_t own_ns =
		reclaim_times_ns(all, RECLAIM_DIRECT) + reclaim_times_ns(all, RECLAIM_COMPACTION);
	uint64_t ns = own_ns + global_ns(&all->more);

	for (size_t i = 0; i < all->n_neighbours; i++)
		ns += global_ns(&all->neighbours[i]);
	return ns;
}

/*
 * Returns how much of `ns` another cgroup explains: it had most of the direct reclaim of the whole
 * machine, and the session's threads had a part of it.
 */
static uint64_t find_neighbour(struct findings_search *s, uint64_t ns)
{
	const struct reclaim_times *all = reclaim_times_of(s->session->signals);
	const struct reclaim_neighbour *n = all ? find_greedy(all) : NULL;
	struct finding_evidence e = { .type = "neighbour", .signal = "reclaim" };
	uint64_t of_ns = all ? everybody_ns(all) : 0;
	char says[FINDINGS_SAYS_BYTES], who[NEIGHBOUR_SAYS_BYTES];
	double share;

	if (!n || !reclaim_times_ns(all, RECLAIM_DIRECT) ||
	    global_ns(n) * 100 < of_ns * THRESHOLD_NEIGHBOUR_PCT)
		return 0;
	share = (double)global_ns(n) / (double)of_ns;
	neighbour_rows_say(&n->row, who);
	ns = (uint64_t)((double)ns * share);
	snprintf(says, sizeof(says),
		 "its threads waited %.1f s for memory because the host had none free; %s used "
		 "%.0f %% of all direct-reclaim time",
		 findings_search_seconds(ns), who, share * 100);
	if (strlen(n->row.path) < sizeof(e.value)) {
		e.key = "neighbour";
		snprintf(e.value, sizeof(e.value), "%s", n->row.path);
	}
	findings_search_add(s, FINDING_RECLAIM_NEIGHBOUR, ns, says, &e);
	return ns;
}

/* ---- throttled writers */

/* Returns the disk with the most pauses, and the number of pauses for all disks. */
static const struct reclaim_part *find_paused(const struct reclaim_times *all, uint64_t *ret_count)
{
	const struct reclaim_part *most = NULL;
	uint64_t count = 0;

	for (size_t i = 0; all && i < all->count; i++) {
		const struct reclaim_part *p = &all->items[i];

		if (p->kind != RECLAIM_THROTTLE)
			continue;
		most = most ? most : p;
		count += p->own.count + p->own.open + p->own.orphans;
	}
	*ret_count = count;
	return most;
}

/*
 * Appends the amount of dirty memory if it causes the throttling: it is beyond half of the limit.
 * Below half, the disk's own share of the limit is used up.
 */
static void say_dirty(const struct findings_search *s, char *says, size_t space)
{
	const struct facts_phases *facts = s->session->facts;
	uint64_t dirty, limit;

	if (facts && facts_phases_get(facts, FACTS_DURING, FACT_HOST_DIRTY, &dirty) &&
	    facts_phases_get(facts, FACTS_DURING, FACT_HOST_DIRTY_LIMIT, &limit) &&
	    dirty >= limit / 2)
		snprintf(says, space,
			 "; %.1f MiB of the machine were dirty at the end, of at most %.1f",
			 to_mib(dirty), to_mib(limit));
}

uint64_t find_memory_pauses(struct findings_search *s, uint64_t ns)
{
	const struct reclaim_times *all = reclaim_times_of(s->session->signals);
	struct finding_evidence e = { "reclaim", "reclaim", "kind", "throttle", 0 };
	char says[FINDINGS_SAYS_BYTES], disk[DISK_TEXT_BYTES];
	uint64_t count;
	const struct reclaim_part *p = find_paused(all, &count);
	int n;

	ns = p ? MIN(reclaim_times_ns(all, RECLAIM_THROTTLE), ns) : 0;
	if (!ns)
		return 0;
	disk_text_say(s->session->disks, p->device >> 20, p->device & 0xfffff, disk);
	n = snprintf(
		says, sizeof(says),
		"its writers were throttled for %.1f s, in %llu pauses: more is written than %s "
		"takes",
		findings_search_seconds(ns), (unsigned long long)count, disk);
	say_dirty(s, says + n, sizeof(says) - (size_t)n);
	findings_search_add(s, FINDING_WRITE_PAUSE, ns, says, &e);
	return ns;
}

/* Threads also wait for disks when pages that were evicted at the limit are read back. */
static bool find_limit(struct findings_search *s)
{
	bool io = s->session->facts && causes_reads_back(s->session->facts);
	uint64_t io_ns = io ? s->part_ns[ACCOUNT_IO] : 0;

	if (!findings_search_limit(s, FINDING_MEMORY_LIMIT, CAUSE_ID_memory_limit, "memory", "",
				   s->part_ns[ACCOUNT_MEMORY] + io_ns))
		return false;
	s->part_ns[ACCOUNT_IO] -= io_ns;
	return true;
}

void find_memory(struct findings_search *s)
{
	const struct finding_evidence e = findings_search_evidence(s, ACCOUNT_MEMORY);
	uint64_t ns = s->part_ns[ACCOUNT_MEMORY];
	char says[FINDINGS_SAYS_BYTES];

	if (find_limit(s))
		return;
	ns -= find_neighbour(s, ns);
	findings_search_say_place(s, ACCOUNT_MEMORY, "for memory", says);
	findings_search_add(s, FINDING_MEMORY, ns, says, &e);
}
