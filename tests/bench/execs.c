/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * execs EXECS ROUNDS: what the exec hook costs by the kernel's BPF statistics, with no rules (the
 * hook is off), and with 10, 1,000 and 10,000, none of which matches; beside it an empty program on
 * the same tracepoint. Each round goes through all of them, EXECS executions of /bin/true each.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/trocar.skel.h"
#include "shared/abi/abi.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/bench/bench.skel.h"
#include "tests/bench/tool.h"

static const uint32_t steps[] = { 0, 10, 1000, 10000 };

static struct trocar *skel;
static struct bench *peer;
static struct control *control;

static void load(void)
{
	struct bpf_program *program;

	skel = trocar__open();
	peer = bench__open_and_load();
	if (!skel || !peer)
		tool_die("the BPF objects");
	bpf_object__for_each_program(program, skel->obj)
		bpf_program__set_autoload(program, program == skel->progs.on_exec);
	if (trocar__load(skel) < 0)
		tool_die("load");
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(skel->maps.control), 0);
	if (control == MAP_FAILED)
		tool_die("mmap of control");
	peer->links.exec_floor = bpf_program__attach(peer->progs.exec_floor);
	skel->links.on_exec = bpf_program__attach(skel->progs.on_exec);
	if (!peer->links.exec_floor || !skel->links.on_exec)
		tool_die("attach");
}

static void empty(int fd)
{
	struct comm_key key;

	while (bpf_map_get_next_key(fd, NULL, &key) == 0)
		if (bpf_map_delete_elem(fd, &key) < 0)
			tool_die("rules_a");
}

/* Names as services have: a common beginning, differing late, exact. */
static void fill(uint32_t rules)
{
	int fd = bpf_map__fd(skel->maps.rules_a);

	empty(fd);
	for (uint32_t i = 0; i < rules; i++) {
		struct rule_value value = { .rule = i, .generation = 1 };
		struct comm_key key = {};

		snprintf(key.comm, sizeof(key.comm), "t%05u-svc", i);
		key.prefix_bits = 8 * (uint32_t)(strlen(key.comm) + 1);
		if (bpf_map_update_elem(fd, &key, &value, BPF_ANY) < 0)
			tool_die("rules_a");
	}
	control->events_on = rules != 0;
}

static void run_true(void)
{
	char *const words[] = { "true", NULL };
	pid_t pid;
	int e;

	e = posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ);
	errno = e;
	if (e || waitpid(pid, NULL, 0) < 0)
		tool_die("/bin/true");
}

int main(int argc, char **argv)
{
	uint32_t execs = (uint32_t)tool_number(argc, argv, 1, 10, 100000);
	uint32_t rounds = (uint32_t)tool_number(argc, argv, 2, 1, 100);
	static struct tool_values hook[ARRAY_SIZE(steps)], above[ARRAY_SIZE(steps)], floor, each;
	int hook_fd, floor_fd;

	load();
	hook_fd = bpf_program__fd(skel->progs.on_exec);
	floor_fd = bpf_program__fd(peer->progs.exec_floor);
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		tool_die("statistics");
	for (uint32_t round = 0; round < rounds; round++) {
		double none = -1;

		for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
			struct tool_cost cost, floor_cost;
			uint64_t start_ns;
			double ns;

			fill(steps[i]);
			cost = tool_cost(hook_fd);
			floor_cost = tool_cost(floor_fd);
			start_ns = clock_mono_ns();
			for (uint32_t k = 0; k < execs; k++)
				run_true();
			tool_values_add(&each,
					(double)(clock_mono_ns() - start_ns) / (double)execs);
			ns = tool_cost_each(tool_cost_since(hook_fd, cost));
			none = i ? none : ns;
			tool_values_add(&hook[i], ns);
			tool_values_add(&above[i], ns > none ? ns - none : 0);
			tool_values_add(&floor,
					tool_cost_each(tool_cost_since(floor_fd, floor_cost)));
		}
	}
	printf("{\"floor_ns\":%.1f,\"exec_ns\":%.0f,\"rounds\":%u,\"execs\":%u",
	       tool_values_median(&floor), tool_values_median(&each), rounds, execs);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		printf(",\"rules_%u\":{\"hook_ns\":%.1f,\"above_ns\":%.1f}", steps[i],
		       tool_values_median(&hook[i]), tool_values_median(&above[i]));
	printf("}\n");
	return 0;
}
