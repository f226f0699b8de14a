/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/kernelset.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "bpf/trocar.skel.h"
#include "loader/attachments.h"
#include "loader/kernel_rows.h"
#include "loader/kernel_types.h"
#include "loader/preflight/preflight.h"
#include "loader/preflight/preflight_btf.h"
#include "shared/abi/abi.h"
#include "shared/abi/abi_hash.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/cpus.h"
#include "shared/tools/macro.h"

#define UNWIND_KIB_ELEMENTS 128 /* of 8 bytes each */

/*
 * Maps with an option for their size: offset of the option in struct options, and entries per unit
 * of the option.
 */
static const struct {
	const char *map;
	size_t offset;
	uint32_t unit, more;
	bool shared; /* the number is one owner's share (TABLE_SHARE) */
} sizes[] = {
	{ "samples", offsetof(struct options, samples_kib), 1024 },
	{ "events", offsetof(struct options, events_kib), 1024 },
	{ "errors", offsetof(struct options, errors_kib), 1024 },
	{ "slots", offsetof(struct options, watches), 1 },
	{ "counters", offsetof(struct options, watches), 1 },
	{ "switches", offsetof(struct options, watches), 1 },
	{ "account_losses", offsetof(struct options, watches), 1 },
	{ "accounts", offsetof(struct options, threads), 1, 0, true },
	{ "lock_losses", offsetof(struct options, watches), 1 },
	{ "block_losses", offsetof(struct options, watches), 1, 1 },
	{ "socket_losses", offsetof(struct options, watches), 1 },
	{ "reclaim_losses", offsetof(struct options, watches), 1, 1 },
	{ "locks", offsetof(struct options, locks), 1, 0, true },
	{ "long_waits", offsetof(struct options, long_waits), 1, 0, true },
	{ "watches", offsetof(struct options, watches), WATCH_ENTRIES },
	{ "targets", offsetof(struct options, targets), 1 },
	{ "rules_a", offsetof(struct options, rules), 1 },
	{ "rules_b", offsetof(struct options, rules), 1 },
	{ "cgroups_a", offsetof(struct options, rules), 1 },
	{ "cgroups_b", offsetof(struct options, rules), 1 },
	{ "unwind_pool", offsetof(struct options, unwind_kib), UNWIND_KIB_ELEMENTS },
	{ "unwind_process", offsetof(struct options, unwind_tables), 1 },
	{ "unwind_ranges", offsetof(struct options, unwind_tables), 1 },
	{ "runtime_owners", offsetof(struct options, watches), 1 },
	{ "runtime_facts", offsetof(struct options, unwind_tables), 1 },
};

/*
 * Prints libbpf's warnings on stderr unchanged: the verifier's log has many lines and stays whole.
 */
__attribute__((format(printf, 2, 0))) static int
print_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level > LIBBPF_WARN)
		return 0;
	return vfprintf(stderr, format, arguments);
}

static int resize_maps(struct trocar *skeleton, const struct options *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(skeleton->obj, sizes[i].map);
		uint64_t number = *(const uint64_t *)((const char *)o + sizes[i].offset);
		int r;

		if (!map)
			return -ENOENT;
		if (sizes[i].shared)
			number += (number + TABLE_SHARE - 1) / TABLE_SHARE;
		r = bpf_map__set_max_entries(map, (uint32_t)number * sizes[i].unit + sizes[i].more);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Sets the sizes of shared tables in the programs. */
static void set_table_sizes(struct trocar *skeleton)
{
	const struct bpf_map *const maps[] = {
#define TABLE(id, map) [TABLE_##id] = skeleton->maps.map,
#include "shared/abi/tables.def"
#undef TABLE
	};

	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		((uint32_t *)skeleton->rodata->table_sizes)[i] = bpf_map__max_entries(maps[i]);
}

/* Returns whether the kernel has the feature of a row of the preflight. */
static bool has_need(struct preflight_btf *btf, enum preflight_id id)
{
	struct preflight_row row;

	preflight_ask(btf, id, &row);
	return row.state == PREFLIGHT_PRESENT;
}

/*
 * A kernel with the open-coded iterator has bpf_task_from_pid too (6.2 and newer), so it can load
 * the programs that find a process by its pid. It also has bpf_rdonly_cast (6.2).
 */
static int choose_programs(struct trocar *skeleton, bool vma_open_coded, bool oom_victims)
{
	struct bpf_program *const newer[] = { skeleton->progs.vmas_open, skeleton->progs.vmas_pid,
					      skeleton->progs.ranges_pid };
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(newer); i++) {
		r = bpf_program__set_autoload(newer[i], vma_open_coded);
		if (r < 0)
			return r;
	}
	r = bpf_program__set_autoload(skeleton->progs.vmas_tree, !vma_open_coded);
	if (r < 0)
		return r;
	return bpf_program__set_autoload(skeleton->progs.on_oom, oom_victims);
}

/*
 * Makes libbpf relocate by the copy of the kernel's types in `fd`, where they have other numbers.
 */
static int use_types(struct trocar *skeleton, int fd, struct preflight_btf *btf)
{
	const struct {
		const char *name;
		const volatile uint32_t *number;
	} casts[] = {
		{ "task_struct", &skeleton->rodata->cast_task_struct },
		{ "timespec64", &skeleton->rodata->cast_timespec64 },
		{ "pt_regs", &skeleton->rodata->cast_pt_regs },
		{ "file", &skeleton->rodata->cast_file },
		{ "list_head", &skeleton->rodata->cast_list_head },
	};
	int r = preflight_btf_load(btf);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(casts); i++) {
		int id = preflight_btf_find(btf, BTF_KIND_STRUCT, casts[i].name);

		if (id < 0)
			r = id;
		else
			*(uint32_t *)casts[i].number = (uint32_t)id;
	}
	return r < 0 ? r : kernel_types_fill(fd, btf->btf, bpf_object__btf(skeleton->obj));
}

/* A kernel without modules has no module tracepoints. */
static int choose_module_programs(struct trocar *skeleton, struct preflight_btf *btf)
{
	bool has_modules = preflight_btf_find(btf, BTF_KIND_TYPEDEF, "btf_trace_module_load") > 0;
	int r = bpf_program__set_autoload(skeleton->progs.on_module_load, has_modules);

	if (r < 0)
		return r;
	return bpf_program__set_autoload(skeleton->progs.on_module_free, has_modules);
}

/*
 * Makes the kernel side find the layout of page tables. On failure the load continues; `abi`
 * records it.
 */
static bool learn_pages(const struct programs *programs, const struct trocar *skeleton)
{
	int fd = bpf_program__fd(programs_find(programs, skeleton->progs.page_learn));
	LIBBPF_OPTS(bpf_test_run_opts, run);

	return bpf_prog_test_run_opts(fd, &run) == 0 && run.retval == 1;
}

static bool learn_rows(const struct programs *programs, const struct trocar *skeleton)
{
	return kernel_rows_learn(programs_find(programs, skeleton->progs.orc_symbols),
				 programs_find(programs, skeleton->progs.orc_learn));
}

static int fill_scope(const struct trocar *skeleton, const struct options *o)
{
	for (size_t i = 0; i < o->scope.count; i++) {
		struct cgroup_key key = { .prefix_bits = 8 * (uint32_t)strlen(o->scope.items[i]) };
		uint32_t one = 1;

		memcpy(key.path, o->scope.items[i], strlen(o->scope.items[i]));
		if (bpf_map_update_elem(bpf_map__fd(skeleton->maps.scope), &key, &one, BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}

static void destroy_skeleton(struct trocar **skeleton)
{
	trocar__destroy(*skeleton);
}

/* Returns the length of a jiffy, the unit of the coarse clocks. */
static uint32_t read_tick_ns(void)
{
	struct timespec tick;

	/* This is a vDSO call, not a system call. */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) < 0 || tick.tv_sec)
		return LOOK_TICK_NS;
	return (uint32_t)tick.tv_nsec;
}

/*
 * Returns the number of the argument of balance_dirty_pages that is the pause, by its number of
 * arguments: the last but one (include/trace/events/writeback.h). 0: the form of the tracepoint is
 * not known.
 */
static uint32_t find_dirty_pause(struct preflight_btf *btf)
{
	/* The first argument is the tracepoint's own. */
	unsigned int n = preflight_btf_arguments(btf, "btf_trace_balance_dirty_pages");

	return n == 1 + 8 || n == 1 + 12 ? n - 3 : 0;
}

/* Sets the programs' constants of this load. */
static int set_constants(struct trocar *skeleton, const struct options *o, bool vma_open_coded)
{
	unsigned char secret[sizeof(skeleton->rodata->address_secret)];

	/* Up to 256 bytes are returned whole, or an error (getrandom(2)). */
	if (getrandom(secret, sizeof(secret), 0) < 0)
		return -errno;
	memcpy((void *)skeleton->rodata->address_secret, secret, sizeof(secret));
	set_table_sizes(skeleton);
	skeleton->rodata->scoped = o->scope.count > 0;
	skeleton->rodata->has_cast = vma_open_coded;
	skeleton->rodata->has_near = o->threads >= ACCOUNTS_NEAR_FROM;
	skeleton->rodata->tick_ns = read_tick_ns();
	skeleton->rodata->has_runtimes = !strcmp(o->runtimes, "on");
	skeleton->rodata->watch_room = (uint32_t)o->watches * (WATCH_CGROUPS - 1);
	return 0;
}

/* The kernel's features that the programs use. */
struct offer {
	bool vma_open_coded, oom_victims;
	uint32_t dirty_pause_at;
};

/* Prepares the set for this kernel and these options, up to its load. */
static int prepare_set(struct trocar *skeleton, const struct options *o, const struct offer *offer,
		       int types_fd, struct preflight_btf *btf)
{
	int r = use_types(skeleton, types_fd, btf);

	if (r == 0)
		r = resize_maps(skeleton, o);
	if (r == 0)
		r = choose_programs(skeleton, offer->vma_open_coded, offer->oom_victims);
	if (r == 0)
		r = choose_module_programs(skeleton, btf);
	if (r < 0)
		return r;
	skeleton->rodata->dirty_pause_at = offer->dirty_pause_at;
	return set_constants(skeleton, o, offer->vma_open_coded);
}

/*
 * Loads the maps and the programs. Runs programs of the first half, which collect data for the
 * kernel side, while the second half is being loaded. Always waits for the second half, also on
 * failure, because libbpf reads a file that the caller closes.
 */
static int load_set(struct trocar *skeleton, struct programs *programs, const struct options *o,
		    struct kernelset *set)
{
	int r = trocar__load(skeleton), r_other;

	if (r == 0)
		r = programs_begin(programs, skeleton);
	if (r == 0) {
		set->page_walk = learn_pages(programs, skeleton);
		set->kernel_rows = learn_rows(programs, skeleton);
		r = fill_scope(skeleton, o);
	}
	r_other = programs_end(programs);
	return r < 0 ? r : r_other;
}

int kernelset_load(const struct options *o, struct kernelset *ret_set)
{
	struct trocar *skeleton __attribute__((cleanup(destroy_skeleton))) = NULL;
	struct programs programs __attribute__((cleanup(programs_done))) = { 0 };
	struct preflight_btf btf __attribute__((cleanup(preflight_btf_done))) = { 0 };
	const struct offer offer = {
		.vma_open_coded = !o->walk_tasks && has_need(&btf, PREFLIGHT_vma_open_coded),
		.oom_victims = has_need(&btf, PREFLIGHT_oom_victims),
		.dirty_pause_at = find_dirty_pause(&btf),
	};
	struct kernelset set = {
		.vma_open_coded = offer.vma_open_coded,
		.sched_info = has_need(&btf, PREFLIGHT_sched_info),
		.socket_cgroup = has_need(&btf, PREFLIGHT_socket_cgroup),
		.oom_victims = offer.oom_victims,
		.dirty_pauses = offer.dirty_pause_at > 0,
	};
	char types_path[KERNEL_TYPES_PATH_BYTES];
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = types_path);
	_cleanup_close_ int types_fd = -1;
	int r;

	libbpf_set_print(print_message);
	types_fd = kernel_types_open(types_path);
	if (types_fd < 0)
		return types_fd;
	skeleton = trocar__open_opts(&options);
	if (!skeleton)
		return -errno;
	r = prepare_set(skeleton, o, &offer, types_fd, &btf);
	preflight_btf_done(&btf); /* libbpf reads the same types into its memory */
	if (r == 0)
		r = programs_open(&programs, skeleton, &options);
	if (r == 0)
		r = load_set(skeleton, &programs, o, &set);
	if (r < 0)
		return r;
	*ret_set = set;
	ret_set->skeleton = skeleton;
	ret_set->programs = programs;
	skeleton = NULL;
	programs = (struct programs){ 0 };
	return 0;
}

static int write_abi(const struct kernelset *set, const struct options *o)
{
	struct abi_header h = {
		.magic = ABI_MAGIC,
		.version = ABI_VERSION,
		.hash = ABI_HASH,
		.hz = (uint32_t)o->hz,
		.slots = (uint32_t)o->watches,
		.rules = (uint32_t)o->rules,
		.targets = (uint32_t)o->targets,
		.accounts = (uint32_t)o->threads,
		.sched_info = set->sched_info,
		.socket_cgroup = set->socket_cgroup,
		.oom_victims = set->oom_victims,
		.dirty_pauses = set->dirty_pauses,
		.cpus_sampled = (uint32_t)set->samplers.count,
		.vma_open_coded = set->vma_open_coded,
		.page_walk = set->page_walk,
		.kernel_rows = set->kernel_rows,
		.scoped = o->scope.count > 0,
		.unwind_rows = (uint32_t)o->unwind_kib * UNWIND_KIB_ELEMENTS,
		.unwind_tables = (uint32_t)o->unwind_tables,
		.loaded_ns = clock_mono_ns(),
	};
	uint32_t zero = 0;
	int r;

	r = cpus_possible(&h.cpus_possible);
	if (r < 0)
		return r;
	if (bpf_map_update_elem(bpf_map__fd(set->skeleton->maps.abi), &zero, &h, BPF_ANY) < 0)
		return -errno;
	return 0;
}

int kernelset_attach(struct kernelset *set, const struct options *o, const char **ret_what)
{
	struct attachment list[ATTACHMENTS];
	size_t n = attachments_list(set, list);
	const struct bpf_program *sampler;
	uint32_t cpu;
	int r;

	for (size_t i = 0; i < n; i++) {
		*ret_what = list[i].name;
		*list[i].link = attachment_make(set, &list[i]);
		if (!*list[i].link)
			return -errno;
	}
	*ret_what = "sampler";
	if (options_always_oncpu(o)) {
		sampler = programs_find(&set->programs, set->skeleton->progs.sampler);
		r = sampler_attach_all(bpf_program__fd(sampler), o->hz, &set->samplers, &cpu);
		if (r < 0)
			return r;
	}
	*ret_what = "abi";
	return write_abi(set, o);
}

void kernelset_done(struct kernelset *set)
{
	sampler_attach_done(&set->samplers);
	programs_done(&set->programs);
	trocar__destroy(set->skeleton);
	set->skeleton = NULL;
}
