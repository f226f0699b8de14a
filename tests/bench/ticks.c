/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ticks HZ WINDOW_MS ROUNDS MODES [PEER_ID]: what one run of the sampler costs by the kernel's own
 * BPF statistics. Every CPU runs a worker of FRAMES user frames in a cgroup of its own; on each,
 * the sampler, an empty program, one of one hash miss and one of one walk of the user stack tick at
 * the same rate, all the time. MODES are letters, each one window per round, in turn, so that a
 * disturbance hits all: n nothing is watched o something else is watched s something else is, and a
 * session runs r captured, by a table b captured, build-ids c recorder, by a table p captured, by
 * bpf_get_stack: the first milliseconds of a process, before its table is there PEER_ID is another
 * profiler's program on the same load: its price in the same windows.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/trocar.skel.h"
#include "shared/abi/abi.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/bench/bench.skel.h"
#include "tests/bench/fp_table.h"
#include "tests/bench/tool.h"
#include "tests/workloads/workload.h"

#define CPUS_MAX 256
#define SLOT	 7u
#define DESCENT	 30u /* calls below worker(): with main and the C library's frames 33 */

struct mode {
	char letter;
	const char *name;
	bool armed;
	uint32_t state;	 /* of the slot; SLOT_IDLE: the workers' cgroup is not watched */
	uint32_t target; /* flags of the workers' target entries */
	bool table;	 /* they have tables, as all that are known have */
	bool session;	 /* one runs, as where the slot captures */
};

static const struct mode modes[] = {
	{ 'n', "nothing", false, SLOT_IDLE, 0 },
	{ 'o', "other", true, SLOT_IDLE, 0 },
	{ 's', "session", true, SLOT_IDLE, 0, .session = true },
	{ 'r', "raw", true, SLOT_CAPTURE, TARGET_MATCHED | TARGET_MAPPED, true, true },
	{ 'p', "pointers", true, SLOT_CAPTURE, TARGET_MATCHED | TARGET_MAPPED, .session = true },
	{ 'b', "build_id", true, SLOT_CAPTURE, TARGET_MATCHED, .session = true },
	{ 'c', "recorder", true, SLOT_RECORDER, TARGET_MATCHED | TARGET_MAPPED, true },
};

struct figures {
	struct tool_values run_ns;    /* of the sampler, per run */
	struct tool_values sample_ns; /* per emitted sample, the price of other runs taken off */
	struct tool_values peer_ns, peer_ratio; /* the peer, and sample_ns to it, per window */
	struct tool_values miss_ratio;		/* run_ns to one hash miss in the same window */
	uint64_t runs, emitted, lost;
};

static struct {
	struct trocar *skel;
	struct bench *peer;
	struct control *control;
	struct slot *slots;
	pid_t workers[CPUS_MAX];
	struct bpf_link *links[4 * CPUS_MAX]; /* until we end */
	size_t n_links;
	int cpus;
	char group[4096];
	uint64_t group_id;
	struct figures figures[ARRAY_SIZE(modes)];
	struct tool_values floor_ns, miss_ns, stack_ns;
	uint64_t frames, samples, bytes;
	uint32_t image; /* of the workers, by their samples: they are children without an exec */
	int peer_fd;
	double other_ns; /* of the last window in which something else was watched */
} b;

static volatile uint64_t turns;
static volatile bool enough; /* never: a worker is killed */

NAMED static void spin(void)
{
	while (!enough)
		turns = turns + 1;
}

NAMED static void descend(uint32_t left) /* NOLINT(misc-no-recursion) */
{
	if (left)
		descend(left - 1);
	else
		spin();
	KEEP_FRAME();
}

static void worker(int cpu)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	tool_group_join(b.group);
	if (tool_pin(cpu) < 0)
		_exit(0);		   /* not online */
	setpriority(PRIO_PROCESS, 0, -10); /* most ticks shall meet us: other load is foreign */
	descend(DESCENT);
}

static void end_workers(void)
{
	for (int i = 0; i < b.cpus; i++)
		if (b.workers[i] > 0) {
			kill(b.workers[i], SIGKILL);
			waitpid(b.workers[i], NULL, 0);
		}
	if (b.group[0])
		tool_group_remove(b.group);
}

static void start_workers(void)
{
	b.group_id = tool_group_make(b.group);
	for (int i = 0; i < b.cpus; i++) {
		b.workers[i] = fork();
		if (b.workers[i] == 0) {
			worker(i);
			_exit(0);
		}
	}
}

static void *words(const struct bpf_map *map, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (p == MAP_FAILED)
		tool_die("mmap of %s", bpf_map__name(map));
	return p;
}

static void load(void)
{
	bool open_coded = tool_has_function("bpf_iter_task_vma_new");

	b.peer = bench__open_and_load();
	b.skel = trocar__open();
	if (!b.peer || !b.skel)
		tool_die("the BPF objects");
	bpf_program__set_autoload(b.skel->progs.vmas_open, open_coded);
	bpf_program__set_autoload(b.skel->progs.vmas_pid, open_coded);
	bpf_program__set_autoload(b.skel->progs.ranges_pid, open_coded);
	bpf_program__set_autoload(b.skel->progs.vmas_tree, !open_coded);
	/* A kernel without modules has no tracepoints of theirs. */
	bpf_program__set_autoload(b.skel->progs.on_module_load, false);
	bpf_program__set_autoload(b.skel->progs.on_module_free, false);
	if (trocar__load(b.skel) < 0)
		tool_die("load");
	b.control = words(b.skel->maps.control, sizeof(*b.control));
	b.slots = words(b.skel->maps.slots,
			bpf_map__max_entries(b.skel->maps.slots) * sizeof(*b.slots));
}

/*
 * Each program's ticks begin a quarter of a period after the other's: one that follows another at
 * once would find its memory warm.
 */
static void attach(struct bpf_program *program, int cpu, uint32_t hz)
{
	int fd = tool_tick_open(cpu, hz);

	if (fd == -ENODEV)
		return; /* a possible CPU that is not online */
	if (fd < 0)
		tool_die("perf_event_open");
	b.links[b.n_links] = bpf_program__attach_perf_event(program, fd);
	if (!b.links[b.n_links++])
		tool_die("attach %s", bpf_program__name(program));
	usleep(1000000 / hz / 4);
}

static void put_watch(uint64_t id)
{
	const struct watch_entry entry = { .slot = SLOT, .flags = WATCH_OWN };
	int fd = bpf_map__fd(b.skel->maps.watches);

	if (bpf_map_update_elem(fd, &id, &entry, BPF_ANY) < 0)
		tool_die("watches");
}

/* The number of the worker's table, plus 1, made at the first question; 0: it is no worker. */
static uint32_t table_of(const struct process_key *key)
{
	static bool made[CPUS_MAX];

	for (uint32_t i = 0; i < (uint32_t)b.cpus; i++) {
		if (b.workers[i] != (pid_t)key->tgid)
			continue;
		if (!made[i])
			fp_table_make(b.skel, key, i);
		made[i] = true;
		return i + 1;
	}
	return 0;
}

/* The sampler itself enters new processes; we only set the flags of present entries. */
static void set_targets(const struct mode *m)
{
	int fd = bpf_map__fd(b.skel->maps.targets);
	struct process_key key, *at = NULL;
	struct target target;

	while (bpf_map_get_next_key(fd, at, &key) == 0) {
		at = &key;
		if (bpf_map_lookup_elem(fd, &key, &target) < 0)
			continue;
		target.flags = m->target;
		target.image = b.image;
		target.unwind = m->table ? table_of(&key) : 0;
		bpf_map_update_elem(fd, &key, &target, BPF_EXIST);
	}
}

static struct slot_counters counters(void)
{
	struct slot_counters each[CPUS_MAX], sum = {};
	uint32_t slot = SLOT;

	if (bpf_map_lookup_elem(bpf_map__fd(b.skel->maps.counters), &slot, each) < 0)
		tool_die("counters");
	for (int i = 0; i < b.cpus; i++) {
		sum.attempted += each[i].attempted;
		sum.emitted += each[i].emitted;
		for (int k = 0; k < SLOT_LOST_REASONS; k++)
			sum.lost[k] += each[i].lost[k];
	}
	return sum;
}

static int take(void *context, void *data, size_t bytes)
{
	const struct sample *s = data;

	b.image = s->image;
	if (s->flags & SAMPLE_BUILD_ID)
		return 0;
	b.frames += s->user_frames;
	b.bytes += bytes;
	b.samples++;
	return 0;
}

static void enter(const struct mode *m)
{
	b.slots[SLOT].state = m->state;
	set_targets(m);
	b.control->heartbeat_ns = clock_mono_ns();
	b.control->stale_ns = 60000000000u;
	b.control->armed = m->armed;
	b.control->sessions = m->session;
	if (m->state == SLOT_IDLE)
		bpf_map_delete_elem(bpf_map__fd(b.skel->maps.watches), &b.group_id);
	else
		put_watch(b.group_id);
}

static void note(const struct mode *m, struct figures *f, struct tool_cost run, double miss_ns,
		 double peer_ns, const struct slot_counters *before)
{
	double sample_ns;
	struct slot_counters after = counters();
	double emitted = (double)(after.emitted - before->emitted);

	for (int k = 0; k < SLOT_LOST_REASONS; k++)
		f->lost += after.lost[k] - before->lost[k];
	f->runs += run.runs;
	f->emitted += (uint64_t)emitted;
	tool_values_add(&f->run_ns, tool_cost_each(run));
	if (miss_ns > 0)
		tool_values_add(&f->miss_ratio, tool_cost_each(run) / miss_ns);
	if (m->letter == 'o')
		b.other_ns = tool_cost_each(run);
	tool_values_add(&f->peer_ns, peer_ns);
	if (emitted <= 0)
		return;
	sample_ns = ((double)run.ns - ((double)run.runs - emitted) * b.other_ns) / emitted;
	tool_values_add(&f->sample_ns, sample_ns);
	if (peer_ns > 0)
		tool_values_add(&f->peer_ratio, sample_ns / peer_ns);
}

static void window(const struct mode *m, struct figures *f, uint32_t ms, struct ring_buffer *ring)
{
	int sampler = bpf_program__fd(b.skel->progs.sampler);
	int floor = bpf_program__fd(b.peer->progs.tick_floor);
	int miss = bpf_program__fd(b.peer->progs.tick_miss);
	int stack = bpf_program__fd(b.peer->progs.tick_stack);
	struct tool_cost run, floor_run, miss_run, stack_run, peer_run = {};
	struct slot_counters before;
	double miss_ns;

	enter(m);
	tool_sleep_ms(40); /* ticks that read the old words are through; new processes are met */
	ring_buffer__consume(ring);
	set_targets(m);
	before = counters();
	run = tool_cost(sampler);
	floor_run = tool_cost(floor);
	miss_run = tool_cost(miss);
	stack_run = tool_cost(stack);
	if (b.peer_fd >= 0)
		peer_run = tool_cost(b.peer_fd);
	tool_sleep_ms(ms);
	run = tool_cost_since(sampler, run);
	if (b.peer_fd >= 0)
		peer_run = tool_cost_since(b.peer_fd, peer_run);
	miss_ns = tool_cost_each(tool_cost_since(miss, miss_run));
	tool_values_add(&b.floor_ns, tool_cost_each(tool_cost_since(floor, floor_run)));
	tool_values_add(&b.stack_ns, tool_cost_each(tool_cost_since(stack, stack_run)));
	tool_values_add(&b.miss_ns, miss_ns);
	note(m, f, run, miss_ns, tool_cost_each(peer_run), &before);
	ring_buffer__consume(ring);
}

static const struct mode *find(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (modes[i].letter == letter)
			return &modes[i];
	errno = 0;
	tool_die("no mode %c", letter);
}

static void print(void)
{
	printf("{\"floor_ns\":%.1f,\"miss_ns\":%.1f,\"stack_ns\":%.1f,\"windows\":%zu",
	       tool_values_median(&b.floor_ns), tool_values_median(&b.miss_ns),
	       tool_values_median(&b.stack_ns), b.miss_ns.count);
	if (b.samples)
		printf(",\"user_frames\":%.1f,\"sample_bytes\":%.1f",
		       (double)b.frames / (double)b.samples, (double)b.bytes / (double)b.samples);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct figures *f = &b.figures[i];

		if (!f->run_ns.count)
			continue;
		printf(",\"%s\":{\"run_ns\":%.1f,\"sample_ns\":%.1f,\"to_miss\":%.3f,"
		       "\"peer_ns\":%.1f,\"to_peer\":%.3f,\"runs\":%llu,\"emitted\":%llu,\"lost\":%llu}",
		       modes[i].name, tool_values_median(&f->run_ns),
		       tool_values_median(&f->sample_ns), tool_values_median(&f->miss_ratio),
		       tool_values_median(&f->peer_ns), tool_values_median(&f->peer_ratio),
		       (unsigned long long)f->runs, (unsigned long long)f->emitted,
		       (unsigned long long)f->lost);
	}
	printf("}\n");
}

static void on_signal(int number)
{
	end_workers();
	_exit(128 + number);
}

int main(int argc, char **argv)
{
	uint32_t hz = (uint32_t)tool_number(argc, argv, 1, 1, 10000);
	uint32_t ms = (uint32_t)tool_number(argc, argv, 2, 10, 60000);
	uint32_t rounds = (uint32_t)tool_number(argc, argv, 3, 1, 1000);
	const char *letters = argc > 4 ? argv[4] : "no";
	struct ring_buffer *ring;
	int stats;

	b.cpus = libbpf_num_possible_cpus();
	if (b.cpus < 1 || b.cpus > CPUS_MAX)
		tool_die("%d CPUs", b.cpus);
	b.peer_fd =
		argc > 5
			? bpf_prog_get_fd_by_id((uint32_t)tool_number(argc, argv, 5, 1, UINT32_MAX))
			: -1;
	if (argc > 5 && b.peer_fd < 0)
		tool_die("program %s", argv[5]);
	load();
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	start_workers();
	atexit(end_workers);
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	ring = ring_buffer__new(bpf_map__fd(b.skel->maps.samples), take, NULL, NULL);
	if (stats < 0 || !ring)
		tool_die("statistics or ring");
	put_watch(UINT64_MAX); /* "something else": no cgroup has this id */
	for (int cpu = 0; cpu < b.cpus; cpu++) {
		attach(b.peer->progs.tick_miss, cpu, hz);
		attach(b.skel->progs.sampler, cpu, hz);
		attach(b.peer->progs.tick_floor, cpu, hz);
		attach(b.peer->progs.tick_stack, cpu, hz);
	}
	for (uint32_t i = 0; i < rounds; i++)
		for (const char *at = letters; *at; at++)
			window(find(*at), &b.figures[find(*at) - modes], ms, ring);
	print();
	ring_buffer__free(ring);
	return 0;
}
