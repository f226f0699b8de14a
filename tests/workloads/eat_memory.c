/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eat_memory SECONDS MIB [CALM_SECONDS]: a service that answers requests while calm and then keeps
 * memory that it should have dropped: MIB in all, at 64 MiB a second, and works on it. Under a
 * limit of less it is killed. Stack: main > serve_requests > hoard_pages.
 */
#include <sys/mman.h>

#include "workload.h"

#define PAGE_BYTES    4096u
#define MIB_MAX	      65536u
#define SLICE_PAGES   256u /* 1 MiB */
#define SLICES_SECOND 64u
#define ROUNDS	      4u

static volatile uint64_t checksum;

NAMED static void work_on(const uint64_t *words, size_t count)
{
	uint64_t sum = checksum;

	for (uint32_t round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < count; i++)
			sum = (sum ^ words[i]) * 1099511628211ull;
	checksum = sum;
	KEEP_FRAME();
}

/* Takes a slice of memory for ever and fills it. */
NAMED static void hoard_pages(void)
{
	size_t bytes = (size_t)SLICE_PAGES * PAGE_BYTES;
	uint64_t *words =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		return;
	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		words[i] = i;
	work_on(words, bytes / sizeof(*words));
}

NAMED static void serve_requests(uint32_t slices, uint64_t calm_until_ns, uint64_t until_ns)
{
	static uint64_t answer[SLICE_PAGES * PAGE_BYTES / sizeof(uint64_t)];
	uint32_t taken = 0;

	while (workload_now_ns() < until_ns) {
		if (workload_now_ns() > calm_until_ns && taken < slices) {
			hoard_pages();
			taken++;
		} else {
			work_on(answer, sizeof(answer) / sizeof(*answer));
		}
		workload_rest(1000000000ull / SLICES_SECOND);
	}
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns =
		workload_deadline(argc, argv, "eat_memory SECONDS MIB [CALM_SECONDS]");
	uint32_t mib = workload_number(argc, argv, 2, 64, 1, MIB_MAX);
	uint32_t calm = workload_number(argc, argv, 3, 0, 0, WORKLOAD_SECONDS_MAX);

	serve_requests(mib, workload_now_ns() + calm * 1000000000ull, deadline_ns);
	return 0;
}
