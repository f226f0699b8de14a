/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dirty_pages SECONDS FILE MIB LOG: a program that writes more than its disk takes: MIB of FILE
 * again and again, through the page cache. It measures itself: after each write it adds to LOG, 16
 * bytes each, the moment (CLOCK_MONOTONIC, ns) and for how long it has been in write(2) without
 * running, all together. Stack: main > write_again > write_page_cache.
 */
#include <fcntl.h>
#include <string.h>

#include "workload.h"

#define BLOCK_BYTES (64u << 10)
#define MIB_MAX	    4096u

static char block[BLOCK_BYTES];

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

NAMED static ssize_t write_page_cache(int fd, off_t at)
{
	ssize_t n = pwrite(fd, block, sizeof(block), at);

	KEEP_FRAME();
	return n;
}

NAMED static bool write_again(int fd, int log_fd, off_t bytes, uint64_t deadline_ns)
{
	uint64_t said[2] = {};

	for (off_t at = 0; workload_now_ns() < deadline_ns; at = (at + BLOCK_BYTES) % bytes) {
		uint64_t from_ns = workload_now_ns(), ran_ns = cpu_ns();

		if (write_page_cache(fd, at) != BLOCK_BYTES)
			return false;
		ran_ns = cpu_ns() - ran_ns;
		said[0] = workload_now_ns();
		said[1] += said[0] - from_ns -
			   (ran_ns < said[0] - from_ns ? ran_ns : said[0] - from_ns);
		if (write(log_fd, said, sizeof(said)) != sizeof(said))
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns = workload_deadline(argc, argv, "dirty_pages SECONDS FILE MIB LOG");
	uint32_t mib = workload_number(argc, argv, 3, 64, 1, MIB_MAX);
	int fd, log_fd;

	if (argc < 5)
		return 2;
	fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	log_fd = open(argv[4], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	memset(block, 'd', sizeof(block));
	if (fd < 0 || log_fd < 0 || !write_again(fd, log_fd, (off_t)mib << 20, deadline_ns)) {
		fprintf(stderr, "dirty_pages: it cannot write\n");
		return 1;
	}
	return 0;
}
