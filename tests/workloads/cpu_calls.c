/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu_calls SECONDS: spends known shares of its CPU time in known places, drawn by lot for a
 * millisecond at a time: 40 % in user mode, 30 % in getrandom(2), 20 % in pread(2) of /dev/zero,
 * 10 % in page faults and the madvise(2) that makes them anew.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "workload.h"

#define SLICE_NS    1000000ull /* of CPU time */
#define READ_BYTES  65536u
#define FAULT_BYTES (32u * 4096u)

static int zero_fd;
static uint8_t *room, *pages;
static volatile uint64_t total;

static uint64_t used_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

NAMED static bool spend_user(void)
{
	uint64_t sum = total;

	for (uint32_t i = 0; i < 5 * WORKLOAD_TURNS; i++) {
		sum = sum * 6364136223846793005ull + 1442695040888963407ull;
		KEEP_FRAME();
	}
	total = sum;
	return true;
}

NAMED static bool spend_getrandom(void)
{
	return getrandom(room, READ_BYTES, 0) >= 0;
}

NAMED static bool spend_pread(void)
{
	for (int i = 0; i < 16; i++)
		if (pread(zero_fd, room, READ_BYTES, 0) < 0)
			return false;
	return true;
}

NAMED static bool spend_faults(void)
{
	for (uint32_t at = 0; at < FAULT_BYTES; at += 4096)
		*(volatile uint8_t *)(pages + at) = 1;
	return !madvise(pages, FAULT_BYTES, MADV_DONTNEED);
}

/* Returns the number of the next draw, 0 to 9. */
static uint32_t draw(void)
{
	static uint64_t state = 88172645463325252ull;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % 10;
}

int main(int argc, char **argv)
{
	bool (*const lots[10])(void) = {
		spend_user,	 spend_user,	  spend_user,  spend_user,  spend_getrandom,
		spend_getrandom, spend_getrandom, spend_pread, spend_pread, spend_faults,
	};
	uint64_t deadline_ns = workload_deadline(argc, argv, "cpu_calls SECONDS");

	zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	room = malloc(READ_BYTES);
	pages = mmap(NULL, FAULT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (zero_fd < 0 || !room || pages == MAP_FAILED)
		return 1;
	madvise(pages, FAULT_BYTES, MADV_NOHUGEPAGE);
	while (workload_now_ns() < deadline_ns) {
		bool (*spend)(void) = lots[draw()];
		uint64_t until_ns = used_ns() + SLICE_NS;

		while (used_ns() < until_ns)
			if (!spend())
				return 1;
	}
	return 0;
}
