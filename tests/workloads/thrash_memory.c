/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thrash_memory SECONDS FILE [CALM_SECONDS]: a cache with a working set that outgrows its limit. It
 * reads FILE (made by the caller, larger than the memory limit) through a mapping: the first 8 MiB
 * while calm, all of it afterwards, so that under the limit each page has to be read again and
 * again. The page cache is dropped first, so that the pages count for this program's cgroup. Stack:
 * main > serve_cache > answer_lookups > reread_working_set.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "workload.h"

#define CALM_BYTES     (8ll << 20)
#define FILE_BYTES_MAX (8ll << 30)
#define PAGE_BYTES     4096u
#define PAGES_A_SLICE  64u
#define ROUNDS	       6u

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

int main(int argc, char **argv)
{
	uint64_t deadline_ns;
	struct stat st;
	uint32_t calm;
	uint64_t *pages;
	int fd;

	deadline_ns = workload_deadline(argc, argv, "thrash_memory SECONDS FILE [CALM_SECONDS]");
	calm = workload_number(argc, argv, 3, 0, 0, WORKLOAD_SECONDS_MAX);
	fd = argc > 2 ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < CALM_BYTES ||
	    st.st_size > FILE_BYTES_MAX) {
		fprintf(stderr, "thrash_memory: FILE: not there, or not 8 MiB to 8 GiB\n");
		return 1;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	pages = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		return 1;
	serve_cache(pages, CALM_BYTES / PAGE_BYTES, workload_now_ns() + calm * 1000000000ull, true);
	serve_cache(pages, (size_t)st.st_size / PAGE_BYTES, deadline_ns, false);
	return 0;
}
