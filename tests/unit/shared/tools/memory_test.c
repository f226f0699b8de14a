/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is given back is no longer resident, and its content is still right; memory that is
 * kept is resident.
 */
#include "tests/unit/shared/unit_testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/tools/memory.h"

#define BLOCKS 4096u
#define BYTES  2048u
#define KEPT   (16u << 20)

static size_t resident_pages(void)
{
	unsigned long whole, resident;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &whole, &resident), 2);
	fclose(f);
	return resident;
}

/* Only a program with AddressSanitizer has it. */
extern void __asan_init(void) __attribute__((weak));

/* 8 MiB in blocks, of which the last one stays: free(3) alone cannot give back the memory below. */
static void test_freed_blocks(void **state)
{
	static char *blocks[BLOCKS];
	size_t before;

	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BYTES);
		assert_non_null(blocks[i]);
		memset(blocks[i], (int)i, BYTES);
	}
	for (size_t i = 0; i < BLOCKS - 1; i++)
		free(blocks[i]);
	before = resident_pages();
	memory_give_back();
	/* A sanitizer's own malloc keeps them. */
	if (!__asan_init)
		assert_true(resident_pages() + (6u << 20) / (size_t)sysconf(_SC_PAGESIZE) < before);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal((unsigned char)blocks[BLOCKS - 1][i], (BLOCKS - 1) & 0xff);
	free(blocks[BLOCKS - 1]);
}

static char *shared_blocks[BLOCKS];

static void *fill_blocks(void *context)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		shared_blocks[i] = malloc(BYTES);
		if (shared_blocks[i])
			memset(shared_blocks[i], 1, BYTES);
	}
	return NULL;
}

/* What a thread took lies in the one arena, the program's break; freed, it is given back. */
static void test_shared_arena(void **state)
{
	const char *begin = sbrk(0);
	pthread_t thread;
	size_t before;

	memory_share_arena();
	assert_int_equal(pthread_create(&thread, NULL, fill_blocks, NULL), 0);
	pthread_join(thread, NULL);
	if (__asan_init)
		skip();
	assert_true(shared_blocks[BLOCKS - 1] >= begin &&
		    shared_blocks[BLOCKS - 1] < (const char *)sbrk(0));
	for (size_t i = 0; i < BLOCKS - 1; i++)
		free(shared_blocks[i]);
	before = resident_pages();
	memory_trim();
	assert_true(resident_pages() + (6u << 20) / (size_t)sysconf(_SC_PAGESIZE) < before);
	free(shared_blocks[BLOCKS - 1]);
}

static int constant = 7;
static const char *const words[] = { "one", "two" };

/* Code, constants and words relocated by the program loader are as before. */
static void test_segments(void **state)
{
	char text[32];

	constant = 8;
	memory_give_back();
	snprintf(text, sizeof(text), "%s %s %d", words[0], words[1], constant);
	assert_string_equal(text, "one two 8");
}

/* A block that is freed stays resident, in the heap, and the next one has its pages. */
static void test_keep(void **state)
{
	const char *block_end;
	char *block;
	size_t before;

	if (__asan_init)
		skip(); /* its own malloc */
	memory_keep(KEPT);
	for (int i = 0; i < 2; i++) {
		block = malloc(KEPT / 2);
		block_end = block + KEPT / 2; /* the heap ends soon behind it */
		assert_true(block_end <= (const char *)sbrk(0) &&
			    block_end + 4 * KEPT > (const char *)sbrk(0));
		memset(block, 1, KEPT / 2);
		before = resident_pages();
		free(block);
		assert_true(resident_pages() + 16 >= before);
	}
}

UNIT_TESTS(memory)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_freed_blocks), cmocka_unit_test(test_shared_arena),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_keep), /* changes malloc for what follows */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
