/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notice PRESSURE_FILE BPF_DIR SLOT THRESHOLD_US WINDOW_US SECONDS: when the stall really crosses
 * the threshold (by the total), when the kernel itself notices (POLLPRI of a trigger of our own),
 * when the slot of the watch is switched to capture, and when its first sample is attempted after
 * that. Prints "armed" before it waits.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "shared/abi/abi.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "tests/bench/tool.h"

#define CPUS_MAX  1024
#define TURN_NS	  500000
#define TURNS_MAX 4096

/*
 * Not more often: a reading weighs each CPU's stall by its busy time in whole jiffies
 * (collect_percpu_times() in kernel/sched/psi.c), so that a reader faster than a jiffy stops the
 * total, for everyone.
 */
#define READ_EVERY_NS 20000000

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

static uint64_t attempted(int counters_fd, uint32_t slot)
{
	static struct slot_counters each[CPUS_MAX];
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(counters_fd, &slot, each) < 0)
		tool_die("counters");
	for (int i = 0; i < CPUS_MAX; i++)
		sum += each[i].attempted;
	return sum;
}

static int arm(const char *path, const char *threshold_us, const char *window_us)
{
	char text[64];
	int fd, n;

	n = snprintf(text, sizeof(text), "some %s %s\n", threshold_us, window_us);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || write(fd, text, (size_t)n) < 0)
		tool_die("%s", path);
	return fd;
}

/* The total of the "some" line, in microseconds. */
static uint64_t total_us(int fd)
{
	char text[256], *at;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		tool_die("pressure");
	text[n] = '\0';
	at = strstr(text, "total=");
	errno = 0;
	if (!at)
		tool_die("no total in %s", text);
	return strtoull(at + 6, NULL, 10);
}

/* Totals of the last window, to see the moment at which their growth reaches the threshold. */
static bool crossed(uint64_t now_ns, uint64_t total, uint64_t threshold_us, uint64_t window_ns)
{
	static struct {
		uint64_t at_ns, total;
	} seen[TURNS_MAX];
	static size_t first, count;

	seen[count++ % TURNS_MAX].total = total;
	seen[(count - 1) % TURNS_MAX].at_ns = now_ns;
	while (now_ns - seen[first % TURNS_MAX].at_ns > window_ns || count - first > TURNS_MAX)
		first++;
	return total - seen[first % TURNS_MAX].total >= threshold_us;
}

static double since_ms(uint64_t then_ns, uint64_t base_ns)
{
	return ((double)then_ns - (double)base_ns) / 1e6;
}

/* One moment each, 0 until it came. */
struct moments {
	uint64_t crossing_ns, notice_ns, capture_ns, sample_ns;
};

static void print(const struct moments *m, uint64_t seconds)
{
	errno = 0;
	if (!m->crossing_ns || !m->notice_ns || !m->sample_ns)
		tool_die("within %llu s: crossing %s, kernel's notice %s, capture %s, sample %s",
			 (unsigned long long)seconds, m->crossing_ns ? "yes" : "no",
			 m->notice_ns ? "yes" : "no", m->capture_ns ? "yes" : "no",
			 m->sample_ns ? "yes" : "no");
	printf("{\"notice_ms\":%.2f,\"capture_ms\":%.2f,\"sample_ms\":%.2f}\n",
	       since_ms(m->notice_ns, m->crossing_ns), since_ms(m->capture_ns, m->crossing_ns),
	       since_ms(m->sample_ns, m->crossing_ns));
}

int main(int argc, char **argv)
{
	uint32_t slot = (uint32_t)tool_number(argc, argv, 3, 0, 65535);
	uint64_t threshold_us = tool_number(argc, argv, 4, 1000, 10000000);
	uint64_t window_us = tool_number(argc, argv, 5, 500000, 10000000);
	uint64_t seconds = tool_number(argc, argv, 6, 1, 600), now_ns, until_ns, before = 0;
	uint64_t read_ns = 0;
	int counters_fd = open_pin(argv[2], "counters"), slots_fd = open_pin(argv[2], "slots");
	int fd = arm(argv[1], argv[4], argv[5]), total_fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	const volatile struct slot *slots;
	struct moments m = {};

	slots = mmap(NULL, (slot + 1) * sizeof(*slots), PROT_READ, MAP_SHARED, slots_fd, 0);
	if (slots == MAP_FAILED || total_fd < 0)
		tool_die("slots");
	printf("armed\n");
	fflush(stdout);
	now_ns = clock_mono_ns();
	until_ns = now_ns + seconds * 1000000000u;
	while (now_ns < until_ns && !(m.notice_ns && m.sample_ns)) {
		struct pollfd p = { .fd = fd, .events = POLLPRI };
		struct timespec wait = { .tv_nsec = TURN_NS };
		int ready = ppoll(&p, m.notice_ns ? 0 : 1, &wait, NULL);

		now_ns = clock_mono_ns();
		if (ready == 1 && p.revents & POLLPRI)
			m.notice_ns = now_ns;
		if (!m.crossing_ns && now_ns - read_ns >= READ_EVERY_NS) {
			read_ns = now_ns;
			if (crossed(now_ns, total_us(total_fd), threshold_us, window_us * 1000))
				m.crossing_ns = now_ns;
		}
		if (m.capture_ns && !m.sample_ns && attempted(counters_fd, slot) != before)
			m.sample_ns = now_ns;
		if (!m.capture_ns && slots[slot].state == SLOT_CAPTURE) {
			m.capture_ns = now_ns;
			before = attempted(counters_fd, slot);
		}
	}
	print(&m, seconds);
	return 0;
}
