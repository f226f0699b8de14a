/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thrash_memory SECONDS FILE [MIB [CALM_SECONDS]]: a cache whose working set outgrows its limit. It
 * writes MIB (default 300) MiB to FILE, unlinks it, and reads it through a mapping: the first
 * CALM_MIB while calm, all of it afterwards, so that under a memory limit each page is read again.
 * Stack: main > serve_cache > answer_lookups > reread_working_set.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "workload.h"

#define MIB	      (1024u * 1024u)
#define MIB_MAX	      8192u
#define CALM_MIB      8u
#define PAGE_BYTES    4096u
#define PAGES_A_SLICE 64u
#define ROUNDS	      6u

static volatile uint64_t checksum;

NAMED static void reread_working_set(const uint64_t *pages, size_t first, size_t count)
{
	uint64_t sum = checksum;

	for (size_t page = first; page < first + count; page++) {
		const uint64_t *words = pages + page * (PAGE_BYTES / sizeof(*words));

		for (uint32_t round = 0; round < ROUNDS; round++) {
			for (size_t i = 0; i < PAGE_BYTES / sizeof(*words); i++)
				sum = (sum ^ words[i]) * 1099511628211ull;
		}
	}
	checksum = sum;
}

NAMED static void answer_lookups(const uint64_t *pages, size_t first, size_t count)
{
	reread_working_set(pages, first, count);
	KEEP_FRAME();
}

NAMED static void serve_cache(const uint64_t *pages, size_t count, uint64_t until_ns, bool calm)
{
	size_t next = 0;

	while (workload_now_ns() < until_ns) {
		uint64_t turn_ns = workload_now_ns() + WORKLOAD_SLICE_NS;

		while (workload_now_ns() < turn_ns) {
			if (next + PAGES_A_SLICE > count)
				next = 0;
			answer_lookups(pages, next, PAGES_A_SLICE);
			next += PAGES_A_SLICE;
		}
		if (calm)
			workload_rest(WORKLOAD_REST_NS);
	}
}

/* Fills `fd` and drops each part from the page cache once it is on disk. */
NAMED static int fill_file(int fd, uint32_t mib)
{
	static uint64_t block[MIB / sizeof(uint64_t)];

	for (uint32_t i = 0; i < mib; i++) {
		for (size_t j = 0; j < MIB / sizeof(*block); j++)
			block[j] = i + j;
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return -EIO;
		if (i % 16 == 15 &&
		    (fdatasync(fd) < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)))
			return -EIO;
	}
	return fdatasync(fd) < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns;
	uint32_t mib, calm;
	uint64_t *pages;
	int fd;

	deadline_ns =
		workload_deadline(argc, argv, "thrash_memory SECONDS FILE [MIB [CALM_SECONDS]]");
	mib = workload_number(argc, argv, 3, 300, CALM_MIB, MIB_MAX);
	calm = workload_number(argc, argv, 4, 0, 0, WORKLOAD_SECONDS_MAX);
	fd = argc > 2 ? open(argv[2], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
	if (fd < 0 || unlink(argv[2]) < 0 || fill_file(fd, mib) < 0) {
		perror("thrash_memory: FILE");
		return 1;
	}
	pages = mmap(NULL, (size_t)mib * MIB, PROT_READ, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		return 1;
	puts("ready");
	fflush(stdout);
	serve_cache(pages, (size_t)CALM_MIB * MIB / PAGE_BYTES,
		    workload_now_ns() + calm * 1000000000ull, true);
	serve_cache(pages, (size_t)mib * MIB / PAGE_BYTES, deadline_ns, false);
	return 0;
}
