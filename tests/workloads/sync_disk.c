/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sync_disk SECONDS FILE [KIB [CALM_SECONDS]]: a journal that syncs each entry. While calm it only
 * computes checksums at a quarter of a CPU; afterwards it writes KIB (default 256) KiB and calls
 * fsync for each checksum. FILE is unlinked at once and wraps at FILE_BLOCKS blocks.
 * Stack: main > serve_journal > append_entry > checksum_block (and fsync).
 */
#include <fcntl.h>

#include "workload.h"

#define KIB_MAX	    4096u
#define FILE_BLOCKS 64u
#define ROUNDS	    12u

static uint64_t block[KIB_MAX * 1024u / sizeof(uint64_t)];

NAMED static uint64_t checksum_block(size_t bytes, uint32_t rounds)
{
	uint64_t sum = block[0] + 1;

	for (uint32_t round = 0; round < rounds; round++) {
		for (size_t i = 0; i < bytes / sizeof(*block); i++)
			sum = (sum ^ block[i]) * 1099511628211ull;
	}
	return sum;
}

NAMED static int append_entry(int fd, size_t bytes, uint32_t n)
{
	block[n % (bytes / sizeof(*block))] = checksum_block(bytes, ROUNDS);
	if (pwrite(fd, block, bytes, (off_t)(n % FILE_BLOCKS) * (off_t)bytes) != (ssize_t)bytes)
		return -EIO;
	return fsync(fd) < 0 ? -errno : 0;
}

NAMED static int serve_journal(int fd, size_t bytes, uint64_t until_ns)
{
	int r = 0;

	for (uint32_t n = 0; r >= 0 && workload_now_ns() < until_ns; n++)
		r = append_entry(fd, bytes, n);
	return r;
}

NAMED static void verify_journal(size_t bytes, uint64_t until_ns)
{
	while (workload_now_ns() < until_ns) {
		uint64_t turn_ns = workload_now_ns() + WORKLOAD_SLICE_NS;

		while (workload_now_ns() < turn_ns)
			block[1] = checksum_block(bytes, 1);
		workload_rest(WORKLOAD_REST_NS);
	}
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns;
	uint32_t kib, calm;
	int fd;

	deadline_ns = workload_deadline(argc, argv, "sync_disk SECONDS FILE [KIB [CALM_SECONDS]]");
	kib = workload_number(argc, argv, 3, 256, 4, KIB_MAX);
	calm = workload_number(argc, argv, 4, 0, 0, WORKLOAD_SECONDS_MAX);
	fd = argc > 2 ? open(argv[2], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
	if (fd < 0 || unlink(argv[2]) < 0) {
		perror("sync_disk: FILE");
		return 1;
	}
	verify_journal(kib * 1024u, workload_now_ns() + calm * 1000000000ull);
	return serve_journal(fd, kib * 1024u, deadline_ns) < 0;
}
