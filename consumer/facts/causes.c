/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/causes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/facts/disk_text.h"
#include "shared/tools/macro.h"
#include "shared/tools/number_text.h"

#define NUMBER_BYTES 32
#define PATH_BYTES   128
#define MIB	     (1u << 20)

static double seconds_of_us(uint64_t us)
{
	return (double)us / 1e6;
}

static double seconds_of_ms(uint64_t ms)
{
	return (double)ms / 1e3;
}

static double mib_of_bytes(uint64_t bytes)
{
	return (double)bytes / MIB;
}

/* Writes 4210 as "4,210". */
static const char *group_digits(uint64_t number, char text[NUMBER_BYTES])
{
	char digits[NUMBER_BYTES];
	size_t n = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	char *to = text;

	for (size_t i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return text;
}

/* Writes " of /a.slice" if the limit belongs to a cgroup above the watched one. */
static const char *name_above(const struct causes_case *c, enum facts_source source,
			      char text[PATH_BYTES])
{
	const struct facts_place_source *s = &c->facts->place.source[source];

	text[0] = '\0';
	if (s->above)
		snprintf(text, PATH_BYTES, " of %.120s", s->path);
	return text;
}

/*
 * Finds the growth of a counter: in onset and during together, or in during alone if that is
 * denser. The onset begins at a reading up to 5 s before the stall.
 */
static bool find_denser(const struct facts_phases *f, enum fact fact, uint64_t *ret_value,
			uint64_t *ret_ms)
{
	uint64_t during, during_ms = facts_phases_ms(f, FACTS_DURING, facts_row(fact)->source);

	if (!facts_phases_stall(f, fact, ret_value, ret_ms))
		return false;
	if (facts_phases_get(f, FACTS_DURING, fact, &during) &&
	    during * *ret_ms > *ret_value * during_ms) {
		*ret_value = during;
		*ret_ms = during_ms;
	}
	return true;
}

/* Returns the change of a limit while the session ran, as the end of a sentence. */
static const char *say_since(enum facts_since since)
{
	static const char *const texts[] = {
		[FACTS_KEPT] = "",
		[FACTS_SET] = "; it was set during the capture",
		[FACTS_LIFTED] = "; it was lifted during the capture",
		[FACTS_CHANGED] = "; it was changed during the capture",
		[FACTS_REMOVED] = "; its cgroup was removed during the capture",
	};

	return texts[since];
}

/*
 * The cgroup may use less CPU time than it wants. The kernel throttles only by a quota: if no
 * reading has one, it was lifted before the trigger.
 */
static bool find_cpu_quota(const struct causes_case *c, uint64_t least, char *text)
{
	uint64_t throttled_us, ms, quota;
	char above[PATH_BYTES], pct[NUMBER_TEXT_BYTES], used[64] = "that is gone";
	enum facts_since since;

	if (!c->facts || !find_denser(c->facts, FACT_CPU_THROTTLED_TIME, &throttled_us, &ms) ||
	    throttled_us < ms * least)
		return false;
	quota = facts_phases_limit(c->facts, FACT_CPU_QUOTA, &since);
	if (quota != FACTS_NO_LIMIT)
		snprintf(used, sizeof(used), "of %s %%", number_text((double)quota / 1e3, 4, pct));
	/* The kernel adds up the times of all CPUs. */
	snprintf(text, CAUSES_TEXT_BYTES, "CPU quota %s%s used up: %.2f s throttled in %.1f s%s%s",
		 used, name_above(c, FACTS_CPU, above), seconds_of_us(throttled_us),
		 seconds_of_ms(ms), throttled_us > ms * 1000 ? ", summed over CPUs" : "",
		 say_since(since));
	return true;
}

/*
 * The host of a virtual machine ran something else on its CPUs. The time that a thread loses this
 * way looks as if it ran: no account of its waits has it.
 */
static bool find_stolen(const struct causes_case *c, uint64_t least, char *text)
{
	const struct causes_cpus *n = c->cpus;
	uint64_t stolen_ms, ms;

	if (!c->facts || !n || !n->ms || !n->cpus ||
	    !find_denser(c->facts, FACT_HOST_STOLEN, &stolen_ms, &ms) ||
	    stolen_ms * 1000 < ms * n->cpus * least || stolen_ms * n->ms < n->others_ms * ms)
		return false;
	snprintf(text, CAUSES_TEXT_BYTES,
		 "the host of this virtual machine took %.2f s of the time of its %zu CPUs in "
		 "%.1f s (steal)",
		 seconds_of_ms(stolen_ms), n->cpus, seconds_of_ms(ms));
	return true;
}

static double cpus_of(const struct causes_cpus *n, uint64_t cpu_ms)
{
	return (double)cpu_ms / (double)n->ms;
}

/* Writes which CPUs are meant: all of the host, or those that the cgroup ran on. */
static void say_which_cpus(const struct causes_cpus *n, char *text, size_t space)
{
	if (!n->own_cpus || n->own_cpus >= n->cpus)
		snprintf(text, space, "of %zu CPUs while this cgroup waited", n->cpus);
	else if (n->own_cpus == 1)
		snprintf(text, space, "of the one CPU that this cgroup ran on while it waited");
	else
		snprintf(text, space, "of the %zu CPUs that this cgroup ran on while it waited",
			 n->own_cpus);
}

/* One other cgroup, or all others together, had the CPUs. */
static bool find_neighbour(const struct causes_case *c, uint64_t least, char *text)
{
	const struct causes_cpus *n = c->cpus;
	char which[80], of[NUMBER_BYTES + 16] = "";

	if (!n || !n->ms || !n->most || n->others_ms * 1000 < n->ms * least ||
	    n->others_ms * 2 < n->own_ms)
		return false;
	say_which_cpus(n, which, sizeof(which));
	if (n->most_cgroups > 1)
		snprintf(of, sizeof(of), "%zu cgroups in ", n->most_cgroups);
	if (n->most_ms * 2 >= n->others_ms)
		snprintf(text, CAUSES_TEXT_BYTES, "%s%.200s had %.1f %s", of, n->most,
			 cpus_of(n, n->most_ms), which);
	else
		snprintf(text, CAUSES_TEXT_BYTES,
			 "other cgroups had %.1f %s, %s%.150s %.1f of them",
			 cpus_of(n, n->others_ms), which, of, n->most, cpus_of(n, n->most_ms));
	return true;
}

/* No other cgroup had the CPUs: the cgroup wants more than there are. */
static bool find_own_demand(const struct causes_case *c, uint64_t least, char *text)
{
	const struct causes_cpus *n = c->cpus;

	if (!n || !n->ms || !n->cpus || n->own_ms * 1000 < n->ms * n->cpus * least)
		return false;
	snprintf(text, CAUSES_TEXT_BYTES,
		 "this cgroup had %.1f of %zu CPUs itself, and wanted more", cpus_of(n, n->own_ms),
		 n->cpus);
	return true;
}

/* Returns the bytes that were read from all devices in onset and during. */
static uint64_t sum_read_bytes(const struct facts_phases *f)
{
	const struct facts *end = &f->at[FACTS_END];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < end->n_devices; i++)
		for (int p = FACTS_ONSET; p <= FACTS_DURING; p++)
			bytes += facts_phases_device(f, (enum facts_phase)p, &end->devices[i],
						     FACTS_RBYTES);
	return bytes;
}

/* Returns the pages that had left memory and were read again in onset and during. */
static uint64_t sum_refaults(const struct facts_phases *f)
{
	uint64_t pages = 0, more = 0, ms;

	facts_phases_stall(f, FACT_MEMORY_REFAULT_FILE, &pages, &ms);
	facts_phases_stall(f, FACT_MEMORY_REFAULT_ANON, &more, &ms);
	return pages + more;
}

bool causes_reads_back(const struct facts_phases *f)
{
	uint64_t bytes = sum_refaults(f) * (uint64_t)sysconf(_SC_PAGESIZE);

	return bytes && bytes * 2 >= sum_read_bytes(f);
}

/* Finds which limit was reached, and how often, in onset and during. */
static bool find_reached(const struct facts_phases *f, uint64_t *ret_limit, uint64_t *ret_times,
			 enum facts_since *ret_since)
{
	static const struct {
		enum fact events, limit;
	} limits[] = {
		{ FACT_MEMORY_EVENTS_MAX, FACT_MEMORY_MAX },
		{ FACT_MEMORY_EVENTS_HIGH, FACT_MEMORY_HIGH },
	};
	uint64_t ms;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		*ret_limit = facts_phases_limit(f, limits[i].limit, ret_since);
		if (*ret_limit != FACTS_NO_LIMIT &&
		    facts_phases_stall(f, limits[i].events, ret_times, &ms) && *ret_times)
			return true;
	}
	return false;
}

/* The cgroup may have less memory than its working set. */
static bool find_memory_limit(const struct causes_case *c, uint64_t least, char *text)
{
	char pages[NUMBER_BYTES], reached[NUMBER_BYTES], stalled[64] = "", above[PATH_BYTES];
	char mib[NUMBER_TEXT_BYTES];
	enum facts_since since;
	uint64_t limit, times;

	if (!c->facts || !find_reached(c->facts, &limit, &times, &since) || times < least ||
	    (c->trigger == CAUSES_IO && !causes_reads_back(c->facts)))
		return false;
	if (c->stalled_ms)
		snprintf(stalled, sizeof(stalled), ", %.1f s stalled",
			 seconds_of_ms(c->stalled_ms));
	snprintf(text, CAUSES_TEXT_BYTES,
		 "memory limit of %s MiB%s reached %s times: %s pages read back%s%s",
		 number_text(mib_of_bytes(limit), 4, mib), name_above(c, FACTS_MEMORY, above),
		 group_digits(times, reached), group_digits(sum_refaults(c->facts), pages), stalled,
		 say_since(since));
	return true;
}

/* The limit of the cgroup, or of one above it, refused to begin processes or threads. */
static bool find_pids_limit(const struct causes_case *c, uint64_t least, char *text)
{
	char above[PATH_BYTES], digits[NUMBER_BYTES], refused[NUMBER_BYTES];
	char which[PATH_BYTES + NUMBER_BYTES + 8];
	uint64_t limit, forks, ms;
	enum facts_since since;

	if (!c->facts || !facts_phases_stall(c->facts, FACT_PIDS_EVENTS_MAX, &forks, &ms) ||
	    forks < least)
		return false;
	limit = facts_phases_limit(c->facts, FACT_PIDS_MAX, &since);
	/* Before 6.10 the event is counted here also if the limit is that of a cgroup above. */
	if (limit == FACTS_NO_LIMIT)
		snprintf(which, sizeof(which), " of a cgroup above");
	else
		snprintf(which, sizeof(which), " of %s%s", group_digits(limit, digits),
			 name_above(c, FACTS_PIDS, above));
	snprintf(
		text, CAUSES_TEXT_BYTES,
		"limit%s for processes and threads (pids.max) reached: %s fork%s refused in %.1f s%s",
		which, group_digits(forks, refused), forks == 1 ? "" : "s", seconds_of_ms(ms),
		limit == FACTS_NO_LIMIT ? "" : say_since(since));
	return true;
}

/* A process has as many descriptors open as it may have. */
static bool find_files_limit(const struct causes_case *c, uint64_t least, char *text)
{
	const char *comm = c->facts ? c->facts->at[FACTS_END].files_comm : "";
	char digits[NUMBER_BYTES];
	uint64_t pid, open, max;

	if (!c->facts || !facts_phases_get(c->facts, FACTS_DURING, FACT_FILES_OPEN, &open) ||
	    !facts_phases_get(c->facts, FACTS_DURING, FACT_FILES_MAX, &max) ||
	    !facts_phases_get(c->facts, FACTS_DURING, FACT_FILES_PID, &pid) ||
	    open * 1000 < max * least)
		return false;
	snprintf(text, CAUSES_TEXT_BYTES,
		 "all %s descriptors of %s (process %llu) are open (its limit, RLIMIT_NOFILE): it "
		 "can open and accept no more",
		 group_digits(max, digits), comm[0] ? comm : "one", (unsigned long long)pid);
	return true;
}

/* A cgroup's use of a device during, for one kind of requests. */
struct use {
	const struct facts_device *device;
	enum facts_device_count count;
	uint64_t used, limit, ms;
	enum facts_since since;
};

/* Returns the used part of the limit, in thousandths. */
static uint64_t find_share(const struct use *u)
{
	uint64_t allowed = u->limit * u->ms / 1000;

	return u->limit == FACTS_NO_LIMIT || !allowed ? 0 : u->used * 1000 / allowed;
}

static bool is_write(enum facts_device_count count)
{
	return count == FACTS_WBYTES || count == FACTS_WIOS;
}

static void say_limit(const struct use *u, const char *device, char *text)
{
	const char *kind = is_write(u->count) ? "writes" : "reads";
	char requests[NUMBER_BYTES], limit[NUMBER_TEXT_BYTES], used[NUMBER_TEXT_BYTES];

	if (u->count == FACTS_RBYTES || u->count == FACTS_WBYTES)
		snprintf(text, CAUSES_TEXT_BYTES,
			 "disk limit of %s/s (%s) of %s used up: %s %s in %.1f s%s",
			 number_text_bytes(u->limit, limit), kind, device,
			 number_text_bytes(u->used, used), is_write(u->count) ? "written" : "read",
			 seconds_of_ms(u->ms), say_since(u->since));
	else
		snprintf(
			text, CAUSES_TEXT_BYTES,
			"disk limit of %llu requests/s (%s) of %s used up: %s requests in %.1f s%s",
			(unsigned long long)u->limit, kind, device, group_digits(u->used, requests),
			seconds_of_ms(u->ms), say_since(u->since));
}

/* The cgroup may read or write less than it wants. */
static bool find_disk_limit(const struct causes_case *c, uint64_t least, char *text)
{
	char name[DISK_TEXT_BYTES];
	struct use best = {};

	if (!c->facts)
		return false;
	for (uint32_t i = 0; i < c->facts->at[FACTS_END].n_devices; i++)
		for (int k = 0; k < FACTS_DEVICE_COUNTS; k++) {
			const struct facts_device *d = &c->facts->at[FACTS_END].devices[i];
			struct use use = { .device = d,
					   .count = (enum facts_device_count)k,
					   .ms = facts_phases_ms(c->facts, FACTS_DURING,
								 FACTS_IO) };

			use.limit = facts_phases_device_limit(c->facts, d, use.count, &use.since);
			use.used = facts_phases_device(c->facts, FACTS_DURING, d, use.count);
			if (find_share(&use) >= least &&
			    (!best.device || find_share(&use) > find_share(&best)))
				best = use;
		}
	if (!best.device)
		return false;
	disk_text_say(c->disks, best.device->major, best.device->minor, name);
	say_limit(&best, name, text);
	return true;
}

/* Returns the sum of onset and during. */
static uint64_t sum_device(const struct facts_phases *f, const struct facts_device *d,
			   enum facts_device_count count)
{
	return facts_phases_device(f, FACTS_ONSET, d, count) +
	       facts_phases_device(f, FACTS_DURING, d, count);
}

/* The cgroup waited for a device, and the device worked for it. */
static bool find_disk(const struct causes_case *c, uint64_t least, char *text)
{
	char name[DISK_TEXT_BYTES], requests[NUMBER_BYTES], bytes[NUMBER_TEXT_BYTES];
	const struct facts_device *best = NULL;
	uint64_t most = 0;
	bool writes = false;

	for (uint32_t i = 0; c->facts && i < c->facts->at[FACTS_END].n_devices; i++) {
		const struct facts_device *d = &c->facts->at[FACTS_END].devices[i];

		for (int k = FACTS_RIOS; k <= FACTS_WIOS; k++) {
			uint64_t n = sum_device(c->facts, d, (enum facts_device_count)k);

			if (n <= most || n < least)
				continue;
			best = d;
			most = n;
			writes = k == FACTS_WIOS;
		}
	}
	if (!best)
		return false;
	disk_text_say(c->disks, best->major, best->minor, name);
	snprintf(text, CAUSES_TEXT_BYTES, "%s %s %s in %s requests while this cgroup waited %.1f s",
		 name, writes ? "wrote" : "read",
		 number_text_bytes(sum_device(c->facts, best, writes ? FACTS_WBYTES : FACTS_RBYTES),
				   bytes),
		 group_digits(most, requests), seconds_of_ms(c->stalled_ms));
	return true;
}

static const struct {
	bool (*find)(const struct causes_case *c, uint64_t least, char *text);
	uint64_t least;
	unsigned int rank[CAUSES_TRIGGER_COUNT_];
} causes[] = {
#define CAUSE(name, least, cpu, memory, io, other) \
	{ find_##name, least, { cpu, memory, io, other } },
#include "consumer/facts/causes.def"
#undef CAUSE
};

bool causes_find(const struct causes_case *c, enum cause_id *ret_id, char text[CAUSES_TEXT_BYTES])
{
	char sentence[CAUSES_TEXT_BYTES];
	unsigned int best = 0;

	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		unsigned int rank = causes[i].rank[c->trigger];

		if (!rank || (best && rank >= best) ||
		    !causes[i].find(c, causes[i].least, sentence))
			continue;
		best = rank;
		*ret_id = (enum cause_id)i;
		memcpy(text, sentence, sizeof(sentence));
	}
	return best > 0;
}

bool causes_say(const struct causes_case *c, enum cause_id id, char text[CAUSES_TEXT_BYTES])
{
	return causes[id].find(c, causes[id].least, text);
}
