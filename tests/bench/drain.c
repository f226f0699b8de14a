/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drain ROUNDS: records a second out of a full ring of the default size, on one core: ring_drain
 * with 64 and 512-byte records, libbpf's ring_buffer__consume on the same ring in turns, and the
 * consumer's whole way of a sample: checked, decoded by its process's mappings, kept by the
 * recorder. Filling (by a BPF program) is not counted.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/ring.h"
#include "consumer/sampling/drain.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/bench/bench.skel.h"
#include "tests/bench/fill.h"
#include "tests/bench/tool.h"

#define MAPPINGS 40
#define SPAN	 0x100000u
#define BASE	 0x10000000ull
#define FRAMES	 ((FILL_RECORD_BYTES - sizeof(struct sample)) / sizeof(uint64_t))

struct way {
	const char *name;
	uint32_t bytes;
	size_t (*drain)(void);
	struct tool_values rate; /* millions of records a second */
};

static struct bench *peer;
static struct ring ring;
static struct ring_buffer *theirs;
/* The rooms that a sample passes, and no others. */
static struct {
	struct pinned_maps pins;
	struct symbols *symbols;
	struct active_rules active;
	struct processes processes;
	struct process_targets targets;
	struct process_mappings mappings;
	struct mappings_queue queue;
	struct mappings_reread reread;
	struct process_unwind unwind;
	struct recorder recorder;
	struct drain drain;
	struct counts counts;
} rooms;
static uint64_t sum;

/* Every word of a record is read, as a reader that keeps it does: the bytes have to come over. */
static int count_theirs(void *context, void *record, size_t bytes)
{
	const uint64_t *words = record;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		sum += words[i];
	return 0;
}

static void count(void *context, const void *record, size_t bytes)
{
	count_theirs(context, (void *)(uintptr_t)record, bytes);
}

static size_t drain_ours(void)
{
	return ring_drain(&ring, RING_ENDLESSLY, count, NULL);
}

static size_t drain_theirs(void)
{
	int n = ring_buffer__consume(theirs);

	return n < 0 ? 0 : (size_t)n;
}

static size_t drain_decoded(void)
{
	uint64_t before = rooms.counts.samples;

	rooms.pins.samples = ring; /* one ring, one bounce buffer, wherever it grows */
	do
		drain_samples(&rooms.drain);
	while (rooms.pins.samples.cut);
	ring = rooms.pins.samples;
	return (size_t)(rooms.counts.samples - before);
}

/* A sample of 440 bytes of frames: 20 in the kernel, 35 of the user, spread over the mappings. */
static void write_record(void)
{
	struct fill_record record = {};
	struct sample *s = (struct sample *)record.data;
	uint64_t *frames = (uint64_t *)(s + 1);
	uint32_t zero = 0;

	*s = (struct sample){ .time_ns = clock_mono_ns(),
			      .start_ns = 1,
			      .slot = 1,
			      .cgroup_id = 1,
			      .epoch = 1,
			      .tgid = 1,
			      .tid = 1,
			      .flags = SAMPLE_CAPTURE,
			      .kernel_frames = 20,
			      .user_frames = FRAMES - 20,
			      .comm = "drain" };
	for (uint32_t i = 0; i < FRAMES; i++)
		frames[i] = BASE + (i * 7 % MAPPINGS) * SPAN + i * 64;
	if (bpf_map_update_elem(bpf_map__fd(peer->maps.record), &zero, &record, BPF_ANY) < 0)
		tool_die("record");
}

static void make_process(void)
{
	struct process *p;

	if (process_get(&rooms.processes, 1, 1, &p) < 0)
		tool_die("process");
	p->maps.items = calloc(MAPPINGS, sizeof(*p->maps.items));
	if (!p->maps.items)
		tool_die("mappings");
	p->maps.count = MAPPINGS;
	p->maps.read_ns = UINT64_MAX;
	for (uint32_t i = 0; i < MAPPINGS; i++) {
		struct mapping *m = &p->maps.items[i];
		char path[32];

		*m = (struct mapping){ .start = BASE + i * SPAN, .end = BASE + (i + 1) * SPAN };
		snprintf(path, sizeof(path), "/lib/%u.so", i);
		if (symbols_module(rooms.symbols,
				   &(struct file_identity){ .device = 1, .inode = i + 1 }, path,
				   false, &m->module) < 0)
			tool_die("module");
	}
}

/* Every slot is watched, and no session runs. */
static struct drain_slot watched_slot(void *context, uint32_t slot)
{
	return (struct drain_slot){ .cgroup_id = 1, .epoch = 1 };
}

static bool no_session(void *context, const struct stack_sample *sample, const struct process *p)
{
	return false;
}

static void make_rooms(void)
{
	static const struct drain_calls calls = { watched_slot, no_session };
	const struct process_unwind_needs needs = {
		.pins = &rooms.pins,
		.processes = &rooms.processes,
		.targets = &rooms.targets,
		.reread = &rooms.reread,
	};

	rooms.pins.abi.slots = 2;
	rooms.pins.abi.cpus_possible = 1;
	rooms.pins.abi.vma_open_coded = 1;
	recorder_init(&rooms.recorder, 16u << 20);
	if (symbols_new(1u << 20, NULL, &rooms.symbols) < 0)
		tool_die("symbols");
	processes_init(&rooms.processes, 16, symbols_perf_map_files(rooms.symbols));
	process_targets_init(&rooms.targets, -1, &rooms.active);
	process_mappings_init(&rooms.mappings, &rooms.pins, &rooms.processes, &rooms.targets,
			      rooms.symbols);
	mappings_queue_init(&rooms.queue, &rooms.processes, &rooms.mappings);
	mappings_reread_init(&rooms.reread, &rooms.processes, &rooms.mappings, &rooms.queue);
	process_unwind_init(&rooms.unwind, &needs);
	rooms.drain = (struct drain){
		.counts = &rooms.counts,
		.active = &rooms.active,
		.pins = &rooms.pins,
		.processes = &rooms.processes,
		.mappings = &rooms.mappings,
		.unwind = &rooms.unwind,
		.symbols = rooms.symbols,
		.recorder = &rooms.recorder,
		.calls = &calls,
	};
	make_process();
}

static uint32_t fill(uint32_t bytes)
{
	struct fill_args args = { .bytes = bytes, .count = FILL_RING_BYTES / (bytes + 8) };
	/* The kernel writes the context of a system call program back to where it came from. */
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = &args, .ctx_size_in = sizeof(args));

	/* Samples come from other CPUs than the one that drains: their bytes are not in its cache.
	 */
	tool_pin(libbpf_num_possible_cpus() - 1);
	if (bpf_prog_test_run_opts(bpf_program__fd(peer->progs.fill), &o) < 0)
		tool_die("fill");
	tool_pin(0);
	errno = 0;
	if (args.written < 1000)
		tool_die("only %u records of %u bytes fit", args.written, bytes);
	return args.written;
}

static void measure(struct way *way)
{
	uint32_t written = fill(way->bytes);
	uint64_t start_ns = clock_mono_ns(), ns;
	size_t n = way->drain();

	ns = clock_mono_ns() - start_ns;
	errno = 0;
	if (n != written)
		tool_die("%s: %zu of %u records came", way->name, n, written);
	tool_values_add(&way->rate, (double)n * 1e3 / (double)ns);
}

int main(int argc, char **argv)
{
	static struct way ways[] = {
		{ .name = "ours_64", .bytes = 64, .drain = drain_ours },
		{ .name = "libbpf_64", .bytes = 64, .drain = drain_theirs },
		{ .name = "ours_512", .bytes = 512, .drain = drain_ours },
		{ .name = "libbpf_512", .bytes = 512, .drain = drain_theirs },
		{ .name = "decoded_512", .bytes = 512, .drain = drain_decoded },
	};
	uint32_t rounds = (uint32_t)tool_number(argc, argv, 1, 1, TOOL_VALUES_MAX);

	tool_pin(0);
	peer = bench__open_and_load();
	if (!peer)
		tool_die("the BPF object");
	theirs = ring_buffer__new(bpf_map__fd(peer->maps.ring), count_theirs, NULL, NULL);
	if (!theirs || ring_open(bpf_map__fd(peer->maps.ring), FILL_RING_BYTES, &ring) < 0)
		tool_die("ring");
	write_record();
	make_rooms();
	for (uint32_t i = 0; i < rounds; i++)
		for (size_t k = 0; k < ARRAY_SIZE(ways); k++)
			measure(&ways[k]);
	printf("{\"rounds\":%u", rounds);
	for (size_t k = 0; k < ARRAY_SIZE(ways); k++)
		printf(",\"%s\":%.3f", ways[k].name, tool_values_median(&ways[k].rate));
	printf("}\n");
	return rooms.counts.bad_records ? 1 : 0;
}
