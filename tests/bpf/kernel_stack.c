/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_stack.c: the kernel's stacks, walked by remembered rows, against the kernel's own answers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernel_work.h"
#include "loader/kernel_rows.h"
#include "sample_fixture.h"
#include "shared/tools/cleanup.h"

#define HZ_HIGH	     4999
#define COMPARED     3000    /* of all works together; a fifth with TROCAR_SHORT=1 */
#define COMPARED_ALL 5000000 /* with TROCAR_LONG=1 */
#define WAIT_S	     60
#define ASKED_PCT    10 /* walks that may be given up: tracers, code of BPF */

struct scene {
	struct harness *h;
	char dir[4096];
};

/* All walks are compared. `by_copies`: as on kernels before 6.7, without plain loads. */
static struct scene begin(bool by_copies)
{
	const struct harness_options options = { .kernel_stack_checked = 1,
						 .vmas_tree = by_copies };
	struct scene s = { .h = harness_new(&options) };
	uint64_t id;

	id = harness_group(s.h, "works", s.dir);
	harness_watch(s.h, id, SLOT, SLOT_CAPTURE, 0);
	return s;
}

static void show(const char *what, const struct totals *t)
{
	print_message("%s: %llu compared, %llu wrong, %llu asked for\n", what,
		      (unsigned long long)t->kernel_stacks_compared,
		      (unsigned long long)t->kernel_stacks_wrong,
		      (unsigned long long)t->kernel_stacks_asked);
}

/* Each part of the kernel in turn. */
static void compare_walks(bool by_copies)
{
	bool all = getenv("TROCAR_LONG");
	uint64_t some = getenv("TROCAR_SHORT") ? COMPARED / 5 : COMPARED;
	uint64_t want = (all ? COMPARED_ALL : some) / kernel_works_count;
	struct scene s = begin(by_copies);
	struct totals before = {}, now = {};

	if (!kernel_rows_learn(s.h->skel->progs.orc_symbols, s.h->skel->progs.orc_learn)) {
		harness_free(s.h);
		print_message("this kernel has no unwind tables, or hides them\n");
		skip();
	}
	harness_tick(s.h, HZ_HIGH);
	for (size_t i = 0; i < kernel_works_count; i++) {
		pid_t pid = harness_start(kernel_works[i].run, NULL, s.dir);
		uint64_t end_ns = harness_now_ns() + (all ? 60 : 1) * WAIT_S * 1000000000ull;

		do {
			harness_sleep_ms(20);
			harness_drain(s.h);
			harness_forget(s.h);
			now = harness_totals(s.h);
		} while (now.kernel_stacks_compared - before.kernel_stacks_compared < want &&
			 harness_now_ns() < end_ns);
		harness_kill(pid);
		before = now;
		show(kernel_works[i].name, &now);
		assert_int_equal(now.kernel_stacks_wrong, 0);
	}
	assert_true(now.kernel_stacks_compared >= want * kernel_works_count / 2);
	assert_true(now.kernel_stacks_asked * 100 <= now.kernel_stacks_compared * ASKED_PCT);
	harness_free(s.h);
}

static void walks_are_the_kernels_own(void **state)
{
	compare_walks(false);
}

static void walks_by_copies_are_too(void **state)
{
	compare_walks(true);
}

/* Bits of a row (bpf/stack/orc.h). */
#define ROW_KIND    (3ull << 24)
#define ROW_PLAIN   (1ull << 27)
#define ROW_BP_WORD (3ull << 20) /* the caller's stack pointer stands where bp points to */

/* Changes bits of all rows that are remembered. Without its kind a frame is the outermost. */
static size_t spoil_rows(struct harness *h, uint64_t clear, uint64_t set)
{
	int fd = bpf_map__fd(h->skel->maps.orc_rows);
	uint32_t zero = 0, bytes = bpf_map__value_size(h->skel->maps.orc_rows);
	_cleanup_free_ uint64_t *rows = malloc(bytes);
	size_t spoiled = 0;

	assert_non_null(rows);
	assert_int_equal(bpf_map_lookup_elem(fd, &zero, rows), 0);
	for (size_t i = 0; i < bytes / sizeof(*rows); i++)
		if (rows[i]) {
			rows[i] = (rows[i] & ~clear) | set;
			spoiled++;
		}
	assert_int_equal(bpf_map_update_elem(fd, &zero, rows, BPF_ANY), 0);
	return spoiled;
}

static struct totals await(struct harness *h, bool (*is_there)(const struct totals *t))
{
	struct totals now = {};

	for (int i = 0; i < WAIT_MS / 10; i++) {
		now = harness_totals(h);
		if (is_there(&now))
			break;
		harness_sleep_ms(10);
		harness_drain(h);
		harness_forget(h);
	}
	assert_true(is_there(&now));
	return now;
}

static uint64_t seen; /* in the last totals, of the awaited counter */

static bool has_compared(const struct totals *t)
{
	return t->kernel_stacks_compared > seen + 100;
}

static bool is_wrong(const struct totals *t)
{
	return t->kernel_stacks_wrong > seen;
}

static bool is_asked(const struct totals *t)
{
	return t->kernel_stacks_asked > seen + 100;
}

/* Rows that lead to where nothing is end a walk, and the kernel is asked. */
static void words_from_nowhere_end_walks(void **state)
{
	struct scene s = begin(false);
	struct totals now;
	pid_t pid;

	if (!kernel_rows_learn(s.h->skel->progs.orc_symbols, s.h->skel->progs.orc_learn)) {
		harness_free(s.h);
		skip();
	}
	pid = harness_start(kernel_works[0].run, NULL, s.dir);
	harness_tick(s.h, HZ_HIGH);
	seen = 0;
	await(s.h, has_compared);
	assert_true(spoil_rows(s.h, ROW_PLAIN, ROW_BP_WORD) > 10);
	seen = harness_totals(s.h).kernel_stacks_asked;
	now = await(s.h, is_asked);
	assert_int_equal(now.kernel_stacks_wrong, 0);
	harness_kill(pid);
	harness_free(s.h);
}

/*
 * Rows that are wrong are noticed, and forgotten; a walk that is wrong too often is not used any
 * more.
 */
static void wrong_rows_are_dropped(void **state)
{
	struct scene s = begin(false);
	struct totals now;
	pid_t pid;

	if (!kernel_rows_learn(s.h->skel->progs.orc_symbols, s.h->skel->progs.orc_learn)) {
		harness_free(s.h);
		skip();
	}
	pid = harness_start(kernel_works[0].run, NULL, s.dir);
	harness_tick(s.h, HZ_HIGH);
	for (int i = 0; i < 4; i++) {
		seen = harness_totals(s.h).kernel_stacks_compared;
		now = await(s.h, has_compared);
		assert_int_equal(now.kernel_stacks_wrong, i);
		assert_true(spoil_rows(s.h, ROW_KIND | ROW_PLAIN, 0) > 10);
		seen = now.kernel_stacks_wrong;
		now = await(s.h, is_wrong);
		assert_int_equal(now.kernel_stacks_wrong, i + 1);
	}
	harness_sleep_ms(100);
	seen = harness_totals(s.h).kernel_stacks_compared;
	harness_sleep_ms(500);
	assert_int_equal(harness_totals(s.h).kernel_stacks_compared, seen);
	harness_drain(s.h);
	/* The kernel is asked. */
	assert_true(s.h->samples.count > 0);
	harness_kill(pid);
	harness_free(s.h);
}

/* The begin of struct orc_areas (bpf/stack/orc.h). */
struct areas_head {
	uint32_t count, wrong;
	uint64_t hooks[2], modules, ips_end, function;
};

/*
 * Has the kernel side learn the numbers by the row of that address. Returns the value of orc_learn.
 */
static uint32_t learn_by(struct harness *h, struct areas_head *areas, uint64_t function)
{
	int map = bpf_map__fd(h->skel->maps.orc_areas);
	uint32_t zero = 0;
	LIBBPF_OPTS(bpf_test_run_opts, run);

	areas->function = function;
	assert_int_equal(bpf_map_update_elem(map, &zero, areas, BPF_ANY), 0);
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(h->skel->progs.orc_learn), &run),
			 0);
	/* The sampler walks where there are areas. */
	assert_int_equal(bpf_map_lookup_elem(map, &zero, areas), 0);
	assert_int_equal(areas->count, run.retval);
	return run.retval;
}

/* Where the tables do not have the numbers of the registers, no stack is walked by them. */
static void unknown_numbers_are_not_followed(void **state)
{
	struct scene s = begin(false);
	_cleanup_free_ struct areas_head *areas =
		malloc(bpf_map__value_size(s.h->skel->maps.orc_areas));
	uint32_t zero = 0;
	uint64_t function;

	if (!kernel_rows_learn(s.h->skel->progs.orc_symbols, s.h->skel->progs.orc_learn)) {
		harness_free(s.h);
		skip();
	}
	assert_non_null(areas);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(s.h->skel->maps.orc_areas), &zero, areas),
			 0);
	function = areas->function;
	assert_true(learn_by(s.h, areas, function) > 0);
	assert_int_equal(learn_by(s.h, areas, 0), 0);
	/* The middle of the function keeps more than 8 bytes on the stack. */
	assert_int_equal(learn_by(s.h, areas, function + 24), 0);
	harness_free(s.h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_are_the_kernels_own),
		cmocka_unit_test(walks_by_copies_are_too),
		cmocka_unit_test(words_from_nowhere_end_walks),
		cmocka_unit_test(wrong_rows_are_dropped),
		cmocka_unit_test(unknown_numbers_are_not_followed),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
