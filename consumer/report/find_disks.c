/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/find_disks.h"

#include <stdio.h>
#include <string.h>

#include "consumer/facts/facts_devices.h"
#include "consumer/report/session_block.h"
#include "consumer/report/session_facts.h"
#include "consumer/report/session_waits.h"
#include "consumer/signals/call_names.h"
#include "consumer/signals/call_times.h"
#include "consumer/signals/time_histogram.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Another cgroup that had a disk for less than this part of the disk's time kept nobody waiting. */
#define NEIGHBOUR_PCT 50

static bool is_sync(uint32_t call)
{
	static const char *const names[] = { "fsync",  "fdatasync", "sync_file_range",
					     "syncfs", "sync",	    "msync" };
	const char *name = call_names_get(call);

	for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Says how much of the time for disks were waits for locks, behind threads that waited so. */
static void say_passed(const struct findings_search *s, char *says)
{
	size_t n = strlen(says);

	if (s->passed_ns)
		snprintf(says + n, FINDINGS_SAYS_BYTES - n,
			 "; %.1f s of it for locks whose holders waited so",
			 findings_search_seconds(s->passed_ns));
}

/* ---- what the requests to the disk say */

static void name_device(uint32_t device, char name[FACTS_DEVICES_BYTES])
{
	struct facts_devices devices = {};

	facts_devices_read(&devices);
	facts_devices_name(&devices, device >> 20, device & 0xfffff, name);
	facts_devices_done(&devices);
}

/* Returns the disk and operation with the most time, of flushes and writes alone or of all. */
static const struct block_disk *find_slowest(const struct block_requests *all, bool of_sync)
{
	for (size_t i = 0; all && i < all->count; i++) {
		const struct block_disk *d = &all->items[i];

		if (d->all.requests > d->all.unseen &&
		    (!of_sync || d->op == BLOCK_FLUSH || d->op == BLOCK_WRITE))
			return d;
	}
	return NULL;
}

static double to_ms(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_MSEC;
}

/* "; vda did 1204 write requests, half of them in at most 4.2 ms, 99 of 100 in at most 6.3 ms" */
static void say_disk(const struct findings_search *s, char *says, bool of_sync)
{
	const struct block_disk *d = find_slowest(session_block_requests(s->session), of_sync);
	uint64_t p50 = d ? time_histogram_percentile_ns(d->all.service, 50) : UINT64_MAX;
	uint64_t p99 = d ? time_histogram_percentile_ns(d->all.service, 99) : UINT64_MAX;
	char name[FACTS_DEVICES_BYTES];
	size_t n = strlen(says);
	int more;

	if (p50 == UINT64_MAX)
		return;
	name_device(d->device, name);
	more = snprintf(says + n, FINDINGS_SAYS_BYTES - n,
			"; %s did %llu %s requests, half of them in at most %.3g ms", name,
			(unsigned long long)d->all.requests, block_requests_op_name(d->op),
			to_ms(p50));
	n += more > 0 ? (size_t)more : 0;
	if (p99 != UINT64_MAX && n < FINDINGS_SAYS_BYTES)
		snprintf(says + n, FINDINGS_SAYS_BYTES - n, ", 99 of 100 in at most %.3g ms",
			 to_ms(p99));
}

/* Returns what the session itself had of the disk, in bytes. */
static uint64_t own_bytes(const struct block_requests *all, uint32_t device)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].device == device)
			bytes += all->items[i].all.bytes;
	return bytes;
}

/*
 * Returns how much of `ns` another cgroup explains: that had the disk with the most waits for most
 * of its time, and moved more there than the session did.
 */
static uint64_t find_neighbour(struct findings_search *s, uint64_t ns)
{
	const struct block_requests *all = session_block_requests(s->session);
	const struct block_neighbour *n = all && all->n_neighbours ? &all->neighbours[0] : NULL;
	struct finding_evidence e = { .type = "neighbour", .signal = "block" };
	char says[FINDINGS_SAYS_BYTES], name[FACTS_DEVICES_BYTES];
	double share;

	if (!n || !n->path || !all->count || n->device != all->items[0].device ||
	    n->service_ns * 100 < n->disk_service_ns * NEIGHBOUR_PCT ||
	    n->bytes < own_bytes(all, n->device))
		return 0;
	share = (double)n->service_ns / (double)MAX(n->disk_service_ns, (uint64_t)1);
	ns = (uint64_t)((double)ns * share);
	name_device(n->device, name);
	snprintf(says, sizeof(says),
		 "its threads waited %.1f s for %s, of whose time %.250s had %.0f %%: %.1f MiB in "
		 "%llu requests",
		 findings_search_seconds(ns), name, n->path, share * 100,
		 (double)n->bytes / (1u << 20), (unsigned long long)n->requests);
	if (strlen(n->path) < sizeof(e.value)) {
		e.key = "neighbour";
		snprintf(e.value, sizeof(e.value), "%s", n->path);
	}
	findings_search_add(s, FINDING_DISK_NEIGHBOUR, ns, says, &e);
	return ns;
}

/* ---- what the session says of itself */

/*
 * Returns how much of `own_ns`, what threads waited for disks themselves, is of calls that sync.
 * What waited for locks behind such threads goes with the larger part of it.
 */
static uint64_t find_sync(struct findings_search *s, uint64_t own_ns)
{
	const struct signal *signal = s->session->signals[SIGNAL_SYSCALL];
	const struct call_times *calls = signal ? signal->calls : NULL;
	struct finding_evidence e = { .type = "syscall", .signal = "syscall", .key = "call" };
	char says[FINDINGS_SAYS_BYTES];
	const struct call_time *most = NULL;
	uint64_t ns = 0, waits = 0;
	bool passes;
	int n;

	for (size_t i = 0; calls && i < calls->count; i++) {
		if (!is_sync(calls->items[i].call))
			continue;
		most = most ? most : &calls->items[i];
		ns += calls->items[i].wait_ns;
		waits += calls->items[i].waits + calls->items[i].open;
	}
	if (!most)
		return 0;
	ns = MIN(ns, own_ns);
	passes = ns * 2 >= own_ns;
	ns += passes ? s->passed_ns : 0;
	snprintf(e.value, sizeof(e.value), "%s", call_names_get(most->call));
	n = snprintf(says, sizeof(says),
		     "its threads waited %.1f s, %llu times, until writes were on disk, most in %s",
		     findings_search_seconds(ns), (unsigned long long)waits, e.value);
	session_waits_place(&s->summary->waits, ACCOUNT_IO, says + n, sizeof(says) - (size_t)n);
	say_disk(s, says, true);
	if (passes)
		say_passed(s, says);
	findings_search_add(s, FINDING_SYNC, ns, says, &e);
	return ns;
}

void find_disks(struct findings_search *s)
{
	uint64_t ns = s->part_ns[ACCOUNT_IO], explained_ns;
	const struct finding_evidence e = findings_search_evidence(s, ACCOUNT_IO);
	char says[FINDINGS_SAYS_BYTES] = "";

	say_passed(s, says);
	if (findings_search_limit(s, FINDING_DISK_LIMIT, CAUSE_ID_disk_limit, "io", says, ns))
		return;
	explained_ns = find_neighbour(s, ns);
	ns -= MIN(ns, explained_ns);
	explained_ns = find_sync(s, ns - MIN(ns, s->passed_ns));
	ns -= MIN(ns, explained_ns);
	findings_search_say_place(s, ACCOUNT_IO, "for disks and files", says);
	say_disk(s, says, false);
	if (ns >= s->passed_ns)
		say_passed(s, says);
	findings_search_add(s, FINDING_DISK, ns, says, &e);
}
