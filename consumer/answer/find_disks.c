/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_disks.h"

#include <stdio.h>
#include <string.h>

#include "consumer/answer/find_cache.h"
#include "consumer/answer/find_memory.h"
#include "consumer/answer/session_facts.h"
#include "consumer/evidence/disks/session_block.h"
#include "consumer/evidence/time/call_names.h"
#include "consumer/evidence/time/call_times.h"
#include "consumer/evidence/waits/session_waits.h"
#include "consumer/facts/disk_text.h"
#include "consumer/signals/thresholds.h"
#include "consumer/signals/time_histogram.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "shared/tools/number_text.h"

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

/* ---- from the requests to the disk */

static void say_device(const struct findings_search *s, uint32_t device, char name[DISK_TEXT_BYTES])
{
	disk_text_say(s->session->disks, device >> 20, device & 0xfffff, name);
}

/* Returns the disk and operation with the most time; with `of_sync`, of flushes and writes only. */
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

/* "; vda did 1204 write requests, half of them in at most 4.2 ms, 99 of 100 in at most 6.3 ms" */
static void say_disk(const struct findings_search *s, char *says, bool of_sync)
{
	const struct block_disk *d = find_slowest(block_requests_of(s->session->signals), of_sync);
	uint64_t p50 = d ? time_histogram_percentile_ns(d->all.service, 50) : UINT64_MAX;
	uint64_t p99 = d ? time_histogram_percentile_ns(d->all.service, 99) : UINT64_MAX;
	char name[DISK_TEXT_BYTES], ms[NUMBER_TEXT_BYTES];
	size_t n = strlen(says);
	int more;

	if (p50 == UINT64_MAX)
		return;
	say_device(s, d->device, name);
	more = snprintf(says + n, FINDINGS_SAYS_BYTES - n,
			"; %s did %llu %s requests, half of them in at most %s", name,
			(unsigned long long)d->all.requests, block_requests_op_name(d->op),
			number_text_time(p50, ms));
	n += more > 0 ? (size_t)more : 0;
	if (p99 != UINT64_MAX && n < FINDINGS_SAYS_BYTES)
		snprintf(says + n, FINDINGS_SAYS_BYTES - n, ", 99 of 100 in at most %s",
			 number_text_time(p99, ms));
}

/* Returns the session's own bytes on the disk. */
static uint64_t own_bytes(const struct block_requests *all, uint32_t device)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].device == device)
			bytes += all->items[i].all.bytes;
	return bytes;
}

/*
 * Returns the other cgroup with the most disk time. Skips the root: it cannot be distinguished from
 * other cgroups, because kernel threads write back there whatever the kernel attributes to no
 * cgroup.
 */
static const struct block_neighbour *find_other(const struct block_requests *all)
{
	for (size_t i = 0; all && i < all->n_neighbours; i++)
		if (!all->neighbours[i].row.path || strcmp(all->neighbours[i].row.path, "/") != 0)
			return &all->neighbours[i];
	return NULL;
}

/*
 * Returns how much of `ns` another cgroup explains: it used the disk with the most waits for most
 * of that disk's time, and moved more bytes there than the session did.
 */
static uint64_t find_neighbour(struct findings_search *s, uint64_t ns)
{
	const struct block_requests *all = block_requests_of(s->session->signals);
	const struct block_neighbour *n = find_other(all);
	struct finding_evidence e = { .type = "neighbour", .signal = "block" };
	char says[FINDINGS_SAYS_BYTES], name[DISK_TEXT_BYTES], who[NEIGHBOUR_SAYS_BYTES];
	double share;

	if (!n || !n->row.path || !all->count || n->device != all->items[0].device ||
	    n->service_ns * 100 < n->disk_service_ns * THRESHOLD_NEIGHBOUR_PCT ||
	    n->bytes < own_bytes(all, n->device))
		return 0;
	share = (double)n->service_ns / (double)MAX(n->disk_service_ns, (uint64_t)1);
	ns = (uint64_t)((double)ns * share);
	say_device(s, n->device, name);
	neighbour_rows_say(&n->row, who);
	snprintf(says, sizeof(says),
		 "its threads waited %.1f s for %s while %s used %.0f %% of the disk's time: "
		 "%.1f MiB in %llu requests",
		 findings_search_seconds(ns), name, who, share * 100, (double)n->bytes / (1u << 20),
		 (unsigned long long)n->requests);
	if (strlen(n->row.path) < sizeof(e.value)) {
		e.key = "neighbour";
		snprintf(e.value, sizeof(e.value), "%s", n->row.path);
	}
	findings_search_add(s, FINDING_DISK_NEIGHBOUR, ns, says, &e);
	return ns;
}

/* ---- failed requests */

/* Returns the disk and operation with the most requests that failed; NULL: none. */
static const struct block_disk *find_failing(const struct block_requests *all)
{
	const struct block_disk *most = NULL;

	for (size_t i = 0; all && i < all->count; i++)
		if (all->items[i].all.errors &&
		    (!most || all->items[i].all.errors > most->all.errors))
			most = &all->items[i];
	return most;
}

/* Returns the part of the disk waits that failing requests caused, by the disks' times. */
static uint64_t part_of_errors(const struct findings_search *s, const struct block_times *sum)
{
	uint64_t all_ns = sum->queue_ns + sum->service_ns;
	double share = all_ns ? (double)MIN(sum->error_ns, all_ns) / (double)all_ns : 0;

	return (uint64_t)((double)s->part_ns[ACCOUNT_IO] * share);
}

void find_disks_errors(struct findings_search *s)
{
	const struct block_requests *all = block_requests_of(s->session->signals);
	const struct block_disk *d = find_failing(all);
	struct finding_evidence e = { .type = "disk", .signal = "block", .key = "device" };
	char says[FINDINGS_SAYS_BYTES], name[DISK_TEXT_BYTES], device[FACTS_DEVICES_BYTES];
	char ms[NUMBER_TEXT_BYTES];
	struct block_times sum;
	uint64_t ns;

	if (!d)
		return;
	sum = block_requests_sum(all);
	ns = part_of_errors(s, &sum);
	s->part_ns[ACCOUNT_IO] -= ns;
	say_device(s, d->device, name);
	disk_text_name(s->session->disks, d->device >> 20, d->device & 0xfffff, device);
	snprintf(e.value, sizeof(e.value), "%s", device);
	snprintf(says, sizeof(says),
		 "%llu of %llu %s requests to %s ended with an error, after %s each in the mean",
		 (unsigned long long)d->all.errors, (unsigned long long)d->all.requests,
		 block_requests_op_name(d->op), name,
		 number_text_time(d->all.error_ns / d->all.errors, ms));
	/* Report it even if no thread waited for it: a failing disk is not a matter of time. */
	findings_search_add(s, FINDING_DISK_ERROR, MAX(ns, (uint64_t)1), says, &e);
}

/* ---- from the session itself */

/* Waits in calls that sync. */
struct syncs {
	uint64_t ns, waits;
	uint32_t most; /* the call with the most time */
};

static bool sum_syncs(const struct findings_search *s, struct syncs *ret_syncs)
{
	const struct call_times *calls = call_times_of(s->session->signals);
	struct syncs sum = {};

	for (size_t i = 0; calls && i < calls->count; i++) {
		const struct call_time *t = &calls->items[i];

		if (!is_sync(t->call))
			continue;
		sum.most = sum.waits ? sum.most : t->call;
		sum.ns += t->wait_ns;
		sum.waits += t->waits + t->open;
	}
	*ret_syncs = sum;
	return sum.waits > 0;
}

/*
 * Returns how many bytes all cgroups wrote to the disks that the session wrote to. Counts all
 * cgroups because writeback by kernel threads does not keep its cgroup everywhere.
 */
static uint64_t written_bytes(const struct block_requests *all)
{
	uint64_t bytes = 0;

	for (size_t i = 0; all && i < all->count; i++)
		bytes += all->items[i].op == BLOCK_WRITE ? all->items[i].everybody_bytes : 0;
	return bytes;
}

/*
 * Whether the number of syncs is the problem: many syncs, each short and with little data. One sync
 * of much data also waits many times for a short time, so the written bytes decide.
 */
static bool is_storm(const struct findings_search *s, const struct syncs *sum)
{
	uint64_t ms = (s->session->stop_ns - s->session->start_ns) / NSEC_PER_MSEC;

	return sum->waits * MSEC_PER_SEC >= ms * THRESHOLD_SYNC_STORM_RATE &&
	       sum->ns / sum->waits <= THRESHOLD_SYNC_STORM_MS * NSEC_PER_MSEC &&
	       written_bytes(block_requests_of(s->session->signals)) / sum->waits <=
		       THRESHOLD_SYNC_STORM_KIB * 1024ull;
}

/* "its threads waited 1.9 s in 4210 waits, 0.45 ms each in the mean, until writes were on disk" */
static int say_syncs(const struct findings_search *s, const struct syncs *sum, uint64_t ns,
		     char *says)
{
	uint64_t ms = MAX((s->session->stop_ns - s->session->start_ns) / NSEC_PER_MSEC, 1ull);
	char rate[NUMBER_TEXT_BYTES], mean[NUMBER_TEXT_BYTES];

	return snprintf(says, FINDINGS_SAYS_BYTES,
			"its threads waited %.1f s until writes were on disk, %llu times, %s a "
			"second, %s each in the mean, most in %s",
			findings_search_seconds(ns), (unsigned long long)sum->waits,
			number_text((double)sum->waits * MSEC_PER_SEC / (double)ms, 3, rate),
			number_text_time(sum->ns / sum->waits, mean), call_names_get(sum->most));
}

/*
 * Returns the part of `own_ns`, the time that threads themselves waited for disks, in calls that
 * sync. If that is at least half, adds the waits for locks that such threads held.
 */
static uint64_t find_sync(struct findings_search *s, uint64_t own_ns)
{
	struct finding_evidence e = { .type = "syscall", .signal = "syscall", .key = "call" };
	char says[FINDINGS_SAYS_BYTES];
	struct syncs sum;
	uint64_t ns;
	bool passes;
	int n;

	if (!sum_syncs(s, &sum))
		return 0;
	ns = MIN(sum.ns, own_ns);
	passes = ns * 2 >= own_ns;
	ns += passes ? s->passed_ns[ACCOUNT_IO] : 0;
	snprintf(e.value, sizeof(e.value), "%s", call_names_get(sum.most));
	n = say_syncs(s, &sum, ns, says);
	session_waits_place(&s->summary->waits, ACCOUNT_IO, s->part_ns[ACCOUNT_IO], says + n,
			    sizeof(says) - (size_t)n);
	say_disk(s, says, true);
	if (passes)
		findings_search_say_passed(s, ACCOUNT_IO, says);
	findings_search_add(s, is_storm(s, &sum) ? FINDING_SYNC_STORM : FINDING_SYNC, ns, says, &e);
	return ns;
}

/*
 * Returns the file that most of the threads wait for if they do not wait for a disk: its file
 * system is on no device, and the session's requests to all disks took less than a quarter of the
 * time. A process (FUSE) or another host (NFS) serves it. NULL if not, or not known.
 */
static const struct look_on *find_served(const struct findings_search *s, uint64_t ns)
{
	const struct block_requests *all = block_requests_of(s->session->signals);
	const struct session_wait *top = session_waits_top(&s->summary->waits, ACCOUNT_IO);
	struct block_times sum;

	if (!all || !top || !top->on || top->on->kind != LOOK_ON_FILE || top->on->device >> 20 ||
	    !top->on->fs[0])
		return NULL;
	sum = block_requests_sum(all);
	return (sum.queue_ns + sum.service_ns) * 4 < ns ? top->on : NULL;
}

void find_disks(struct findings_search *s)
{
	uint64_t ns = s->part_ns[ACCOUNT_IO], explained_ns;
	const struct finding_evidence e = findings_search_evidence(s, ACCOUNT_IO);
	char says[FINDINGS_SAYS_BYTES] = "";
	const struct look_on *served;
	size_t n;

	findings_search_say_passed(s, ACCOUNT_IO, says);
	if (findings_search_limit(s, FINDING_DISK_LIMIT, CAUSE_ID_disk_limit, "io", says, ns))
		return;
	explained_ns = find_neighbour(s, ns);
	ns -= MIN(ns, explained_ns);
	ns -= find_memory_pauses(s, ns);
	explained_ns = find_sync(s, ns - MIN(ns, s->passed_ns[ACCOUNT_IO]));
	ns -= MIN(ns, explained_ns);
	ns -= find_cache_cold(s, ns);
	served = find_served(s, ns);
	findings_search_say_place(s, ACCOUNT_IO, "for disks and files", says);
	n = strlen(says);
	if (served)
		snprintf(says + n, sizeof(says) - n, "; its file system (%.*s) is on no disk",
			 LOOK_FS_BYTES, served->fs);
	else
		say_disk(s, says, false);
	if (ns >= s->passed_ns[ACCOUNT_IO])
		findings_search_say_passed(s, ACCOUNT_IO, says);
	findings_search_add(s, served ? FINDING_FILE_SERVER : FINDING_DISK, ns, says, &e);
}
