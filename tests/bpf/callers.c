/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callers.c: stacks by frame pointers, of processes that have no table: the report of a chain that
 * leads over data. A process stands still with a chain of frames and return addresses of the test's
 * choice; the first that is no address of code ends the stack, whatever stands behind it.
 */
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sample_fixture.h"

HARNESS_LOADS("sampler", "ranges*");

#define FRAMES 6

/* One frame, as code that keeps frame pointers has it. */
struct frame {
	volatile uint64_t next, caller;
};

static struct frame *chain; /* shared with the process */

/* Words that are none of code: numbers, a text, addresses of data of a file, of memory. */
static uint64_t data[] = { 0, 0, 0, 0 };

static uint64_t not_code(int which)
{
	static uint64_t *heap;

	if (!heap)
		heap = calloc(16, sizeof(*heap));
	switch (which) {
	case 0:
		return 0x64726f7773736170;
	case 1:
		return (uint64_t)(heap + 8);
	case 2:
		return (uint64_t)(data + 2);
	case 3:
		return (uint64_t)chain;
	default:
		return 17;
	}
}

#define NOT_CODE 5

/* An address of the C library behind a call, and one that is behind none. */
static uint64_t in_library(bool behind_call)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)qsort;

#if defined(__x86_64__)
	/* Behind a call of 5 bytes; behind none, whatever its length. */
	for (;; at++)
		if (behind_call ? at[-5] == 0xe8 : at[-5] != 0xe8 && !memchr(at - 7, 0xff, 7))
			return (uint64_t)at;
#else
	for (;; at += 4)
		if ((((const uint32_t *)(const void *)at)[-1] >> 26 == 0x25) == behind_call)
			return (uint64_t)at;
#endif
}

static void stand(void *context)
{
	/* A page that is read again and again stays resident. */
	uint64_t called = in_library(true);

	for (int i = 0; i < FRAMES; i++)
		chain[i].next = i + 1 < FRAMES ? (uint64_t)&chain[i + 1] : 0;
#if defined(__x86_64__)
	__asm__ volatile("mov %0, %%rbp\n1:\tmovb (%1), %%al\n\tjmp 1b" ::"r"(chain), "r"(called)
			 : "rax");
#else
	__asm__ volatile("mov x29, %0\n1:\tldrb w0, [%1]\n\tb 1b" ::"r"(chain), "r"(called) : "x0");
#endif
	_exit(1);
}

/* The user frames of the newest sample since now; how many there are. */
static size_t newest(struct fixture *f, uint64_t frames[STACK_FRAMES])
{
	uint64_t since_ns = harness_now_ns();

	harness_forget(f->h);
	for (;;) {
		assert_true(harness_now_ns() - since_ns < 5000000000u);
		harness_drain(f->h);
		for (size_t i = 0; i < f->h->samples.count; i++) {
			const struct sample *s = sample_at(f->h, i);
			const uint8_t *user =
				(const uint8_t *)(s + 1) + s->kernel_frames * sizeof(uint64_t);

			if (s->tgid != (uint32_t)f->pid || s->time_ns < since_ns)
				continue;
			assert_int_equal(f->h->samples.bytes[i], sample_bytes(s));
			if (s->flags & SAMPLE_BUILD_ID)
				user += s->user_frames * sizeof(struct frame_build_id);
			memcpy(frames, user, s->user_frames * sizeof(uint64_t));
			return s->user_frames;
		}
		harness_sleep_ms(1);
	}
}

/*
 * Has the head of a mapped file in memory: the kernel reads the build-id there, and waits for no
 * disk.
 */
static int touch_head(struct dl_phdr_info *object, size_t size, void *context)
{
	if (object->dlpi_addr)
		(void)*(const volatile char *)object->dlpi_addr;
	return 0;
}

/*
 * Asserts that the stack has `wanted` user frames, and never more. The kernel looks files up only
 * when it gets the lock of the mappings at once, and the stack is shorter when it does not, or when
 * it has given the head of a file back: so a later sample may be the one.
 */
static void check_length(struct fixture *f, uint64_t frames[STACK_FRAMES], size_t wanted)
{
	uint64_t began_ns = harness_now_ns();
	size_t n;

	while ((n = newest(f, frames)) < wanted) {
		dl_iterate_phdr(touch_head, NULL);
		assert_true(harness_now_ns() - began_ns < 5000000000u);
	}
	assert_int_equal(n, wanted);
}

/* The chain goes on for as long as it leads from code to code. */
static void check_chain(struct fixture *f)
{
	uint64_t frames[STACK_FRAMES], called = in_library(true), own = (uint64_t)check_chain;

	for (int at = 0; at < FRAMES; at++)
		for (int which = 0; which <= NOT_CODE; which++) {
			for (int i = 0; i < FRAMES; i++)
				chain[i].caller = i % 2 ? called : own;
			chain[at].caller = which < NOT_CODE ? not_code(which) : in_library(false);
			check_length(f, frames, at + 1);
			for (int i = 0; i < at; i++)
				assert_int_equal(frames[i + 1], i % 2 ? called : own);
		}
	for (int i = 0; i < FRAMES; i++)
		chain[i].caller = i % 2 ? called : own;
	check_length(f, frames, FRAMES + 1);
}

/* As addresses, and as build-ids with their addresses. */
static void only_code_is_told(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);
	pid_t first = f.pid;

	chain = mmap(NULL, FRAMES * sizeof(*chain), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(chain, MAP_FAILED);
	setpriority(PRIO_PROCESS, 0, -20);
	f.pid = harness_start(stand, NULL, f.dir);
	harness_kill(first);
	harness_sleep_ms(100);
	harness_tick(f.h, 4000);
	check_chain(&f);
	harness_target_set(f.h, f.pid, TARGET_MAPPED);
	check_chain(&f);
	sample_stop(f.h);
	sample_end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(only_code_is_told) };

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
