/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * switches [wakes|pipes] WINDOW_MS ROUNDS [PEER_ID]: what one context switch costs by the kernel's
 * own BPF statistics, while the program of the time accounts is attached: of unwatched threads, and
 * of threads that a session runs on. Two processes in a cgroup of their own throw a byte through
 * pipes on one CPU; for "apart" and "rival" one is in another cgroup, so that each switch is to
 * another one; for "calls" waits are counted by system call. An empty program is attached beside
 * it. The two windows take turns, so that a disturbance hits both. PEER_ID is another tool's
 * program at the same switches. With `wakes` it is the cost of one wake-up while the program of the
 * waits for locks is attached too, and the two wait for each other by futex: each wake-up ends such
 * a wait. With `pipes` likewise, and they wait for each other in pipes.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/trocar.skel.h"
#include "shared/abi/abi.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/bench/bench.skel.h"
#include "tests/bench/tool.h"

#define SLOT 7u

struct figures {
	struct tool_values run_ns, floor_ns, peer_ns;
	uint64_t runs;
};

static struct {
	struct trocar *skel;
	struct bench *floor;
	struct control *control;
	struct slot *slots;
	pid_t players[2];
	char group[4096];
	uint64_t group_id;
	int peer_fd;
	bool wakes, pipes;
	uint32_t *turn; /* shared: its thread */
	struct figures unwatched, apart, watched, calls, rival;
} b;

static void play_futex(uint32_t me)
{
	for (;;) {
		while (__atomic_load_n(b.turn, __ATOMIC_SEQ_CST) != me)
			syscall(SYS_futex, b.turn, FUTEX_WAIT, !me, NULL, NULL, 0);
		__atomic_store_n(b.turn, !me, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, b.turn, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

static void play(int in, int out, uint32_t me)
{
	char byte = 1;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	tool_group_join(b.group);
	tool_pin(0);
	if (b.wakes && !b.pipes)
		play_futex(me);
	while (write(out, &byte, 1) == 1 && read(in, &byte, 1) == 1)
		;
	_exit(0);
}

static void end_players(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(b.players); i++)
		if (b.players[i] > 0) {
			kill(b.players[i], SIGKILL);
			waitpid(b.players[i], NULL, 0);
		}
	if (b.group[0])
		tool_group_remove(b.group);
}

static void on_signal(int number)
{
	end_players();
	_exit(128 + number);
}

static void start_players(void)
{
	int there[2], back[2];

	b.group_id = tool_group_make(b.group);
	if (pipe(there) < 0 || pipe(back) < 0)
		tool_die("pipe");
	for (size_t i = 0; i < ARRAY_SIZE(b.players); i++) {
		b.players[i] = fork();
		if (b.players[i] < 0)
			tool_die("fork");
		if (b.players[i] == 0)
			play(i ? there[0] : back[0], i ? back[1] : there[1], (uint32_t)i);
	}
}

static void *words(const struct bpf_map *map, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (p == MAP_FAILED)
		tool_die("mmap of %s", bpf_map__name(map));
	return p;
}

/* Loads the one program, and the empty one, and attaches both. */
static void load(void)
{
	struct bpf_program *program;

	b.floor = bench__open_and_load();
	b.skel = trocar__open();
	if (!b.floor || !b.skel)
		tool_die("the BPF objects");
	bpf_object__for_each_program(program, b.skel->obj) bpf_program__set_autoload(
		program, program == b.skel->progs.account_switch ||
				 (b.wakes && program == b.skel->progs.lock_waking));
	b.skel->rodata->has_cast = tool_has_function("bpf_iter_task_vma_new");
	b.skel->rodata->has_near = true;
	if (trocar__load(b.skel) < 0)
		tool_die("load");
	b.control = words(b.skel->maps.control, sizeof(*b.control));
	b.slots = words(b.skel->maps.slots,
			bpf_map__max_entries(b.skel->maps.slots) * sizeof(*b.slots));
	if (!bpf_program__attach(b.skel->progs.account_switch) ||
	    !bpf_program__attach(b.floor->progs.switch_floor))
		tool_die("attach");
	if (b.wakes && (!bpf_program__attach(b.skel->progs.lock_waking) ||
			!bpf_program__attach(b.floor->progs.waking_floor)))
		tool_die("attach");
}

/* As the consumer does at the end of a session. */
static void forget_accounts(void)
{
	int fd = bpf_map__fd(b.skel->maps.accounts);
	const struct near_account nobody = {};
	struct account_key key;

	for (uint32_t i = 0; i < ACCOUNTS_NEAR; i++)
		bpf_map_update_elem(bpf_map__fd(b.skel->maps.accounts_near), &i, &nobody, BPF_ANY);
	while (bpf_map_get_next_key(fd, NULL, &key) == 0)
		bpf_map_delete_elem(fd, &key);
}

/* Moves the second player beside the first, or out of its cgroup: then each switch is to another.
 */
static void part_players(bool apart)
{
	char path[4200], *slash;
	FILE *file;

	snprintf(path, sizeof(path), "%s", b.group);
	slash = strrchr(path, '/');
	if (apart && slash)
		*slash = 0;
	strcat(path, "/cgroup.procs");
	file = fopen(path, "we");
	if (!file || fprintf(file, "%d", b.players[1]) < 0 || fclose(file) != 0)
		tool_die("%s", path);
}

/* Something is watched: the players' cgroup, or one that is not there. */
static void watch(uint64_t id, uint64_t instead)
{
	const struct watch_entry entry = { .slot = SLOT, .flags = WATCH_OWN };
	int fd = bpf_map__fd(b.skel->maps.watches);

	bpf_map_delete_elem(fd, &instead);
	if (bpf_map_update_elem(fd, &id, &entry, BPF_ANY) < 0)
		tool_die("watches");
	forget_accounts();
	b.slots[SLOT].state = SLOT_CAPTURE;
	b.slots[SLOT].session = 1;
	b.control->armed = 1;
	b.control->heartbeat_ns = clock_mono_ns();
	b.control->stale_ns = 60000000000u;
}

static void measure(struct figures *f, uint32_t ms)
{
	int ours =
		bpf_program__fd(b.wakes ? b.skel->progs.lock_waking : b.skel->progs.account_switch);
	int empty = bpf_program__fd(b.wakes ? b.floor->progs.waking_floor
					    : b.floor->progs.switch_floor);
	struct tool_cost run, floor_run, peer_run = {};

	tool_sleep_ms(20);
	run = tool_cost(ours);
	floor_run = tool_cost(empty);
	if (b.peer_fd >= 0)
		peer_run = tool_cost(b.peer_fd);
	tool_sleep_ms(ms);
	run = tool_cost_since(ours, run);
	tool_values_add(&f->run_ns, tool_cost_each(run));
	tool_values_add(&f->floor_ns, tool_cost_each(tool_cost_since(empty, floor_run)));
	if (b.peer_fd >= 0)
		tool_values_add(&f->peer_ns, tool_cost_each(tool_cost_since(b.peer_fd, peer_run)));
	f->runs += run.runs;
}

static void print(const char *name, struct figures *f, const char *behind)
{
	printf("\"%s\":{\"run_ns\":%.1f,\"floor_ns\":%.1f,\"peer_ns\":%.1f,\"runs\":%llu}%s", name,
	       tool_values_median(&f->run_ns), tool_values_median(&f->floor_ns),
	       tool_values_median(&f->peer_ns), (unsigned long long)f->runs, behind);
}

/* Figures that only switches can show: players of two cgroups, and waits by system call. */
static void measure_more(uint32_t ms)
{
	part_players(true);
	measure(&b.rival, ms);
	watch(UINT64_MAX, b.group_id);
	measure(&b.apart, ms);
	part_players(false);
	watch(b.group_id, UINT64_MAX);
	b.control->calls = 1;
	measure(&b.calls, ms);
	b.control->calls = 0;
}

static void print_all(void)
{
	printf("{");
	print("unwatched", &b.unwatched, ",");
	if (!b.wakes) {
		print("apart", &b.apart, ",");
		print("calls", &b.calls, ",");
		print("rival", &b.rival, ",");
	}
	print("watched", &b.watched, "}\n");
}

int main(int argc, char **argv)
{
	uint32_t ms, rounds;

	b.pipes = argc > 1 && !strcmp(argv[1], "pipes");
	b.wakes = b.pipes || (argc > 1 && !strcmp(argv[1], "wakes"));
	argc -= b.wakes;
	argv += b.wakes;
	ms = (uint32_t)tool_number(argc, argv, 1, 10, 60000);
	rounds = (uint32_t)tool_number(argc, argv, 2, 1, 1000);
	b.turn = mmap(NULL, sizeof(*b.turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (b.turn == MAP_FAILED)
		tool_die("mmap");
	b.peer_fd =
		argc > 3
			? bpf_prog_get_fd_by_id((uint32_t)tool_number(argc, argv, 3, 1, UINT32_MAX))
			: -1;
	if (argc > 3 && b.peer_fd < 0)
		tool_die("program %s", argv[3]);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	load();
	start_players();
	atexit(end_players);
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		tool_die("statistics");
	for (uint32_t i = 0; i < rounds; i++) {
		watch(UINT64_MAX, b.group_id);
		measure(&b.unwatched, ms);
		watch(b.group_id, UINT64_MAX);
		measure(&b.watched, ms);
		if (!b.wakes)
			measure_more(ms);
	}
	print_all();
	return 0;
}
