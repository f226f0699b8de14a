/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notice PRESSURE_FILE BPF_DIR SLOT THRESHOLD_US WINDOW_US SECONDS: when the kernel itself notices
 * the pressure (POLLPRI of a trigger of our own), when the slot of the watch is switched to
 * capture, and when its first sample is attempted after that. Prints "armed" before it waits.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "shared/abi.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "tests/bench/tool.h"

#define CPUS_MAX 1024

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

static double since_ms(uint64_t then_ns, uint64_t base_ns)
{
	return then_ns ? ((double)then_ns - (double)base_ns) / 1e6 : -1;
}

int main(int argc, char **argv)
{
	uint32_t slot = (uint32_t)tool_number(argc, argv, 3, 0, 65535);
	uint64_t until_ns, notice_ns = 0, capture_ns = 0, sample_ns = 0, before = 0;
	int counters_fd = open_pin(argv[2], "counters"), slots_fd = open_pin(argv[2], "slots");
	int fd = arm(argv[1], argv[4], argv[5]);
	uint64_t seconds = tool_number(argc, argv, 6, 1, 600);
	const volatile struct slot *slots;

	slots = mmap(NULL, (slot + 1) * sizeof(*slots), PROT_READ, MAP_SHARED, slots_fd, 0);
	if (slots == MAP_FAILED)
		tool_die("slots");
	printf("armed\n");
	fflush(stdout);
	until_ns = clock_mono_ns() + seconds * 1000000000u;
	while (clock_mono_ns() < until_ns && !(notice_ns && sample_ns)) {
		struct pollfd p = { .fd = fd, .events = POLLPRI };
		struct timespec wait = { .tv_nsec = 250000 };

		if (!notice_ns && ppoll(&p, 1, &wait, NULL) == 1 && p.revents & POLLPRI)
			notice_ns = clock_mono_ns();
		else if (notice_ns)
			nanosleep(&wait, NULL);
		if (!capture_ns && slots[slot].state == SLOT_CAPTURE) {
			capture_ns = clock_mono_ns();
			before = attempted(counters_fd, slot);
		}
		if (capture_ns && !sample_ns && attempted(counters_fd, slot) != before)
			sample_ns = clock_mono_ns();
	}
	if (!notice_ns || !sample_ns) {
		errno = 0;
		tool_die("within %llu s: kernel's notice %s, capture %s, sample %s",
			 (unsigned long long)seconds, notice_ns ? "yes" : "no",
			 capture_ns ? "yes" : "no", sample_ns ? "yes" : "no");
	}
	printf("{\"capture_ms\":%.2f,\"sample_ms\":%.2f,\"tick_ms\":%.2f}\n",
	       since_ms(capture_ns, notice_ns), since_ms(sample_ns, notice_ns),
	       since_ms(sample_ns, capture_ns));
	return 0;
}
