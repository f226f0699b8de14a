/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * beside BPF_DIR HZ WINDOW_MS ROUNDS GROUP PEER_ID [OBJECT...]: what a sample of the cgroup at
 * GROUP costs by the kernel's own BPF statistics, for ticks that met the kernel and ticks that met
 * user mode apart: for a second copy of the sampler that the agent of BPF_DIR runs, with its maps;
 * for the programs of beside.bpf.c; for a sampler that only walks (alone.bpf.c); and for another
 * profiler's program (PEER_ID; 0: none).
 *
 * Each ticks on events of the threads of the cgroup, so that no tick meets another process. They
 * tick in turn, a window each: those that ask the kernel for stacks would keep its tables warm for
 * each other. Before that each ticks WARM_HZ times a second for a while: what a program learns of a
 * service in its first minutes it has learnt then.
 *
 * With OBJECTs (trocar.bpf.o of other builds) it compares their samplers, and them alone. They tick
 * in the same windows, so that a change of the load is the same for each; at rates that lie
 * APART_HZ apart, so that they seldom tick at the same time, and that change places from round to
 * round.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/trocar.skel.h"
#include "shared/abi/abi.h"
#include "shared/tools/macro.h"
#include "tests/bench/alone.h"
#include "tests/bench/alone.skel.h"
#include "tests/bench/beside.skel.h"
#include "tests/bench/tool.h"

#define MAPS_MAX    64
#define THREADS_MAX 512
#define WARM_HZ	    1999
#define WARM_MS	    500
#define APART_HZ    7

enum mode { MODE_KERNEL, MODE_USER, MODES };
enum who { FLOOR, LEAST, WALK, OURS, BARE, PROFILE, PEER, OTHER, WHO_COUNT = OTHER + 8 };

static const char *const mode_names[MODES] = { "kernel", "user" };
static const char *const who_names[WHO_COUNT] = {
	"floor",  "least",  "walk",   "ours",	"bare",	  "profile", "peer",  "other",
	"other2", "other3", "other4", "other5", "other6", "other7",  "other8"
};

static struct {
	int programs[WHO_COUNT];   /* descriptors; -1: is not there */
	int targets_fd, tables_fd; /* the agent's `targets`, and alone_tables */
	int counts_fd;		   /* alone_counts */
	int events[WHO_COUNT][MODES][THREADS_MAX];
	size_t n_events[WHO_COUNT][MODES];
	struct tool_values ns[MODES][WHO_COUNT];
	uint64_t runs[MODES][WHO_COUNT];
} b;

/* Maps of the sampler's own, in which two copies must not meet: all else is the agent's. */
static bool is_own(const char *name)
{
	static const char *const own[] = {
		"stack_scratch",   "stack_cache", "stack_code", "phases",
		"kernel_stack_sc", "orc_",	  ".rodata",	"totals"
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strncmp(name, own[i], strlen(own[i])) || strstr(name, ".rodata"))
			return true;
	return false;
}

/* The maps that the agent's sampler uses, its private ones too, take the place of the copy's. */
static void borrow_maps(const char *dir, struct bpf_object *object)
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
		map = bpf_object__find_map_by_name(object, map_info.name);
		if (map && !is_own(map_info.name) && bpf_map__reuse_fd(map, map_fd) < 0)
			tool_die("map %s", map_info.name);
		close(map_fd);
	}
	close(fd);
}

/* As the loader has it (loader/kernelset.c), for a build whose programs have no skeleton here. */
static void tell_cast(struct bpf_object *object)
{
	const struct btf *btf = bpf_object__btf(object);
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	int32_t id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *section = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);
	size_t bytes;
	const void *initial = map ? bpf_map__initial_value(map, &bytes) : NULL;
	bool *data = initial && section ? malloc(bytes) : NULL;

	if (!data)
		tool_die("the constants of an object");
	memcpy(data, initial, bytes);
	for (int i = 0; i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *info = &btf_var_secinfos(section)[i];
		const struct btf_type *var = btf__type_by_id(btf, info->type);

		if (!strcmp(btf__name_by_offset(btf, var->name_off), "has_cast"))
			data[info->offset] = tool_has_function("bpf_iter_task_vma_new");
	}
	if (bpf_map__set_initial_value(map, data, bytes) < 0)
		tool_die("the constants of an object");
	free(data);
}

/* As the loader has it (loader/kernel_rows.h), for a build whose programs have no skeleton here. */
static void learn_kernel_rows(const struct bpf_object *object)
{
	const struct bpf_program *symbols = bpf_object__find_program_by_name(object, "orc_symbols");
	const struct bpf_program *learn = bpf_object__find_program_by_name(object, "orc_learn");
	struct bpf_link *link = symbols ? bpf_program__attach_iter(symbols, NULL) : NULL;
	LIBBPF_OPTS(bpf_test_run_opts, run);
	char byte;
	int fd;

	if (!link || !learn)
		return; /* it asks the kernel for each stack */
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0 || read(fd, &byte, sizeof(byte)) != 0 ||
	    bpf_prog_test_run_opts(bpf_program__fd(learn), &run) < 0)
		tool_die("the kernel's unwind tables");
	close(fd);
	bpf_link__destroy(link);
}

/*
 * Loads the program `name` of an object, with the agent's maps but for those that two samplers do
 * not share. Returns its descriptor.
 */
static int load_copy(const char *dir, struct bpf_object *object, const char *name)
{
	const char *const needed[] = { name, "orc_symbols", "orc_learn" };
	struct bpf_program *program;

	if (!object)
		tool_die("the sampler's object");
	bpf_object__for_each_program(program, object)
	{
		bool is_needed = false;

		for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
			is_needed |= !strcmp(bpf_program__name(program), needed[i]);
		bpf_program__set_autoload(program, is_needed);
	}
	borrow_maps(dir, object);
	tell_cast(object);
	if (bpf_object__load(object) < 0)
		tool_die("load");
	learn_kernel_rows(object);
	return bpf_program__fd(bpf_object__find_program_by_name(object, name));
}

/* Tells the sampler that only walks which tables the processes have now. */
static void tell_tables(void)
{
	struct process_key key, *last = NULL;
	struct target target;

	for (; bpf_map_get_next_key(b.targets_fd, last, &key) == 0; last = &key) {
		uint32_t number = key.tgid & (ALONE_PROCESSES - 1);

		if (bpf_map_lookup_elem(b.targets_fd, &key, &target) == 0 && target.unwind &&
		    bpf_map_update_elem(b.tables_fd, &number, &target.unwind, BPF_ANY) < 0)
			tool_die("alone_tables");
	}
	errno = 0;
}

static int load_walk(const char *dir)
{
	size_t bytes;
	const void *elf = alone__elf_bytes(&bytes);
	struct bpf_object *object = bpf_object__open_mem(elf, bytes, NULL);
	int fd = load_copy(dir, object, "walk_alone");
	char path[4096];

	snprintf(path, sizeof(path), "%s/targets", dir);
	b.targets_fd = bpf_obj_get(path);
	if (b.targets_fd < 0)
		tool_die("%s", path);
	b.tables_fd = bpf_map__fd(bpf_object__find_map_by_name(object, "alone_tables"));
	b.counts_fd = bpf_map__fd(bpf_object__find_map_by_name(object, "alone_counts"));
	tell_tables();
	return fd;
}

static void load(const char *dir, uint32_t peer_id)
{
	struct beside *beside = beside__open_and_load();
	size_t bytes;
	const void *ours = trocar__elf_bytes(&bytes);

	if (!beside)
		tool_die("the BPF object");
	b.programs[FLOOR] = bpf_program__fd(beside->progs.beside_floor);
	b.programs[LEAST] = bpf_program__fd(beside->progs.beside_least);
	b.programs[BARE] = bpf_program__fd(beside->progs.beside_bare);
	b.programs[PROFILE] = bpf_program__fd(beside->progs.beside_profile);
	b.programs[OURS] = load_copy(dir, bpf_object__open_mem(ours, bytes, NULL), "sampler");
	b.programs[WALK] = load_walk(dir);
	b.programs[PEER] = peer_id ? bpf_prog_get_fd_by_id(peer_id) : -1;
	if (peer_id && b.programs[PEER] < 0)
		tool_die("program %u", peer_id);
}

/* Returns how many there are. */
static uint32_t load_others(const char *dir, char **objects)
{
	uint32_t count = 0;

	for (; objects[count] && OTHER + count < WHO_COUNT; count++)
		b.programs[OTHER + count] =
			load_copy(dir, bpf_object__open_file(objects[count], NULL), "sampler");
	errno = 0;
	if (objects[count])
		tool_die("more than %d objects", WHO_COUNT - OTHER);
	return count;
}

/* An event of the thread and its children, in ticks that meet one mode only, disabled. */
static void open_event(int tid, enum mode mode, enum who who, uint32_t hz)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 1000000000 / hz,
					.disabled = 1,
					.inherit = 1,
					.exclude_user = mode == MODE_KERNEL,
					.exclude_kernel = mode == MODE_USER };
	int fd;

	fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && errno == ESRCH)
		return; /* it has ended */
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, b.programs[who]) < 0)
		tool_die("an event of thread %d", tid);
	errno = 0;
	b.events[who][mode][b.n_events[who][mode]++] = fd;
}

/* Returns how many threads the group has. */
static int read_threads(const char *group, int *tids)
{
	char path[4200];
	int count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.threads", group);
	file = fopen(path, "re");
	if (!file)
		tool_die("%s", path);
	while (count < THREADS_MAX && fscanf(file, "%d", &tids[count]) == 1)
		count++;
	fclose(file);
	errno = 0;
	if (!count)
		tool_die("nobody is in %s", group);
	return count;
}

/* Of all programs that are there; others tick more seldom, by the `round`. */
static void open_events(const char *group, uint32_t hz, uint32_t round, uint32_t n_others)
{
	int tids[THREADS_MAX], count = read_threads(group, tids);

	for (int who = 0; who < WHO_COUNT; who++) {
		uint32_t less = n_others ? ((uint32_t)who + round) % n_others * APART_HZ : 0;

		for (int i = 0; i < count && b.programs[who] >= 0; i++)
			for (int mode = 0; mode < MODES; mode++)
				open_event(tids[i], mode, who, hz - less);
	}
}

static void close_events(void)
{
	for (int who = 0; who < WHO_COUNT; who++)
		for (int mode = 0; mode < MODES; mode++)
			while (b.n_events[who][mode])
				close(b.events[who][mode][--b.n_events[who][mode]]);
}

static void turn(enum who who, enum mode mode, unsigned long request)
{
	for (size_t i = 0; i < b.n_events[who][mode]; i++)
		if (ioctl(b.events[who][mode][i], request, 0) < 0)
			tool_die("ioctl of an event");
}

static void window(enum who who, enum mode mode, uint32_t ms)
{
	struct tool_cost cost;

	if (who == WALK)
		tell_tables();
	turn(who, mode, PERF_EVENT_IOC_ENABLE);
	cost = tool_cost(b.programs[who]);
	tool_sleep_ms(ms);
	cost = tool_cost_since(b.programs[who], cost);
	turn(who, mode, PERF_EVENT_IOC_DISABLE);
	tool_values_add(&b.ns[mode][who], tool_cost_each(cost));
	b.runs[mode][who] += cost.runs;
}

/* All programs in the same window. */
static void window_of_all(enum mode mode, uint32_t ms)
{
	struct tool_cost costs[WHO_COUNT];

	for (int who = 0; who < WHO_COUNT; who++)
		if (b.programs[who] >= 0) {
			costs[who] = tool_cost(b.programs[who]);
			turn(who, mode, PERF_EVENT_IOC_ENABLE);
		}
	tool_sleep_ms(ms);
	for (int who = 0; who < WHO_COUNT; who++)
		if (b.programs[who] >= 0) {
			turn(who, mode, PERF_EVENT_IOC_DISABLE);
			costs[who] = tool_cost_since(b.programs[who], costs[who]);
			tool_values_add(&b.ns[mode][who], tool_cost_each(costs[who]));
			b.runs[mode][who] += costs[who].runs;
		}
}

static void warm_up(const char *group)
{
	open_events(group, WARM_HZ, 0, 0);
	for (int who = 0; who < WHO_COUNT; who++)
		for (int mode = 0; mode < MODES && b.programs[who] >= 0; mode++) {
			turn(who, mode, PERF_EVENT_IOC_ENABLE);
			tool_sleep_ms(WARM_MS);
			turn(who, mode, PERF_EVENT_IOC_DISABLE);
		}
	close_events();
}

static void warm_up_walks(const char *group)
{
	const struct alone_counts none = {};
	uint32_t zero = 0;

	tell_tables();
	warm_up(group);
	if (bpf_map_update_elem(b.counts_fd, &zero, &none, BPF_ANY) < 0)
		tool_die("alone_counts");
}

/* A tick without its walk costs little, and shows nothing. */
static void check_walks(void)
{
	struct alone_counts counts = {};
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(b.counts_fd, &zero, &counts) < 0)
		tool_die("alone_counts");
	errno = 0;
	if (counts.missed * 10 > counts.walked)
		tool_die("walks alone: %llu ticks had no table, %llu had one",
			 (unsigned long long)counts.missed, (unsigned long long)counts.walked);
}

static void print(void)
{
	for (int mode = 0; mode < MODES; mode++) {
		printf("%s\"%s\":{", mode ? "," : "{", mode_names[mode]);
		for (int who = 0, n = 0; who < WHO_COUNT; who++)
			if (b.programs[who] >= 0)
				printf("%s\"%s\":{\"ns\":%.1f,\"runs\":%llu}", n++ ? "," : "",
				       who_names[who], tool_values_median(&b.ns[mode][who]),
				       (unsigned long long)b.runs[mode][who]);
		printf("}");
	}
	printf("}\n");
}

static void compare_others(const char *group, uint32_t hz, uint32_t ms, uint32_t rounds,
			   uint32_t n_others)
{
	warm_up(group);
	for (uint32_t i = 0; i < rounds; i++) {
		open_events(group, hz, i, n_others);
		for (int mode = 0; mode < MODES; mode++)
			window_of_all(mode, ms);
		close_events();
	}
}

static void compare_peers(const char *group, uint32_t hz, uint32_t ms, uint32_t rounds)
{
	warm_up_walks(group);
	open_events(group, hz, 0, 0);
	for (uint32_t i = 0; i < rounds; i++)
		for (int mode = 0; mode < MODES; mode++)
			for (int who = 0; who < WHO_COUNT; who++)
				if (b.programs[who] >= 0)
					window(who, mode, ms);
	check_walks();
}

int main(int argc, char **argv)
{
	uint32_t hz = (uint32_t)tool_number(argc, argv, 2, 1, 10000);
	uint32_t ms = (uint32_t)tool_number(argc, argv, 3, 10, 60000);
	uint32_t rounds = (uint32_t)tool_number(argc, argv, 4, 1, 1000), n_others;
	uint32_t peer = (uint32_t)tool_number(argc, argv, 6, 0, INT32_MAX);

	for (int who = 0; who < WHO_COUNT; who++)
		b.programs[who] = -1;
	n_others = load_others(argv[1], argv + MIN(argc, 7));
	if (n_others && hz <= (n_others - 1) * APART_HZ)
		tool_die("%u programs need more than %u Hz", n_others, (n_others - 1) * APART_HZ);
	if (!n_others)
		load(argv[1], peer);
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		tool_die("statistics");
	if (n_others)
		compare_others(argv[5], hz, ms, rounds, n_others);
	else
		compare_peers(argv[5], hz, ms, rounds);
	print();
	return 0;
}
