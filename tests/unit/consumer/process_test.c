/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is who over reuse of pids, exec and exit, and what the kernel side is told of it. */
#include "fake_agent.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>

#include "consumer/matching.h"
#include "consumer/process.h"
#include "consumer/symbols/jit_files.h"
#include "shared/clock.h"
#include "tests/unit/symbols/records_file.h"

static struct fake *fake;

static int setup(void **state)
{
	fake = fake_new();
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	fake = NULL;
	return 0;
}

static struct process *made(uint32_t tgid, uint64_t start_ns)
{
	struct process *p;

	assert_int_equal(process_get(&fake->a.processes, tgid, start_ns, &p), 0);
	return p;
}

/* A process is pid and start time: the pid used again is another. */
static void test_identity(void **state)
{
	struct process *first, *again;

	if (!fake)
		skip();
	assert_null(process_find(&fake->a.processes, 100, 5));
	first = made(100, 5);
	assert_ptr_equal(made(100, 5), first);
	again = made(100, 6);
	assert_ptr_not_equal(again, first);
	assert_ptr_equal(process_find(&fake->a.processes, 100, 5), first);
	assert_ptr_equal(process_find(&fake->a.processes, 100, 6), again);
	assert_null(process_find(&fake->a.processes, 101, 5));
}

static void test_full(void **state)
{
	struct process *p = (struct process *)state;

	if (!fake)
		skip();
	for (uint32_t i = 1; i <= FAKE_PROCESSES; i++)
		made(i, i);
	assert_int_equal(process_get(&fake->a.processes, FAKE_PROCESSES + 1, 1, &p), -ENOSPC);
	assert_ptr_equal(p, state);
	assert_int_equal(process_get(&fake->a.processes, 7, 7, &p), 0);
	/* Those that have gone and linger keep no newcomer out. */
	matching_gone(&fake->a, p);
	assert_int_equal(process_get(&fake->a.processes, FAKE_PROCESSES + 1, 1, &p), 0);
	assert_null(process_find(&fake->a.processes, 7, 7));
}

/* It lingers for the samples that are on their way, and makes room then. */
static void test_gone(void **state)
{
	uint64_t linger_ns = PROCESS_LINGER_MS * NSEC_PER_MSEC;
	struct process *p;

	if (!fake)
		skip();
	p = made(100, 5);
	p->announced = true;
	strcpy(p->comm, "node");
	made(101, 5);
	matching_gone(&fake->a, p);
	matching_gone(&fake->a, p);
	assert_int_equal(fake->a.processes.gone, 1);
	assert_int_equal(fake_count(fake, "process.exit"), 1);
	assert_ptr_equal(process_find(&fake->a.processes, 100, 5), p);
	processes_sweep(&fake->a.processes, p->gone_ns + linger_ns);
	assert_ptr_equal(process_find(&fake->a.processes, 100, 5), p);
	processes_sweep(&fake->a.processes, p->gone_ns + linger_ns + 1);
	assert_null(process_find(&fake->a.processes, 100, 5));
	assert_int_equal(fake->a.processes.gone, 0);
	assert_non_null(process_find(&fake->a.processes, 101, 5));
}

/* Who was never announced leaves without a word. */
static void test_gone_unannounced(void **state)
{
	if (!fake)
		skip();
	matching_gone(&fake->a, made(100, 5));
	assert_int_equal(fake_count(fake, "process.exit"), 0);
}

/* One mapping of tgid 100, as this image of it, in the file that stands for the iterator. */
static void write_image(uint64_t start, uint32_t image)
{
	struct mapping_record r = { .start_ns = 5,
				    .tgid = 100,
				    .start = start,
				    .end = start + 0x1000,
				    .inode = 7,
				    .device = 1,
				    .flags = MAPPING_IS_EXE,
				    .image = image };
	FILE *file = fopen(fake->vmas, "we");

	assert_non_null(file);
	records_file_mapping(file, r, "/nonexistent/app");
	fclose(file);
}

static void write_mapping(uint64_t start)
{
	write_image(start, 0);
}

static bool mapped_in_kernel(const struct process *p)
{
	struct process_key key = { .tgid = p->tgid, .start_ns = p->start_ns };
	struct target target;

	return bpf_map_lookup_elem(fake->a.pins.targets_fd, &key, &target) == 0 &&
	       target.flags & TARGET_MAPPED;
}

/*
 * Read, and asked for younger mappings at once: what was read stays, 0x10000, for the wall's time.
 * Once more where this thread was held up for longer than that.
 */
static void ask_too_soon(struct process *p,
			 bool (*map)(struct process_mappings *, struct process *, uint64_t),
			 uint64_t wall_ns)
{
	uint64_t began_ns;

	do {
		began_ns = clock_mono_ns();
		p->tried_ns = 0;
		write_mapping(0x10000);
		assert_true(map(&fake->a.mappings, p, UINT64_MAX));
		write_mapping(0x20000);
		assert_true(map(&fake->a.mappings, p, UINT64_MAX));
	} while (p->maps.items[0].start != 0x10000 && clock_mono_ns() - began_ns >= wall_ns);
	assert_int_equal(p->maps.items[0].start, 0x10000);
}

/* Read once, and again only when what is asked for is younger; never more often than the wall. */
static void test_map(void **state)
{
	struct process *p;
	uint64_t first;

	if (!fake)
		skip();
	p = made(100, 5);
	p->requested = true;
	assert_int_equal(process_targets_match(&fake->a.targets, p), 0);
	assert_false(mapped_in_kernel(p));
	write_mapping(0x10000);
	assert_true(process_mappings_read(&fake->a.mappings, p, 0));
	assert_int_equal(p->maps.count, 1);
	assert_int_equal(p->maps.items[0].start, 0x10000);
	process_unwind_step(&fake->a.unwind);
	assert_true(mapped_in_kernel(p));
	first = p->maps.read_ns;
	write_mapping(0x20000);
	assert_true(process_mappings_read(&fake->a.mappings, p, 0));
	assert_int_equal(p->maps.items[0].start, 0x10000);
	ask_too_soon(p, process_mappings_read, 100 * NSEC_PER_MSEC);
	first = p->maps.read_ns;
	p->tried_ns -= 200 * NSEC_PER_MSEC;
	assert_true(process_mappings_read(&fake->a.mappings, p, first + 1));
	assert_int_equal(p->maps.items[0].start, 0x20000);
	/* Of one that has gone, what was read before is what there is. */
	p->tried_ns = 0;
	p->gone_ns = clock_mono_ns();
	assert_true(process_mappings_read(&fake->a.mappings, p, UINT64_MAX));
	assert_int_equal(p->maps.items[0].start, 0x20000);
	p->gone_ns = 0;
}

static void test_map_nobody(void **state)
{
	uint64_t tried_ns;
	struct process *p;

	if (!fake)
		skip();
	write_mapping(0x10000);
	p = made(200, 5);
	assert_false(process_mappings_read(&fake->a.mappings, p, 0));
	assert_int_equal(p->maps.count, 0);
	tried_ns = p->tried_ns;
	assert_true(tried_ns > 0);
	/* The failure counts as a try. */
	assert_false(process_mappings_read(&fake->a.mappings, p, 0));
	assert_int_equal(p->tried_ns, tried_ns);
}

/* The kernel side does not know it as mapped any more: another image, which is read at once. */
static void test_map_image(void **state)
{
	struct process *p;
	uint64_t first, tried;
	bool read;

	if (!fake)
		skip();
	p = made(100, 5);
	write_mapping(0x10000);
	assert_true(process_mappings_read_image(&fake->a.mappings, p, clock_mono_ns()));
	first = p->maps.read_ns;
	write_mapping(0x20000);
	/* a sample from before it was read is no sign of another image */
	p->tried_ns -= 10 * NSEC_PER_MSEC;
	assert_true(process_mappings_read_image(&fake->a.mappings, p, first));
	assert_int_equal(p->maps.items[0].start, 0x10000);
	assert_true(process_mappings_read_image(&fake->a.mappings, p, first + 1));
	assert_int_equal(p->maps.items[0].start, 0x20000);
	/* not for each of its samples */
	ask_too_soon(p, process_mappings_read_image, 5 * NSEC_PER_MSEC);
	/* what cannot be read is tried the sooner only as long as it is new */
	do {
		mappings_done(&p->maps);
		tried = clock_mono_ns() - 10 * NSEC_PER_MSEC;
		p->tried_ns = tried;
		p->seen_ns = tried - 2 * NSEC_PER_SEC;
		read = process_mappings_read_image(&fake->a.mappings, p, UINT64_MAX);
	} while (read && clock_mono_ns() - tried >= 100 * NSEC_PER_MSEC);
	assert_false(read);
	p->seen_ns = clock_mono_ns();
	assert_true(process_mappings_read_image(&fake->a.mappings, p, UINT64_MAX));
	assert_int_equal(p->maps.items[0].start, 0x20000);
}

/* One with compiled code is entered for its perf map, and left when it goes. */
static void test_compiled(void **state)
{
	const struct jit_file *file;
	struct mapping_record r = {
		.start_ns = 5, .tgid = 100, .start = 0x10000, .end = 0x20000, .flags = MAPPING_ANON
	};
	struct process *p;
	FILE *records;

	if (!fake)
		skip();
	file = &symbols_jit_files(fake->a.symbols)->items[0];
	p = made(100, 5);
	write_mapping(0x10000);
	assert_true(process_mappings_read(&fake->a.mappings, p, 0));
	assert_false(p->compiled);
	assert_int_equal(file->process.tgid, 0);
	records = fopen(fake->vmas, "we");
	assert_non_null(records);
	records_file_mapping(records, r, "");
	fclose(records);
	p->tried_ns = 0;
	assert_true(process_mappings_read(&fake->a.mappings, p, UINT64_MAX));
	assert_true(p->compiled);
	assert_int_equal(file->process.tgid, 100);
	assert_int_equal(file->gone_ns, 0);
	matching_gone(&fake->a, p);
	assert_true(file->gone_ns > 0);
}

/* Samples from before an exec belong to the image before it. */
static void test_exec(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = made(100, 5);
	write_mapping(0x10000);
	assert_true(process_mappings_read(&fake->a.mappings, p, 0));
	p->maps.read_ns = 500;
	process_mappings_exec(p, 1000);
	assert_int_equal(p->maps.count, 0);
	assert_int_equal(process_mappings_at(p, 999, 0)->count, 1);
	assert_int_equal(process_mappings_at(p, 1000, 1)->count, 0);
	/* An exec of which nothing was read does not take the last image that was. */
	process_mappings_exec(p, 2000);
	assert_int_equal(process_mappings_at(p, 1500, 0)->count, 1);
	write_image(0x30000, 2);
	assert_true(process_mappings_read(&fake->a.mappings, p, 0));
	assert_int_equal(process_mappings_at(p, 2000, 2)->items[0].start, 0x30000);
	assert_int_equal(process_mappings_at(p, 1999, 0)->items[0].start, 0x10000);
}

/* Whose image a sample is of counts more than its time; mappings of no image that is known are
 * none. */
static void test_images(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = made(100, 5);
	write_image(0x10000, 7);
	assert_true(process_mappings_read(&fake->a.mappings, p, 0));
	/* Another image of which no event told: what was read is kept for what is still to come. */
	write_image(0x30000, 8);
	p->tried_ns = 0;
	assert_true(process_mappings_read(&fake->a.mappings, p, UINT64_MAX));
	assert_int_equal(process_mappings_at(p, 1000, 8)->items[0].start, 0x30000);
	assert_int_equal(process_mappings_at(p, 1000, 7)->items[0].start, 0x10000);
	assert_int_equal(process_mappings_at(p, 1000, 6)->count, 0);
	assert_int_equal(process_mappings_at(p, 1000, 9)->count, 0);
	/* The event comes after: what was read since is of the new image, and stays. */
	process_mappings_exec(p, p->maps.read_ns - 1);
	assert_int_equal(p->maps.image, 8);
	assert_int_equal(p->before.image, 7);
	/* The same image once more takes the place of its last reading alone. */
	p->tried_ns = 0;
	assert_true(process_mappings_read(&fake->a.mappings, p, UINT64_MAX));
	assert_int_equal(p->before.image, 7);
}

static int lookup(const struct process *p, struct target *ret_target)
{
	struct process_key key = { .tgid = p->tgid, .start_ns = p->start_ns };

	return bpf_map_lookup_elem(fake->a.pins.targets_fd, &key, ret_target);
}

/* The kernel's entry follows the rule; what the kernel itself wrote there stays. */
static void test_target(void **state)
{
	struct target target = { .flags = TARGET_MAPPED, .execs = 3, .rule = NO_SLOT };
	struct process_key key = { .tgid = 101, .start_ns = 5 };
	struct process *p, *known;

	if (!fake)
		skip();
	fake_rules(fake, "{\"version\":1,\"rules\":["
			 "{\"name\":\"a\",\"match\":{\"comm\":\"x\"}},"
			 "{\"name\":\"b\",\"match\":{\"comm\":\"y\"}}]}");
	p = made(100, 5);
	assert_int_equal(process_targets_match(&fake->a.targets, p), 0);
	assert_int_equal(lookup(p, &target), -ENOENT);
	p->rule = &fake->a.active.set->rules->rules[1];
	assert_int_equal(process_targets_match(&fake->a.targets, p), 0);
	assert_int_equal(lookup(p, &target), 0);
	assert_int_equal(target.flags, TARGET_MATCHED | TARGET_TOLD);
	assert_int_equal(target.rule, 1);
	assert_int_equal(target.generation, fake->a.active.set->generation);
	target = (struct target){ .flags = TARGET_MAPPED, .execs = 3, .rule = NO_SLOT };
	assert_int_equal(bpf_map_update_elem(fake->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	known = made(101, 5);
	known->requested = true;
	assert_int_equal(process_targets_match(&fake->a.targets, known), 0);
	assert_int_equal(lookup(known, &target), 0);
	assert_int_equal(target.flags, TARGET_MAPPED | TARGET_MATCHED | TARGET_TOLD);
	assert_int_equal(target.execs, 3);
	known->requested = false;
	assert_int_equal(process_targets_match(&fake->a.targets, known), 0);
	assert_int_equal(lookup(known, &target), 0);
	assert_int_equal(target.flags, TARGET_MAPPED);
	p->rule = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_identity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_unannounced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_map, setup, teardown),
		cmocka_unit_test_setup_teardown(test_map_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_map_image, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compiled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_images, setup, teardown),
		cmocka_unit_test_setup_teardown(test_target, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
