/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crossings CGROUP_DIR BPF_DIR SLOT THRESHOLD_US WINDOW_US COUNT READ_MS: bursts of CPU pressure in
 * a cgroup, and the result of each: the moment at which the stall crossed the threshold (by the
 * total, read every READ_MS, between two readings by interpolation; READ_MS 0: not read), the
 * kernel's own notice (POLLPRI of a trigger of our own), the watch's switch to capture, the first
 * sample attempted after it. Prints "armed", then one JSON object per burst; times are
 * CLOCK_MONOTONIC ns, null where there was none within four windows and a second.
 *
 * Whoever reads the file when its averages are due takes the turn of a trigger without
 * CAP_SYS_RESOURCE (psi_show() against psi_avgs_work() in kernel/sched/psi.c): with such triggers
 * READ_MS must be 0. The others are looked at by a thread of their own, which readers do not touch.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shared/abi/abi.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/bench/tool.h"

#define CPUS_MAX    1024
#define BURNERS_MAX 64
#define TURN_NS	    250000

struct world {
	int trigger_fd, total_fd, counters_fd;
	uint32_t slot;
	const volatile struct slot *slots;
	uint64_t threshold_us, window_ns, read_ns;
	pid_t burners[BURNERS_MAX];
	int n_burners;
};

struct moments {
	uint64_t begun, crossing, notice, capture, sample;
};

static int open_in(const char *dir, const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		tool_die("%s", path);
	return fd;
}

static int open_pin(const char *dir, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = bpf_obj_get(path);
	if (fd < 0)
		tool_die("%s", path);
	return fd;
}

/* Three for each CPU: some of them always wait. */
static void start_burners(struct world *w, const char *dir)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int procs = open_in(dir, "cgroup.procs", O_WRONLY);

	w->n_burners = (int)MIN(3 * cpus, (long)BURNERS_MAX);
	for (int i = 0; i < w->n_burners; i++) {
		w->burners[i] = fork();
		if (w->burners[i] < 0)
			tool_die("fork");
		if (!w->burners[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (write(procs, "0", 1) != 1)
				_exit(1);
			raise(SIGSTOP);
			for (;;)
				__asm__ volatile("");
		}
		if (waitpid(w->burners[i], NULL, WUNTRACED) < 0)
			tool_die("waitpid");
	}
	close(procs);
}

static void signal_burners(const struct world *w, int number)
{
	for (int i = 0; i < w->n_burners; i++)
		kill(w->burners[i], number);
}

static uint64_t attempted(const struct world *w)
{
	static struct slot_counters each[CPUS_MAX];
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(w->counters_fd, &w->slot, each) < 0)
		tool_die("counters");
	for (int i = 0; i < CPUS_MAX; i++)
		sum += each[i].attempted;
	return sum;
}

/* The total of the "some" line, in microseconds. */
static uint64_t total_us(const struct world *w)
{
	char text[256], *at;
	ssize_t n = pread(w->total_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		tool_die("pressure");
	text[n] = '\0';
	at = strstr(text, "total=");
	errno = 0;
	if (!at)
		tool_die("no total in %s", text);
	return strtoull(at + 6, NULL, 10);
}

/* The moment at which the growth since the burst began passed the threshold; 0 until then. */
static uint64_t find_crossing(const struct world *w, uint64_t first_us, uint64_t now_ns)
{
	static uint64_t last_ns, last_us;
	uint64_t us = total_us(w), at = first_us + w->threshold_us, crossing = 0;

	if (us >= at && last_us >= first_us && last_us < at && us > last_us)
		crossing = last_ns + (now_ns - last_ns) * (at - last_us) / (us - last_us);
	else if (us >= at)
		crossing = now_ns;
	last_ns = now_ns;
	last_us = us;
	return crossing;
}

static bool notices(const struct world *w, uint64_t wait_ns)
{
	struct pollfd p = { .fd = w->trigger_fd, .events = POLLPRI };
	struct timespec wait = { .tv_nsec = (long)wait_ns };

	return ppoll(&p, 1, &wait, NULL) == 1 && p.revents & POLLPRI;
}

/* Quiet: no capture, no notice that is still to be fetched, no stall in the window. */
static void settle(const struct world *w)
{
	while (w->slots[w->slot].state == SLOT_CAPTURE)
		notices(w, 10000000);
	for (uint64_t until = clock_mono_ns() + w->window_ns + w->window_ns / 4;
	     clock_mono_ns() < until;)
		notices(w, 10000000);
}

static struct moments burst(const struct world *w)
{
	uint64_t first_us = w->read_ns ? total_us(w) : 0, before = 0, read_ns = 0, now_ns, until_ns;
	struct moments m = { .begun = clock_mono_ns() };

	until_ns = m.begun + 4 * w->window_ns + NSEC_PER_SEC;
	signal_burners(w, SIGCONT);
	do {
		bool told = notices(w, TURN_NS);

		now_ns = clock_mono_ns();
		if (told && !m.notice)
			m.notice = now_ns;
		if (w->read_ns && !m.crossing && now_ns - read_ns >= w->read_ns) {
			read_ns = now_ns;
			m.crossing = find_crossing(w, first_us, now_ns);
		}
		if (m.capture && !m.sample && attempted(w) != before)
			m.sample = now_ns;
		if (!m.capture && w->slots[w->slot].state == SLOT_CAPTURE) {
			m.capture = now_ns;
			before = attempted(w);
		}
	} while (now_ns < until_ns && !(m.notice && m.sample && (m.crossing || !w->read_ns)));
	signal_burners(w, SIGSTOP);
	return m;
}

static void print(const char *key, uint64_t ns, const char *end)
{
	if (ns)
		printf("\"%s\":%llu%s", key, (unsigned long long)ns, end);
	else
		printf("\"%s\":null%s", key, end);
}

static void arm(struct world *w, const char *dir)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "some %llu %llu", (unsigned long long)w->threshold_us,
			 (unsigned long long)w->window_ns / 1000);

	w->trigger_fd = open_in(dir, "cpu.pressure", O_RDWR | O_NONBLOCK);
	w->total_fd = open_in(dir, "cpu.pressure", O_RDONLY);
	/* With the NUL: the kernel overwrites the last byte. */
	if (write(w->trigger_fd, text, (size_t)n + 1) < 0)
		tool_die("a trigger of %s on cpu.pressure", text);
}

/* Before all others, or the measurement includes its wait for the burners. */
static void go_first(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) < 0)
		perror("crossings: SCHED_FIFO, continuing without");
}

int main(int argc, char **argv)
{
	struct world w = {
		.slot = (uint32_t)tool_number(argc, argv, 3, 0, 65535),
		.threshold_us = tool_number(argc, argv, 4, 1000, 10000000),
		.window_ns = tool_number(argc, argv, 5, 500000, 10000000) * 1000,
		.read_ns = tool_number(argc, argv, 7, 0, 1000) * NSEC_PER_MSEC,
	};
	uint64_t count = tool_number(argc, argv, 6, 1, 1000);

	w.counters_fd = open_pin(argv[2], "counters");
	w.slots = mmap(NULL, (w.slot + 1) * sizeof(*w.slots), PROT_READ, MAP_SHARED,
		       open_pin(argv[2], "slots"), 0);
	if (w.slots == MAP_FAILED)
		tool_die("slots");
	arm(&w, argv[1]);
	start_burners(&w, argv[1]);
	go_first();
	printf("armed\n");
	fflush(stdout);
	for (uint64_t i = 0; i < count; i++) {
		struct moments m;

		settle(&w);
		m = burst(&w);
		printf("{");
		print("begun_ns", m.begun, ",");
		print("crossing_ns", m.crossing, ",");
		print("notice_ns", m.notice, ",");
		print("capture_ns", m.capture, ",");
		print("sample_ns", m.sample, "}\n");
		fflush(stdout);
	}
	signal_burners(&w, SIGKILL);
	return 0;
}
