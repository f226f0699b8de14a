/* SPDX-License-Identifier: BSD-2-Clause */
/* When mappings are read, and the mappings that a sample is looked up in. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>
#include <stdio.h>

#include "consumer/jit/perf_map_files.h"
#include "consumer/process/process_mappings.h"
#include "shared/tools/clock.h"
#include "tests/unit/consumer/symbols/records_testing.h"

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

/* Read once, and again only for a younger request; never more often than the wall. */
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
	/* A gone process has its earlier mappings. */
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
	const struct perf_map_file *file;
	struct mapping_record r = {
		.start_ns = 5, .tgid = 100, .start = 0x10000, .end = 0x20000, .flags = MAPPING_ANON
	};
	struct process *p;
	FILE *records;

	if (!fake)
		skip();
	file = &symbols_perf_map_files(fake->a.symbols)->items[0];
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
	process_gone(&fake->a.processes, p);
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

/* The image of a sample counts more than its time; mappings of no image that is known are none. */
static void test_images(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = made(100, 5);
	write_image(0x10000, 7);
	assert_true(process_mappings_read(&fake->a.mappings, p, 0));
	/* Another image without an event: the earlier mappings are kept for late samples. */
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

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(process_mappings)
{
	const struct CMUnitTest tests[] = {
		EACH(test_map),	     EACH(test_map_nobody), EACH(test_map_image),
		EACH(test_compiled), EACH(test_exec),	    EACH(test_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
