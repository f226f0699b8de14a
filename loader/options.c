/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/options.h"

#include <string.h>

#include "loader/bpffs/bpfdir.h"
#include "shared/abi/abi.h"
#include "shared/tools/macro.h"

#define WATCH_CPU_BYTES                                                                         \
	(sizeof(struct slot_counters) + sizeof(struct slot_switches) +                          \
	 sizeof(struct slot_accounts) + sizeof(struct slot_locks) + sizeof(struct slot_block) + \
	 sizeof(struct slot_sockets) + sizeof(struct slot_reclaim))

_Static_assert((WATCH_CPU_BYTES * 10 + 512) / 1024 == 5,
	       "--watches, and docs/operations.md: 0.5 KiB per CPU");
_Static_assert(SCOPE_PREFIXES <= OPTION_TABLE_TIMES_MAX, "--scope has no room for its prefixes");

static bool is_private_dir(const char *path)
{
	return strcmp(path, "/sys/fs/bpf") != 0;
}

static bool is_cgroup_prefix(const char *prefix)
{
	return prefix[0] == '/' && strlen(prefix) < CGROUP_PREFIX_BYTES;
}

/* Memory is the kernel's pinned memory when the set is loaded. */
static const struct option_row rows[] = {
	OPTION_ROW(NUMBER, FOR_LOAD, hz, "hz", .value = "N", .min = 5, .max = 999, .preset = "97",
		   .help = "rate of the sampling event on each CPU"),
	OPTION_ROW(POWER, FOR_LOAD, samples_kib, "samples-ring-kib", .value = "N", .min = 64,
		   .max = 1048576, .preset = "4096",
		   .help = "ring of stack samples; costs its size"),
	OPTION_ROW(POWER, FOR_LOAD, events_kib, "events-ring-kib", .value = "N", .min = 4,
		   .max = 65536, .preset = "256",
		   .help = "ring of discovery events; costs its size"),
	OPTION_ROW(POWER, FOR_LOAD, errors_kib, "errors-ring-kib", .value = "N", .min = 4,
		   .max = 65536, .preset = "64",
		   .help = "ring of kernel-side errors; costs its size"),
	OPTION_ROW(
		NUMBER, FOR_LOAD, watches, "watches", .value = "N", .min = 1, .max = 65536,
		.preset = "1024",
		.help = "cgroups watched at once, and as many below them; each costs 0.4 KiB, and 0.5 "
			"KiB per possible CPU"),
	OPTION_ROW(NUMBER, FOR_LOAD, targets, "targets", .value = "N", .min = 256, .max = 1048576,
		   .preset = "16384", .help = "processes known at once; each costs 104 bytes"),
	OPTION_ROW(NUMBER, FOR_LOAD, rules, "rules", .value = "N", .min = 16, .max = 1048576,
		   .preset = "10240",
		   .help = "rules; each in use costs 80 bytes by name and 320 by cgroup, twice "
			   "during a change"),
	OPTION_ROW(NUMBER, FOR_LOAD, threads, "threads", .value = "N", .min = 16, .max = 1048576,
		   .preset = "16384",
		   .help = "threads with a time account at once; each costs 512 bytes during a "
			   "session"),
	OPTION_ROW(NUMBER, FOR_LOAD, locks, "locks", .value = "N", .min = 4, .max = 1048576,
		   .preset = "4096",
		   .help = "locks that threads waited for at once; each costs 768 bytes during a "
			   "session"),
	OPTION_ROW(NUMBER, FOR_LOAD, long_waits, "long-waits", .value = "N", .min = 4,
		   .max = 1048576, .preset = "65536",
		   .help = "waits of 1 ms and more, for wait chains; each costs 128 bytes during a "
			   "session"),
	OPTION_ROW(NUMBER, FOR_LOAD, unwind_kib, "unwind-pool-kib", .value = "N", .min = 1024,
		   .max = 1048576, .preset = "32768",
		   .help = "unwind rows of all files; costs its size"),
	OPTION_ROW(NUMBER, FOR_LOAD, unwind_tables, "unwind-tables", .value = "N", .min = 16,
		   .max = 65536, .preset = "512",
		   .help = "processes unwound by rows at once; each costs 16 KiB"),
	OPTION_ROW(PATH, FOR_LOAD | FOR_UNLOAD | FOR_BROKER, bpf_dir, "bpf-dir", .value = "DIR",
		   .max = BPFDIR_PATH_BYTES, .check = is_private_dir,
		   .want = "and not the system's own /sys/fs/bpf", .preset = "/run/trocar/bpf",
		   .help = "directory of the pins"),
	OPTION_ROW(CHOICE, FOR_LOAD, always, "always", .value = "WHAT", .choices = "oncpu|none",
		   .preset = "none",
		   .help = "oncpu: the sampler ticks on every CPU from the load on, for hosts "
			   "without the broker"),
	OPTION_ROW(CHOICE, FOR_LOAD, runtimes, "runtimes", .value = "on|off", .choices = "on|off",
		   .preset = "on",
		   .help = "off: the functions of interpreted programs stay unknown; their names, "
			   "files and lines leave no process"),
	OPTION_ROW(TEXT, FOR_LOAD, scope, "scope", .value = "PREFIX", .times = SCOPE_PREFIXES,
		   .check = is_cgroup_prefix,
		   .want = "the beginning of a cgroup's path, as /system.slice/nginx, under 256 "
			   "bytes",
		   .help = "sample only cgroups under PREFIX"),
	OPTION_ROW(TEXT, FOR_LOAD, group, "group", .value = "GROUP", .min = 1, .preset = "trocar",
		   .want = "a group's name or number", .help = "group that may open the pins"),
	OPTION_ROW(TEXT, FOR_BROKER, user, "user", .value = "USER", .min = 1, .preset = "trocar",
		   .want = "a user's name or number",
		   .help = "the consumer's user; no other user may connect"),
	/* Finds processes by walks over all tasks, as on kernels before 6.7. For tests. */
	OPTION_ROW(SET, FOR_LOAD, walk_tasks, "walk-tasks"),
	OPTION_ROW(SET, FOR_LOAD, replace, "replace",
		   .help = "replace a set that is already loaded"),
	OPTION_ROW(SET, FOR_UNLOAD, keep_mount, "keep-mount",
		   .help = "remove the pins; keep the directory and the mount"),
	OPTION_ROW(SET, FOR_CHECK, json, "json", .help = "one JSON object"),
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), "trocar-loader help" };

int options_parse(uint32_t verb, int argc, char *const argv[], struct options *ret_options,
		  char fault[OPTION_TABLE_FAULT_BYTES])
{
	struct options o = { 0 };
	int r;

	r = option_table_parse(&table, verb, argc, argv, &o, NULL, fault);
	if (r < 0)
		return r;
	*ret_options = o;
	return 0;
}

bool options_always_oncpu(const struct options *o)
{
	return strcmp(o->always, "oncpu") == 0;
}

void options_help(uint32_t verb, FILE *out)
{
	option_table_help(&table, verb, "    ", out);
}
