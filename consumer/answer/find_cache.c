/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/evidence/disks/session_block.h"
#include "consumer/facts/disk_text.h"
#include "consumer/signals/thresholds.h"
#include "shared/tools/macro.h"

/* The session's disk requests. A disk stacked on another one counts the same bytes again. */
struct asked {
	const struct block_disk *most; /* the most bytes read; NULL: nothing was */
	uint64_t read_ns, all_ns;
	uint64_t written_bytes;
};

static struct asked sum_asked(const struct block_requests *all)
{
	struct asked sum = {};

	for (size_t i = 0; all && i < all->count; i++) {
		const struct block_disk *d = &all->items[i];
		uint64_t ns = d->all.queue_ns + d->all.service_ns;

		sum.all_ns += ns;
		sum.written_bytes += d->op == BLOCK_WRITE ? d->all.bytes : 0;
		if (d->op != BLOCK_READ)
			continue;
		sum.read_ns += ns;
		if (!sum.most || d->all.bytes > sum.most->all.bytes)
			sum.most = d;
	}
	return sum;
}

/* Returns the growth of a gauge since the trigger; 0 if it did not grow or was not read. */
static uint64_t growth_of(const struct facts_phases *f, enum fact fact)
{
	uint64_t begin, end;

	if (!facts_get(&f->at[FACTS_TRIGGER], fact, &begin) ||
	    !facts_get(&f->at[FACTS_END], fact, &end))
		return 0;
	return end - MIN(end, begin);
}

/*
 * Returns how many bytes of the files that were read stayed in memory: written bytes stay there
 * too.
 */
static uint64_t kept_bytes(const struct facts_phases *f, const struct asked *a)
{
	uint64_t grown = growth_of(f, FACT_MEMORY_FILE);
	uint64_t written = growth_of(f, FACT_MEMORY_DIRTY) + a->written_bytes;

	return grown - MIN(grown, written);
}

static double to_mib(uint64_t bytes)
{
	return (double)bytes / (1u << 20);
}

uint64_t find_cache_cold(struct findings_search *s, uint64_t ns)
{
	const struct asked a = sum_asked(block_requests_of(s->session->signals));
	const struct facts_phases *facts = s->session->facts;
	const struct finding_evidence e = { .type = "facts", .key = "source", .value = "memory" };
	char says[FINDINGS_SAYS_BYTES], name[DISK_TEXT_BYTES];
	uint64_t kept, again = 0;
	size_t n;

	if (!facts || !a.most || !a.all_ns || !a.most->all.bytes)
		return 0;
	facts_phases_get(facts, FACTS_DURING, FACT_MEMORY_REFAULT_FILE, &again);
	if (again * (uint64_t)sysconf(_SC_PAGESIZE) * 2 >= a.most->all.bytes)
		return 0;
	kept = kept_bytes(facts, &a);
	if (kept * 100 < a.most->all.bytes * THRESHOLD_CACHE_KEPT_PCT)
		return 0;
	ns = (uint64_t)((double)ns * (double)a.read_ns / (double)a.all_ns);
	findings_search_say_place(s, ACCOUNT_IO, "for disks and files", says);
	disk_text_say(s->session->disks, a.most->device >> 20, a.most->device & 0xfffff, name);
	n = strlen(says);
	snprintf(says + n, sizeof(says) - n,
		 "; the data were not in memory yet: %.1f MiB came from %s, %.1f MiB of files "
		 "stayed in memory, %" PRIu64 " evicted pages were read again",
		 to_mib(a.most->all.bytes), name, to_mib(kept), again);
	findings_search_add(s, FINDING_CACHE_COLD, ns, says, &e);
	return ns;
}
