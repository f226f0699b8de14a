/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_homes SECONDS FILE: threads that wait for locks that are no variables: in memory of malloc,
 * on a thread's own stack, and in memory that a child process shares, where it waits too. FILE gets
 * a line for each: name, pid, tid and address.
 */
#include "workload.h"

#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define WAKE_NS 10000000ull
#define BYTES	4096
#define OFFSET	64 /* of the lock in the shared memory */

static const char *const names[] = { "heap", "stack", "shared" };
static uint32_t *volatile words[3];
static uint64_t deadline_ns;
static const char *file;

static void wait_at(const char *name, uint32_t *word)
{
	FILE *f = fopen(file, "ae");

	if (!f)
		exit(1);
	fprintf(f, "%s %d %ld %p\n", name, getpid(), syscall(SYS_gettid), (void *)word);
	fclose(f);
	prctl(PR_SET_NAME, name);
	while (workload_now_ns() < deadline_ns) {
		uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);

		syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
	}
}

static void *wait_there(void *number)
{
	uint32_t own = 0, *word = words[(uintptr_t)number];

	if (!word)
		words[(uintptr_t)number] = word = &own;
	wait_at(names[(uintptr_t)number], word);
	return NULL;
}

static uint32_t *share(int fd)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : (uint32_t *)(at + OFFSET);
}

int main(int argc, char **argv)
{
	int fd = memfd_create("shop_queue", MFD_CLOEXEC);
	pthread_t thread;

	deadline_ns = workload_deadline(argc, argv, "lock_homes SECONDS FILE");
	if (argc < 3 || fd < 0 || ftruncate(fd, BYTES) < 0)
		return 1;
	file = argv[2];
	words[0] = calloc(1, 256);
	words[2] = share(fd);
	if (!words[0] || !words[2])
		return 1;
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, 9);
		/* Elsewhere than in the parent: the child has that mapping too. */
		wait_at("child", share(fd));
		return 0;
	}
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread, NULL, wait_there, (void *)i);
	while (workload_now_ns() < deadline_ns) {
		workload_rest(WAKE_NS);
		for (int i = 0; i < 3; i++) {
			if (!words[i])
				continue;
			__atomic_fetch_add(words[i], 1, __ATOMIC_SEQ_CST);
			syscall(SYS_futex, words[i], FUTEX_WAKE, 2, NULL, NULL, 0);
		}
	}
	return 0;
}
