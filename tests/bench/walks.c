/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * walks BPF_DIR HZ WINDOW_MS ROUNDS ROWS_PID [POINTERS_PID]: what taking a user stack costs by the
 * kernel's own BPF statistics, in six programs that tick all the time, a sixth of a period after
 * each other: nothing, by the rows that the agent of BPF_DIR has published for ROWS_PID, by frame
 * pointers and by build-ids for POINTERS_PID (default ROWS_PID), and the kernel's stacks of
 * ROWS_PID by remembered rows and by bpf_get_stack.
 * walks sizes: the bytes of a sample without its frames, and of a frame.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared/abi/abi.h"
#include "shared/tools/macro.h"
#include "tests/bench/tool.h"
#include "tests/bench/walk.h"
#include "tests/bench/walk.skel.h"

#define CPUS_MAX 256
#define MAPS_MAX 64
#define TABLE_MS 10000 /* the agent publishes within that */

static const char *const names[WALK_KINDS] = {
	"none", "rows", "pointers", "ids", "kernel", "asked"
};

static struct {
	struct walk *skel;
	const struct bpf_program *programs[WALK_KINDS];
	struct walk_want wants[WALK_KINDS];
	int targets_fd, cpus;
	struct tool_values ns[WALK_KINDS];
	struct walk_count sums[WALK_KINDS];
} b;

/* The maps that the agent's sampler uses, its private ones too, take the place of ours. */
static void borrow_maps(const char *dir)
{
	uint32_t ids[MAPS_MAX], bytes = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = { .nr_map_ids = MAPS_MAX, .map_ids = (uint64_t)(uintptr_t)ids };
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/sampler", dir);
	fd = bpf_obj_get(path);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &bytes) < 0)
		tool_die("%s", path);
	for (uint32_t i = 0; i < MIN(info.nr_map_ids, (uint32_t)MAPS_MAX); i++) {
		struct bpf_map_info map_info = {};
		uint32_t map_bytes = sizeof(map_info);
		struct bpf_map *map;
		int map_fd = bpf_map_get_fd_by_id(ids[i]);

		if (map_fd < 0 || bpf_obj_get_info_by_fd(map_fd, &map_info, &map_bytes) < 0)
			tool_die("a map of %s", path);
		map = bpf_object__find_map_by_name(b.skel->obj, map_info.name);
		if (map && map != b.skel->maps.stack_scratch && map != b.skel->maps.stack_cache &&
		    map != b.skel->maps.stack_code && bpf_map__reuse_fd(map, map_fd) < 0)
			tool_die("map %s", map_info.name);
		close(map_fd);
	}
	close(fd);
}

static void load(const char *dir)
{
	b.skel = walk__open();
	if (!b.skel)
		tool_die("the BPF object");
	borrow_maps(dir);
	if (walk__load(b.skel) < 0)
		tool_die("load");
	b.programs[WALK_NONE] = b.skel->progs.walk_none;
	b.programs[WALK_ROWS] = b.skel->progs.walk_rows;
	b.programs[WALK_POINTERS] = b.skel->progs.walk_pointers;
	b.programs[WALK_IDS] = b.skel->progs.walk_ids;
	b.programs[WALK_KERNEL] = b.skel->progs.walk_kernel;
	b.programs[WALK_ASKED] = b.skel->progs.walk_asked;
	b.targets_fd = bpf_map__fd(b.skel->maps.targets);
}

/* The number of the table that `tgid` has by now; false while it has none. */
static bool find_table(uint32_t tgid, uint32_t *ret_table)
{
	struct process_key key, *at = NULL;
	struct target target;

	while (bpf_map_get_next_key(b.targets_fd, at, &key) == 0) {
		at = &key;
		if (key.tgid != tgid || bpf_map_lookup_elem(b.targets_fd, &key, &target) < 0 ||
		    !target.unwind)
			continue;
		*ret_table = target.unwind - 1;
		return true;
	}
	return false;
}

/* Anew before each window: the agent may have made another table meanwhile. */
static void want(void)
{
	uint32_t waited_ms = 0;

	errno = 0;
	while (!find_table(b.wants[WALK_ROWS].tgid, &b.wants[WALK_ROWS].table)) {
		if ((waited_ms += 10) > TABLE_MS)
			tool_die("process %u has no table", b.wants[WALK_ROWS].tgid);
		tool_sleep_ms(10);
	}
	for (uint32_t k = 0; k < WALK_KINDS; k++)
		if (bpf_map_update_elem(bpf_map__fd(b.skel->maps.wants), &k, &b.wants[k], BPF_ANY) <
		    0)
			tool_die("wants");
}

static struct walk_count count(uint32_t kind)
{
	struct walk_count each[CPUS_MAX], sum = {};

	if (bpf_map_lookup_elem(bpf_map__fd(b.skel->maps.counts), &kind, each) < 0)
		tool_die("counts");
	for (int i = 0; i < b.cpus; i++) {
		sum.hits += each[i].hits;
		sum.frames += each[i].frames;
		sum.complete += each[i].complete;
	}
	return sum;
}

static void attach(uint32_t hz)
{
	for (int cpu = 0; cpu < b.cpus; cpu++)
		for (int k = 0; k < WALK_KINDS; k++) {
			int fd = tool_tick_open(cpu, hz);

			if (fd == -ENODEV)
				continue; /* a possible CPU that is not online */
			if (fd < 0)
				tool_die("perf_event_open");
			if (!bpf_program__attach_perf_event(b.programs[k], fd))
				tool_die("attach %s", bpf_program__name(b.programs[k]));
			usleep(1000000 / hz / WALK_KINDS);
		}
}

/* The price of a hit: minus that of ticks of other processes, which is the floor. */
static void note(uint32_t kind, struct tool_cost cost, struct walk_count hit, double floor_ns)
{
	if (hit.hits)
		tool_values_add(&b.ns[kind], ((double)cost.ns -
					      ((double)cost.runs - (double)hit.hits) * floor_ns) /
						     (double)hit.hits);
	b.sums[kind].hits += hit.hits;
	b.sums[kind].frames += hit.frames;
	b.sums[kind].complete += hit.complete;
}

static void window(uint32_t ms)
{
	struct walk_count before[WALK_KINDS];
	struct tool_cost cost[WALK_KINDS];
	double floor_ns;

	want();
	for (uint32_t k = 0; k < WALK_KINDS; k++) {
		before[k] = count(k);
		cost[k] = tool_cost(bpf_program__fd(b.programs[k]));
	}
	tool_sleep_ms(ms);
	for (uint32_t k = 0; k < WALK_KINDS; k++)
		cost[k] = tool_cost_since(bpf_program__fd(b.programs[k]), cost[k]);
	floor_ns = tool_cost_each(cost[WALK_NONE]);
	for (uint32_t k = 0; k < WALK_KINDS; k++) {
		struct walk_count now = count(k);

		now.hits -= before[k].hits;
		now.frames -= before[k].frames;
		now.complete -= before[k].complete;
		note(k, cost[k], now, floor_ns);
	}
}

static void print(void)
{
	for (int k = 0; k < WALK_KINDS; k++) {
		const struct walk_count *s = &b.sums[k];
		double hits = s->hits ? (double)s->hits : 1;

		printf("%s\"%s\":{\"ns\":%.1f,\"hits\":%llu,\"frames\":%.2f,\"complete\":%.5f}",
		       k ? "," : "{", names[k], tool_values_median(&b.ns[k]),
		       (unsigned long long)s->hits, (double)s->frames / hits,
		       (double)s->complete / hits);
	}
	printf("}\n");
}

static int print_sizes(void)
{
	printf("{\"head_bytes\":%zu,\"frame_bytes\":%zu}\n", sizeof(struct sample),
	       sizeof(uint64_t));
	return 0;
}

static void measure(const char *dir, uint32_t hz, uint32_t ms, uint32_t rounds)
{
	load(dir);
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		tool_die("statistics");
	want();
	attach(hz);
	tool_sleep_ms(50);
	for (uint32_t i = 0; i < rounds; i++)
		window(ms);
	print();
}

int main(int argc, char **argv)
{
	uint32_t hz, ms, rounds, by_rows, by_pointers;

	if (argc == 2 && !strcmp(argv[1], "sizes"))
		return print_sizes();
	hz = (uint32_t)tool_number(argc, argv, 2, 1, 10000);
	ms = (uint32_t)tool_number(argc, argv, 3, 10, 60000);
	rounds = (uint32_t)tool_number(argc, argv, 4, 1, 1000);
	by_rows = (uint32_t)tool_number(argc, argv, 5, 1, INT32_MAX);
	by_pointers = by_rows;
	if (argc > 6)
		by_pointers = (uint32_t)tool_number(argc, argv, 6, 1, INT32_MAX);
	b.cpus = libbpf_num_possible_cpus();
	if (b.cpus < 1 || b.cpus > CPUS_MAX)
		tool_die("%d CPUs", b.cpus);
	b.wants[WALK_NONE].tgid = b.wants[WALK_ROWS].tgid = by_rows;
	b.wants[WALK_KERNEL].tgid = b.wants[WALK_ASKED].tgid = by_rows;
	b.wants[WALK_POINTERS].tgid = b.wants[WALK_IDS].tgid = by_pointers;
	measure(argv[1], hz, ms, rounds);
	return 0;
}
