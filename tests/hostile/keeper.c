/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keeper.c: a process that has secrets: random words on its stacks, in its heap and in its data,
 * and those of its environment. It is built without frame pointers, and keeps in the register that
 * they would be in now a secret, now the address of one: so a walk that trusts that register, or a
 * table that lies, comes by them. Two threads, of which one sleeps most of the time. The files that
 * it is called with it has mapped, as programs have their data. Writes its secrets at the start,
 * one a line in decimal, then "ready"; answers each line on stdin with "well" and its rounds, or
 * with the change of its secrets; ends with stdin.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define SECRETS 12
#define DEPTH	24
#define TURNS	20000

static uint64_t in_data[SECRETS], *in_heap;
static volatile uint64_t rounds, sum, harm;

/* What is kept; `data` was made first. */
static uint64_t expected(int i)
{
	return in_data[i];
}

/*
 * Runs with `value` in the register of frame pointers. The chain that a walk finds there is of
 * secrets: { the next one's address, a secret }.
 */
static __attribute__((noinline)) void run_with(uint64_t value)
{
#if defined(__x86_64__)
	asm volatile("pushq %%rbp\n\t"
		     "movq %0, %%rbp\n\t"
		     "movl %1, %%ecx\n\t"
		     "1: decl %%ecx\n\t"
		     "jnz 1b\n\t"
		     "popq %%rbp"
		     :
		     : "r"(value), "i"(TURNS)
		     : "rcx", "cc", "memory");
#else
	asm volatile("stp x29, x30, [sp, #-16]!\n\t"
		     "mov x29, %0\n\t"
		     "mov x9, %1\n\t"
		     "1: subs x9, x9, #1\n\t"
		     "b.ne 1b\n\t"
		     "ldp x29, x30, [sp], #16"
		     :
		     : "r"(value), "r"((uint64_t)TURNS)
		     : "x9", "cc", "memory");
#endif
}

/* Secrets in every frame, between the usual words of a stack. */
static __attribute__((noinline)) uint64_t dive(int depth, uint64_t seed)
{
	volatile uint64_t kept[2 * SECRETS];
	uint64_t found = 0;

	for (int i = 0; i < SECRETS; i++) {
		kept[2 * i] = (uint64_t)(uintptr_t)&kept[(2 * i + 2) % (2 * SECRETS)];
		kept[2 * i + 1] = expected(i);
	}
	if (depth > 0)
		found += dive(depth - 1, seed * 31 + 7);
	else
		run_with(seed % 3 == 0 ? expected((int)(seed % SECRETS))
				       : (uint64_t)(uintptr_t)&kept[0]);
	for (int i = 0; i < SECRETS; i++) {
		found += kept[2 * i + 1];
		if (kept[2 * i + 1] != expected(i) || in_heap[i] != expected(i))
			harm++;
	}
	return found;
}

static void once(uint64_t seed)
{
	sum += dive((int)(seed % DEPTH), seed);
	__atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
}

static void *sleep_mostly(void *context)
{
	for (uint64_t i = 0;; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		once(i);
	}
	return NULL;
}

static void *burn(void *context)
{
	for (uint64_t i = 0;; i++)
		once(i);
	return NULL;
}

static int map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p;

	if (fd < 0)
		return -1;
	p = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return p == MAP_FAILED ? -1 : 0;
}

static int begin(void)
{
	pthread_t burner, sleeper;

	in_heap = calloc(SECRETS, sizeof(*in_heap));
	if (!in_heap || getrandom(in_data, sizeof(in_data), 0) != sizeof(in_data))
		return -1;
	memcpy(in_heap, in_data, sizeof(in_data));
	for (int i = 0; i < SECRETS; i++)
		printf("%" PRIu64 "\n", in_data[i]);
	if (pthread_create(&burner, NULL, burn, NULL) != 0 ||
	    pthread_create(&sleeper, NULL, sleep_mostly, NULL) != 0)
		return -1;
	printf("ready\n");
	return 0;
}

int main(int argc, char *argv[])
{
	char line[16];

	for (int i = 1; i < argc; i++)
		if (map_file(argv[i]) < 0)
			return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (begin() < 0)
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		if (harm)
			printf("harmed: %" PRIu64 " secrets are others\n", harm);
		else
			printf("well %" PRIu64 "\n", rounds);
	}
	return 0;
}
