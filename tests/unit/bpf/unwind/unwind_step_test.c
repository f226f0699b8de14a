/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_step_test.c: bpf/unwind/unwind.h on the host, or, with STEP_BPF, in the kernel
 * (step.bpf.c). This program is compiled without frame pointers, has its own stack walked by the
 * tables of the files that it has mapped, and compares each return address with libgcc's unwinder.
 * (Not by backtrace(3), which sanitizers put a frame of theirs on.)
 */
#include "tests/unit/runner/unit.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "tests/unit/bpf/unwind/step_testing.h"
#include "tests/unit/consumer/unwind/testing/image_testing.h"
#include "tests/unit/consumer/unwind/testing/unwind_memory_testing.h"
#ifdef STEP_BPF
#include "tests/unit/bpf/unwind/step_kernel_testing.h"
#endif

#define FRAMES STEP_FRAMES

static struct step_module modules[STEP_MODULES];
static size_t module_count;

static void compile_module(const struct dl_phdr_info *info, struct unwind_table *t)
{
	bool vdso = info->dlpi_addr == getauxval(AT_SYSINFO_EHDR);
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	struct elf_image image;

	if (vdso)
		image = (struct elf_image){ .fd = -1,
					    .memory = (const uint8_t *)info->dlpi_addr,
					    .bytes = (size_t)getpagesize() };
	else
		assert_int_equal(image_open(path, &image), 0);
	assert_int_equal(unwind_compile(&image, &pool.rules, t), 0);
	image_close(&image);
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct step_module *m = &modules[module_count];
	struct unwind_table t;

	assert_true(module_count < STEP_MODULES);
	m->start = UINT64_MAX;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		m->start = at < m->start ? at : m->start;
		m->end = at + p->p_memsz > m->end ? at + p->p_memsz : m->end;
	}
	compile_module(info, &t);
	m->base = info->dlpi_addr + t.base;
	m->place = pool_place(&t);
	unwind_table_done(&t);
	module_count++;
	return 0;
}

static int setup(void **state)
{
	if (unwind_rules_init(&pool.rules) < 0 || dl_iterate_phdr(add_module, NULL) != 0)
		return -1;
#ifdef STEP_BPF
	return step_kernel_open(modules, module_count);
#else
	return 0;
#endif
}

static int teardown(void **state)
{
	unwind_rules_done(&pool.rules);
	free(pool.elements);
#ifdef STEP_BPF
	step_kernel_close();
#endif
	return 0;
}

/* A walk: the addresses, leaf first, and why it ended. */
static struct walk {
	uint64_t pcs[FRAMES];
	uint64_t expected[FRAMES];
	size_t count, expected_count;
	enum unwind_end end;
} walked;

static uint64_t stack_end; /* above the frames of main() */

static struct unwind_frame frame_of(const ucontext_t *from)
{
	stack_t handlers;

	assert_int_equal(sigaltstack(NULL, &handlers), 0);
	return (struct unwind_frame){
		.pc = (uint64_t)from->uc_mcontext.gregs[REG_RIP],
		.sp = (uint64_t)from->uc_mcontext.gregs[REG_RSP],
		.fp = (uint64_t)from->uc_mcontext.gregs[REG_RBP],
		.exact = 1,
		.bounds = { .main = stack_end,
			    .alternate = (uint64_t)handlers.ss_sp,
			    .alternate_bytes = handlers.ss_size },
	};
}

#ifdef STEP_BPF
static void walk(const ucontext_t *from)
{
	const struct unwind_frame f = frame_of(from);
	const struct step_walk *w = step_kernel_walk(&f);

	assert_non_null(w);
	walked.count = w->count;
	walked.end = (enum unwind_end)w->end;
	memcpy(walked.pcs, w->pcs, sizeof(w->pcs));
}
#else
static enum unwind_end step(struct unwind_frame *f)
{
	for (size_t i = 0; i < module_count; i++)
		if (f->pc >= modules[i].start && f->pc < modules[i].end)
			return unwind_step(f, &modules[i].place, modules[i].base);
	return UNWIND_END_NO_MAPPING;
}

static void walk(const ucontext_t *from)
{
	struct unwind_frame f = frame_of(from);

	unwind_begin(&f);
	walked.count = 0;
	do {
		walked.pcs[walked.count++] = f.pc;
		walked.end = walked.count == FRAMES ? UNWIND_END_DEPTH : step(&f);
	} while (walked.end == UNWIND_END_NONE);
}
#endif

static long repeat = 1; /* walks from one place */

static _Unwind_Reason_Code expect_frame(struct _Unwind_Context *context, void *unused)
{
	uint64_t pc = _Unwind_GetIP(context);

	if (pc == 0 || walked.expected_count == FRAMES)
		return _URC_END_OF_STACK;
	walked.expected[walked.expected_count++] = pc;
	return _URC_NO_REASON;
}

/* Walks from here by both; the first address of each lies in this function. */
static __attribute__((noinline)) void walk_here(void)
{
	ucontext_t here;

	walked.expected_count = 0;
	_Unwind_Backtrace(expect_frame, NULL);
	getcontext(&here);
	for (long i = 0; i < repeat; i++)
		walk(&here);
}

/* Every caller is the same, up to the outermost frame. */
static void check_walk(size_t at_least)
{
	assert_int_equal(walked.end, UNWIND_END_COMPLETE);
	assert_true(walked.count >= at_least);
	assert_int_equal(walked.count, walked.expected_count);
	for (size_t i = 1; i < walked.count; i++)
		assert_int_equal(walked.pcs[i], walked.expected[i]);
}

/* Kept from being one function with its caller, or a jump. */
#define APART __attribute__((noinline))
static volatile long sink;

static APART long recurse(long depth)
{
	long local[5] = { depth, depth + 1 };

	if (depth == 0)
		walk_here();
	else
		sink += recurse(depth - 1);
	sink += local[depth & 1];
	return local[0];
}

static void test_recursion(void **state)
{
	recurse(3);
	check_walk(8);
	recurse(100);
	check_walk(104);
}

static APART void with_alloca(size_t bytes)
{
	char *p = __builtin_alloca(bytes);

	p[0] = (char)bytes;
	recurse(2);
	sink += p[0];
}

static APART void with_realigned_frame(size_t bytes)
{
	char aligned[64] __attribute__((aligned(64)));
	char *p = __builtin_alloca(bytes);

	p[0] = aligned[0] = (char)bytes;
	with_alloca(bytes);
	sink += p[0] + aligned[0];
}

static APART void with_large_frame(void)
{
	volatile char large[200000];

	large[0] = 1;
	with_realigned_frame(100);
	sink += large[0];
}

static void test_odd_frames(void **state)
{
	with_alloca(1000);
	check_walk(8);
	with_realigned_frame(1000);
	check_walk(9);
	with_large_frame();
	check_walk(10);
}

static int compare(const void *a, const void *b)
{
	if (sink++ == 0)
		recurse(1);
	return *(const int *)a - *(const int *)b;
}

/* Through the C library, which keeps no frame pointers. */
static void test_callback(void **state)
{
	int numbers[] = { 3, 1, 2, 5, 4 };

	sink = 0;
	qsort(numbers, 5, sizeof(*numbers), compare);
	check_walk(8);
}

static void *thread_main(void *context)
{
	recurse(2);
	return context;
}

static void test_thread(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	check_walk(5);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	recurse(1);
}

static APART void raise_here(void)
{
	pthread_kill(pthread_self(), SIGUSR1);
	sink++;
}

/* Also where the handler's stack lies above the interrupted one, and below it. */
static void test_signal(void **state)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	stack_t other = { .ss_size = 1u << 16 };
	char above[1u << 16];

	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	raise_here();
	check_walk(8);
	act.sa_flags |= SA_ONSTACK;
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	other.ss_sp = mmap(NULL, other.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	assert_int_equal(sigaltstack(&other, NULL), 0);
	raise_here();
	check_walk(8);
	munmap(other.ss_sp, other.ss_size);
	other.ss_sp = above;
	assert_int_equal(sigaltstack(&other, NULL), 0);
	raise_here();
	check_walk(8);
	other.ss_flags = SS_DISABLE;
	assert_int_equal(sigaltstack(&other, NULL), 0);
}

static void test_depth(void **state)
{
	recurse(500);
	assert_int_equal(walked.end, UNWIND_END_DEPTH);
	assert_int_equal(walked.count, FRAMES);
	for (size_t i = 1; i < walked.count; i++)
		assert_int_equal(walked.pcs[i], walked.expected[i]);
}

#ifdef STEP_BPF
/* The cost of a walk in the kernel, and the verifier's work: for people, no verdict. */
static void test_cost(void **state)
{
	static const long depths[] = { 4, 24, 54, 94 };
	uint64_t runs, ns;

	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		repeat = 20000;
		step_kernel_stats(&runs, &ns);
		recurse(depths[i]);
		step_kernel_stats(&runs, &ns);
		repeat = 1;
		check_walk((size_t)depths[i]);
		if (runs > 0)
			print_message("%zu frames: %lu ns a walk, %.1f ns a frame\n", walked.count,
				      (unsigned long)(ns / runs),
				      (double)ns / (double)runs / (double)walked.count);
	}
	print_message("verified instructions: %u\n", step_kernel_verified());
}
#endif

UNIT_TESTS(unwind_step)
{
	const struct CMUnitTest tests[] = {
#ifdef STEP_BPF
		cmocka_unit_test(test_cost),
#endif

		cmocka_unit_test(test_recursion), cmocka_unit_test(test_odd_frames),
		cmocka_unit_test(test_callback),  cmocka_unit_test(test_thread),
		cmocka_unit_test(test_signal),	  cmocka_unit_test(test_depth),
	};

	stack_end = getauxval(AT_EXECFN); /* the kernel puts this string above all frames */
#ifdef STEP_BPF
	if (geteuid() != 0) {
		printf("skipped: only root can ask the kernel's side\n");
		return 77;
	}
#endif
	return cmocka_run_group_tests(tests, setup, teardown);
}
