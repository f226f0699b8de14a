/* SPDX-License-Identifier: BSD-2-Clause */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "loader/kernel_types.h"
#include "shared/files/cgroupfs.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/memory.h"

#define HEAP_BYTES (64u << 20) /* for the kernel's types, of several loads */

/* The one that lives; a failed assertion leaves it here. */
static struct harness *current;

static void clear_away(void)
{
	harness_kill_all();
	if (current)
		harness_free(current);
}

static void *map_words(const struct bpf_map *map, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static int keep(void *context, void *data, size_t bytes)
{
	struct harness_ring *ring = context;

	assert_true(ring->count < HARNESS_RECORDS);
	ring->records[ring->count] = malloc(bytes);
	assert_non_null(ring->records[ring->count]);
	memcpy(ring->records[ring->count], data, bytes);
	ring->bytes[ring->count++] = bytes;
	return 0;
}

static void ring_open(struct harness_ring *ring, const struct bpf_map *map)
{
	ring->ring = ring_buffer__new(bpf_map__fd(map), keep, ring, NULL);
	assert_non_null(ring->ring);
}

static void ring_forget(struct harness_ring *ring)
{
	for (size_t i = 0; i < ring->count; i++)
		free(ring->records[i]);
	ring->count = 0;
}

/* What the kernel has, read once, and its types as the loader copies them. */
static struct {
	bool known, open_coded;
	uint32_t dirty_pause;
	uint32_t task_struct, timespec64, pt_regs, file, list_head;
	char types[KERNEL_TYPES_PATH_BYTES];
} kernel;

/* As the loader finds it: the last but one of the arguments, behind the tracepoint's own. */
static uint32_t find_dirty_pause(const struct btf *btf)
{
	const struct btf_type *type = btf__type_by_id(
		btf, (uint32_t)btf__find_by_name_kind(btf, "btf_trace_balance_dirty_pages",
						      BTF_KIND_TYPEDEF));

	type = btf__type_by_id(btf, type->type);
	return btf_vlen(btf__type_by_id(btf, type->type)) - 3;
}

static uint32_t number_of(const struct btf *btf, const char *name)
{
	return (uint32_t)btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
}

/* The types stay in memory until the process ends. */
static void copy_types(const struct btf *btf)
{
	struct trocar *skel = trocar__open();
	int fd = kernel_types_open(kernel.types);

	assert_true(skel && fd >= 0);
	assert_int_equal(kernel_types_fill(fd, btf, bpf_object__btf(skel->obj)), 0);
	trocar__destroy(skel);
	kernel.task_struct = number_of(btf, "task_struct");
	kernel.timespec64 = number_of(btf, "timespec64");
	kernel.pt_regs = number_of(btf, "pt_regs");
	kernel.file = number_of(btf, "file");
	kernel.list_head = number_of(btf, "list_head");
}

static void read_kernel(void)
{
	struct btf *btf;

	if (kernel.known)
		return;
	memory_keep(HEAP_BYTES);
	btf = btf__load_vmlinux_btf();
	assert_non_null(btf);
	copy_types(btf);
	kernel.open_coded = btf__find_by_name_kind(btf, "bpf_iter_task_vma_new", BTF_KIND_FUNC) > 0;
	kernel.dirty_pause = find_dirty_pause(btf);
	kernel.known = true;
	btf__free(btf);
}

__attribute__((weak)) HARNESS_LOADS("*");

static bool is_wanted(const char *program)
{
	for (size_t i = 0; harness_programs[i]; i++)
		if (!fnmatch(harness_programs[i], program, 0))
			return true;
	return !strcmp(program, "page_learn") || !strcmp(program, "tasks");
}

static void leave_out(const struct trocar *skel)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, skel->obj) if (!is_wanted(bpf_program__name(program)))
		assert_int_equal(bpf_program__set_autoload(program, false), 0);
}

static bool with_mappings;

void harness_load_mappings(void)
{
	with_mappings = true;
}

/* Those of sockets and of reclaim. */
static void apply_bounds(struct trocar *skel, const struct harness_options *o)
{
	if (o->socket_files)
		skel->rodata->socket_files = o->socket_files;
	if (o->socket_pass_files)
		skel->rodata->socket_pass_files = o->socket_pass_files;
	if (o->socket_pass_sockets)
		skel->rodata->socket_pass_sockets = o->socket_pass_sockets;
	if (o->socket_open)
		bpf_map__set_max_entries(skel->maps.socket_open, o->socket_open);
	if (o->socket_sums)
		bpf_map__set_max_entries(skel->maps.socket_sums, o->socket_sums);
	if (o->reclaim_open)
		bpf_map__set_max_entries(skel->maps.reclaim_open, o->reclaim_open);
	if (o->reclaim_sums)
		bpf_map__set_max_entries(skel->maps.reclaim_sums, o->reclaim_sums);
#define TABLE(id, map) \
	skel->rodata->table_sizes[TABLE_##id] = o->shared * bpf_map__max_entries(skel->maps.map);
#include "shared/abi/tables.def"
#undef TABLE
}

static void apply(struct harness *h, const struct harness_options *o)
{
	struct trocar *skel = h->skel;
	struct timespec tick;
	bool open_coded, tree;

	skel->rodata->cast_task_struct = kernel.task_struct;
	skel->rodata->cast_timespec64 = kernel.timespec64;
	skel->rodata->cast_pt_regs = kernel.pt_regs;
	skel->rodata->cast_file = kernel.file;
	skel->rodata->cast_list_head = kernel.list_head;
	h->open_coded = !o->vmas_tree && kernel.open_coded;
	h->vmas = h->open_coded ? skel->progs.vmas_open : skel->progs.vmas_tree;
	open_coded = with_mappings && h->open_coded;
	tree = with_mappings && !h->open_coded;
	assert_int_equal(bpf_program__set_autoload(skel->progs.vmas_open, open_coded), 0);
	assert_int_equal(bpf_program__set_autoload(skel->progs.vmas_pid, open_coded), 0);
	assert_int_equal(bpf_program__set_autoload(skel->progs.ranges_pid, h->open_coded), 0);
	assert_int_equal(bpf_program__set_autoload(skel->progs.vmas_tree, tree), 0);
	skel->rodata->scoped = o->scoped;
	skel->rodata->has_cast = h->open_coded;
	skel->rodata->has_near = !o->accounts;
	skel->rodata->dirty_pause_at = kernel.dirty_pause;
	assert_int_equal(clock_getres(CLOCK_MONOTONIC_COARSE, &tick), 0);
	skel->rodata->tick_ns = (uint32_t)tick.tv_nsec;
	assert_int_equal(bpf_program__set_autoload(skel->progs.on_module_load, o->modules), 0);
	assert_int_equal(bpf_program__set_autoload(skel->progs.on_module_free, o->modules), 0);
	if (o->kernel_stack_checked)
		skel->rodata->kernel_stack_checked = o->kernel_stack_checked;
	if (o->watch_room)
		skel->rodata->watch_room = o->watch_room;
	if (o->samples_bytes)
		bpf_map__set_max_entries(skel->maps.samples, o->samples_bytes);
	if (o->events_bytes)
		bpf_map__set_max_entries(skel->maps.events, o->events_bytes);
	if (o->targets)
		bpf_map__set_max_entries(skel->maps.targets, o->targets);
	if (o->accounts)
		bpf_map__set_max_entries(skel->maps.accounts, o->accounts);
	if (o->queue_neighbours)
		bpf_map__set_max_entries(skel->maps.queue_neighbours, o->queue_neighbours);
	if (o->account_calls)
		bpf_map__set_max_entries(skel->maps.account_calls, o->account_calls);
	if (o->locks)
		bpf_map__set_max_entries(skel->maps.locks, o->locks);
	if (o->long_waits)
		bpf_map__set_max_entries(skel->maps.long_waits, o->long_waits);
	if (o->block_open)
		bpf_map__set_max_entries(skel->maps.block_open, o->block_open);
	if (o->block_sums)
		bpf_map__set_max_entries(skel->maps.block_sums, o->block_sums);
	apply_bounds(skel, o);
	if (o->neighbours)
		bpf_map__set_max_entries(skel->maps.neighbours, o->neighbours);
	if (o->pool_elements)
		bpf_map__set_max_entries(skel->maps.unwind_pool, o->pool_elements);
}

/* As the loader does: the kernel side is to find its way through page tables. */
static void learn_pages(const struct harness *h)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(h->skel->progs.page_learn), &run),
			 0);
#if defined(__x86_64__)
	assert_int_equal(run.retval, 1);
#endif
}

static void group_make(struct harness *h)
{
	enum cgroup_mode mode;
	size_t mount;

	assert_int_equal(cgroupfs_find_here(h->group, sizeof(h->group), &mode), 0);
	h->hybrid = mode == CGROUP_HYBRID;
	mount = strlen(h->group);
	/* tests/leftovers.py finds the leftovers of a killed test by its pid. */
	snprintf(h->group + mount, sizeof(h->group) - mount, "/trocar-test-%d-XXXXXX", getpid());
	h->path = h->group + mount;
	assert_non_null(mkdtemp(h->group));
	assert_int_equal(chmod(h->group, 0755), 0);
}

struct harness *harness_new(const struct harness_options *options)
{
	static const struct harness_options defaults;
	static bool registered;
	LIBBPF_OPTS(bpf_object_open_opts, types);
	struct harness *h;

	clear_away();
	if (!registered)
		registered = !atexit(clear_away);
	h = calloc(1, sizeof(*h));
	assert_non_null(h);
	read_kernel();
	types.btf_custom_path = kernel.types;
	h->skel = trocar__open_opts(&types);
	assert_non_null(h->skel);
	apply(h, options ? options : &defaults);
	leave_out(h->skel);
	assert_int_equal(trocar__load(h->skel), 0);
	learn_pages(h);
	h->control = map_words(h->skel->maps.control, sizeof(*h->control));
	h->slots = map_words(h->skel->maps.slots,
			     bpf_map__max_entries(h->skel->maps.slots) * sizeof(*h->slots));
	ring_open(&h->samples, h->skel->maps.samples);
	ring_open(&h->events, h->skel->maps.events);
	ring_open(&h->errors, h->skel->maps.errors);
	group_make(h);
	current = h;
	return h;
}

/* A killed process leaves its cgroup a little after it is reaped. */
static void remove_patiently(const char *dir)
{
	for (int i = 0; i < 100 && rmdir(dir) < 0 && errno == EBUSY; i++)
		harness_sleep_ms(10);
}

static void groups_remove(const char *dir)
{
	_cleanup_closedir_ DIR *d = opendir(dir);
	const struct dirent *entry;
	char child[8192];

	while (d && (entry = readdir(d))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(child, sizeof(child), "%s/%s", dir, entry->d_name);
		groups_remove(child);
	}
	remove_patiently(dir);
}

void harness_free(struct harness *h)
{
	for (int i = 0; i < HARNESS_CPUS; i++)
		bpf_link__destroy(h->ticks[i]);
	harness_forget(h);
	ring_buffer__free(h->samples.ring);
	ring_buffer__free(h->events.ring);
	ring_buffer__free(h->errors.ring);
	munmap(h->slots, bpf_map__max_entries(h->skel->maps.slots) * sizeof(*h->slots));
	munmap(h->control, sizeof(*h->control));
	trocar__destroy(h->skel);
	harness_kill_all(); /* those in its cgroups would hold these */
	groups_remove(h->group);
	free(h);
	current = NULL;
}

void harness_discover(struct harness *h)
{
	struct bpf_program *programs[] = { h->skel->progs.on_exec,	h->skel->progs.on_fork,
					   h->skel->progs.on_rename,	h->skel->progs.on_exit,
					   h->skel->progs.on_mkdir,	h->skel->progs.on_rmdir,
					   h->skel->progs.on_populated, NULL };
	struct bpf_link **links[] = { &h->skel->links.on_exec,	   &h->skel->links.on_fork,
				      &h->skel->links.on_rename,   &h->skel->links.on_exit,
				      &h->skel->links.on_mkdir,	   &h->skel->links.on_rmdir,
				      &h->skel->links.on_populated };

	for (size_t i = 0; programs[i]; i++) {
		*links[i] = bpf_program__attach(programs[i]);
		assert_non_null(*links[i]);
	}
	h->control->events_on = 1;
}

void harness_drain(struct harness *h)
{
	assert_true(ring_buffer__consume(h->samples.ring) >= 0);
	assert_true(ring_buffer__consume(h->events.ring) >= 0);
	assert_true(ring_buffer__consume(h->errors.ring) >= 0);
}

void harness_forget(struct harness *h)
{
	harness_drain(h);
	ring_forget(&h->samples);
	ring_forget(&h->events);
	ring_forget(&h->errors);
}

size_t harness_events(const struct harness *h, uint32_t kind, uint32_t tgid,
		      const struct event **ret_first)
{
	size_t n = 0;

	for (size_t i = 0; i < h->events.count; i++) {
		const struct event *event = h->events.records[i];

		if (event->kind != kind || (tgid && event->tgid != tgid))
			continue;
		if (!n++ && ret_first)
			*ret_first = event;
	}
	return n;
}

size_t harness_errors(const struct harness *h, uint32_t kind)
{
	size_t n = 0;

	for (size_t i = 0; i < h->errors.count; i++)
		n += ((const struct error_record *)h->errors.records[i])->kind == kind;
	return n;
}

void harness_rule(struct harness *h, int which, const char *comm, bool exact, uint32_t rule,
		  uint32_t generation)
{
	const struct bpf_map *map = which ? h->skel->maps.rules_b : h->skel->maps.rules_a;
	struct rule_value value = { .rule = rule, .generation = generation };
	struct comm_key key = { .prefix_bits = 8 * (strlen(comm) + exact) };

	memcpy(key.comm, comm, strnlen(comm, COMM_BYTES - 1));
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(map), &key, &value, BPF_ANY), 0);
}

void harness_cgroup_rule(struct harness *h, int which, const char *prefix, uint32_t rule)
{
	const struct bpf_map *map = which ? h->skel->maps.cgroups_b : h->skel->maps.cgroups_a;
	struct rule_value value = { .rule = rule, .generation = 1 };
	struct cgroup_key key = { .prefix_bits = 8 * strlen(prefix) };

	memcpy(key.path, prefix, strnlen(prefix, sizeof(key.path)));
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(map), &key, &value, BPF_ANY), 0);
}

void harness_scope(struct harness *h, const char *prefix)
{
	struct cgroup_key key = { .prefix_bits = 8 * strlen(prefix) };
	uint32_t one = 1;

	memcpy(key.path, prefix, strnlen(prefix, sizeof(key.path)));
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(h->skel->maps.scope), &key, &one, BPF_ANY),
			 0);
}

void harness_watch(struct harness *h, uint64_t id, uint32_t slot, uint32_t state, uint32_t flags)
{
	const struct watch_entry entry = { .slot = slot, .flags = WATCH_OWN };
	int fd = bpf_map__fd(h->skel->maps.watches);

	h->slots[slot].state = state;
	h->slots[slot].flags = flags;
	h->slots[slot].epoch = slot + 100;
	assert_int_equal(bpf_map_update_elem(fd, &id, &entry, BPF_ANY), 0);
	h->control->armed++;
}

void harness_watch_tree(const struct harness *h)
{
	union bpf_iter_link_info info = { .cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE };
	struct bpf_iter_attach_opts options;
	_cleanup_close_ int fd = -1;
	struct bpf_link *link;
	char byte;

	/* Its padding too, which libbpf looks at and LIBBPF_OPTS may leave as it was. */
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.link_info = &info;
	options.link_info_len = sizeof(info);
	link = bpf_program__attach_iter(h->skel->progs.watch_tree, &options);
	assert_non_null(link);
	fd = bpf_iter_create(bpf_link__fd(link));
	assert_true(fd >= 0);
	assert_int_equal(read(fd, &byte, 1), 0);
	bpf_link__destroy(link);
}

bool harness_watched(const struct harness *h, uint64_t id, struct watch_entry *ret_entry)
{
	return bpf_map_lookup_elem(bpf_map__fd(h->skel->maps.watches), &id, ret_entry) == 0;
}

/* Sums the 64-bit words of a per-CPU element. */
static void sum_cpus(const struct bpf_map *map, uint32_t key, uint64_t *sum, size_t words)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *values = calloc((size_t)cpus, words * sizeof(*values));

	assert_non_null(values);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(map), &key, values), 0);
	memset(sum, 0, words * sizeof(*sum));
	for (size_t i = 0; i < (size_t)cpus * words; i++)
		sum[i % words] += values[i];
}

struct slot_counters harness_counters(const struct harness *h, uint32_t slot)
{
	struct slot_counters c;

	sum_cpus(h->skel->maps.counters, slot, (uint64_t *)&c, sizeof(c) / sizeof(uint64_t));
	return c;
}

struct totals harness_totals(const struct harness *h)
{
	struct totals t;

	sum_cpus(h->skel->maps.totals, 0, (uint64_t *)&t, sizeof(t) / sizeof(uint64_t));
	return t;
}

uint64_t harness_lost(const struct slot_counters *c)
{
	uint64_t lost = 0;

	for (int i = 0; i < SLOT_LOST_REASONS; i++)
		lost += c->lost[i];
	return lost;
}

bool harness_account(const struct harness *h, pid_t tid, struct thread_times *ret_times)
{
	const struct account_key key = { .tid = (uint32_t)tid };
	uint32_t at = key.tid % ACCOUNTS_NEAR;
	struct near_account near;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(h->skel->maps.accounts_near), &at, &near),
			 0);
	*ret_times = near.times;
	return near.owner == (key.tid | ACCOUNT_NEAR_READY) ||
	       bpf_map_lookup_elem(bpf_map__fd(h->skel->maps.accounts), &key, ret_times) == 0;
}
