/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notice PRESSURE-FILE TRIGGER PID TIMES SLOT BPF-DIR: the independent witness of how fast a stall
 * becomes a session. Lets the process PID stall (SIGCONT) until the kernel tells a trigger of its
 * own of it, watches the slot until the first sample of the capture, stops it again (SIGSTOP),
 * TIMES times. Prints per crossing, in CLOCK_MONOTONIC nanoseconds: the kernel's notice, the slot's
 * change to capture, the first sample after that; 0 for what was not seen within WAIT_NS. Root.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "shared/abi.h"

#define WAIT_NS	   3000000000ULL
#define LOOK_US	   100
#define CPUS_MAX   64
#define PATH_BYTES 256

struct witness {
	int trigger_fd, counters_fd;
	const volatile struct slot *slot;
	uint32_t index;
	int cpus;
	long pause_ms; /* longer than the window, so that the next crossing begins with nothing */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void wait_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

/* The pin of that name; exits with the reason. */
static int pin(const char *dir, const char *name)
{
	char path[PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = bpf_obj_get(path);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static void look(const char *dir, uint32_t index, struct witness *ret_w)
{
	size_t bytes = (index + 1) * sizeof(struct slot);
	void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, pin(dir, "slots"), 0);

	if (p == MAP_FAILED) {
		perror("slots");
		exit(1);
	}
	ret_w->slot = (struct slot *)p + index;
	ret_w->index = index;
	ret_w->counters_fd = pin(dir, "counters");
	ret_w->cpus = libbpf_num_possible_cpus();
	if (ret_w->cpus < 1 || ret_w->cpus > CPUS_MAX)
		exit(1);
}

static uint64_t attempted(const struct witness *w)
{
	struct slot_counters each[CPUS_MAX];
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(w->counters_fd, &w->index, each) < 0)
		return 0;
	for (int i = 0; i < w->cpus; i++)
		sum += each[i].attempted;
	return sum;
}

/* When the slot says capture; 0: it did not. */
static uint64_t capture_begins(const struct witness *w, uint64_t until_ns)
{
	while (w->slot->state != SLOT_CAPTURE) {
		if (now_ns() > until_ns)
			return 0;
		wait_us(LOOK_US);
	}
	return now_ns();
}

static uint64_t first_sample(const struct witness *w, uint64_t until_ns)
{
	uint64_t before = attempted(w);

	while (attempted(w) == before) {
		if (now_ns() > until_ns)
			return 0;
		wait_us(LOOK_US);
	}
	return now_ns();
}

static bool crossing(const struct witness *w, pid_t pid)
{
	struct pollfd p = { .fd = w->trigger_fd, .events = POLLPRI };
	uint64_t notice_ns = 0, capture_ns = 0, sample_ns = 0;
	int n;

	kill(pid, SIGCONT);
	n = poll(&p, 1, (int)(WAIT_NS / 1000000));
	if (n < 0 || p.revents & POLLERR)
		return false;
	if (n > 0) {
		notice_ns = now_ns();
		capture_ns = capture_begins(w, notice_ns + WAIT_NS);
		if (capture_ns)
			sample_ns = first_sample(w, capture_ns + WAIT_NS);
	}
	printf("%llu %llu %llu\n", (unsigned long long)notice_ns, (unsigned long long)capture_ns,
	       (unsigned long long)sample_ns);
	fflush(stdout);
	kill(pid, SIGSTOP);
	wait_us(w->pause_ms * 1000);
	while (poll(&p, 1, 0) > 0)
		;
	return true;
}

/* Before all others, or what is measured is how long it waits for the stalling threads. */
static void go_first(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
		perror("notice: SCHED_FIFO, continuing without");
}

/* Of a trigger "some 150000 500000". */
static long window_ms(const char *trigger)
{
	const char *last = strrchr(trigger, ' ');

	return last ? strtol(last, NULL, 10) / 1000 : 0;
}

int main(int argc, char **argv)
{
	struct witness w;

	if (argc != 7) {
		fprintf(stderr, "usage: notice PRESSURE-FILE TRIGGER PID TIMES SLOT BPF-DIR\n");
		return 2;
	}
	look(argv[6], (uint32_t)strtoul(argv[5], NULL, 10), &w);
	w.pause_ms = window_ms(argv[2]) + 200;
	w.trigger_fd = open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
	/* With its NUL: the kernel overwrites the last byte (psi_write). */
	if (w.trigger_fd < 0 || write(w.trigger_fd, argv[2], strlen(argv[2]) + 1) < 0) {
		perror(argv[1]);
		return 1;
	}
	go_first();
	for (long n = strtol(argv[4], NULL, 10); n > 0; n--) {
		if (!crossing(&w, (pid_t)strtol(argv[3], NULL, 10))) {
			fprintf(stderr, "notice: %s: its cgroup has gone\n", argv[1]);
			return 1;
		}
	}
	return 0;
}
