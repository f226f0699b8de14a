/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables that the kernel side fills in part, or not, or that have too few places. */
#include "tests/unit/consumer/testing/fake_sample_testing.h"

#include <stdlib.h>
#include <unistd.h>

#include "consumer/process/unwind_tables.h"
#include "shared/tools/clock.h"
#include "tests/unit/consumer/testing/unwind_testing.h"

static struct unwind_testing t;

static int setup(void **state)
{
	unwind_testing_start(&t, UNWIND_TESTING_ELEMENTS);
	return 0;
}

static int teardown(void **state)
{
	unwind_testing_stop(&t);
	return 0;
}

/* What the kernel side could not confirm is asked for again, though nothing has changed. */
static void test_unconfirmed(void **state)
{
	struct process *p;

	if (!t.fake)
		skip();
	p = unwind_testing_mapped(&t, 100, own_mapping(t.fake->a.symbols));
	unwind_testing_record(
		&t, (struct ranges_record){
			    .table_generation = 77, .table = 0, .count = 1, .missed = 1 });
	unwind_testing_renew(&t, p);
	assert_true(unwind_testing_run(&t, unwind_testing_has_table, p, 20000));
	assert_int_equal(t.fake->a.unwind.tables.unconfirmed, 1);
	unwind_testing_fill(&t, 78, 1, 1);
	unwind_testing_renew(&t, p);
	assert_int_equal(p->unwind.table, 2);
	unwind_testing_renew(&t, p);
	assert_int_equal(p->unwind.table, 2);
	assert_int_equal(t.fake->a.unwind.tables.unconfirmed, 1);
}

/* The kernel side answers so: nothing is published. */
static void refuse(struct ranges_record record)
{
	struct unwind_files_stats stats;
	struct process *p;

	p = unwind_testing_mapped(&t, 100, own_mapping(t.fake->a.symbols));
	p->maps.image = 7;
	unwind_testing_record(&t, record);
	unwind_testing_renew(&t, p);
	for (int i = 0; i < 200 && p->unwind.plan; i++) {
		usleep(10000);
		process_unwind_news(&t.fake->a.unwind);
	}
	assert_null(p->unwind.plan);
	assert_int_equal(p->unwind.table, 0);
	assert_int_equal(unwind_testing_told(&t, p), 0);
	for (int i = 0; i < UNWIND_TESTING_TABLES; i++)
		assert_int_equal(t.tables[i].published, 0);
	unwind_files_stats(t.fake->a.unwind.files, &stats);
	assert_int_equal(stats.files, 1);
}

/* The kernel side does not take the claims: the process is another by now. */
static void test_refused(void **state)
{
	if (!t.fake)
		skip();
	refuse((struct ranges_record){ .image = 7 });
}

/* execve(2) came between the reading of the mappings and the filling. */
static void test_other_image(void **state)
{
	if (!t.fake)
		skip();
	refuse((struct ranges_record){ .table_generation = 77, .count = 1, .image = 8 });
}

/* The module of a frame at `address` of a process, walked by the filling `fill`. */
static const struct module *module_of(uint32_t tgid, uint32_t fill, uint64_t address,
				      enum unwind_end *ret_end)
{
	struct {
		struct sample head;
		uint64_t frame;
	} record = { .head = { .start_ns = 5,
			       .tgid = tgid,
			       .time_ns = clock_mono_ns(),
			       .flags = SAMPLE_UNWOUND,
			       .user_frames = 1,
			       .stop_reason = UNWIND_END_NO_MAPPING,
			       .table_generation = fill },
		     .frame = address };
	const struct module *module;
	struct stack_sample *h;
	struct process *p;

	h = fake_decode(t.fake, &record.head, &p);
	assert_non_null(p);
	assert_int_equal(h->user_frames, 1);
	module = h->frames[0].module;
	*ret_end = h->stop_reason;
	free(h);
	return module;
}

/* With more mappings than a table has places, a walk that ends in none of them may have met one
 * that was left out. */
static void test_cut(void **state)
{
	const uint32_t over = 8;
	struct mappings *maps;
	enum unwind_end end;
	struct mapping own;
	struct process *p;

	if (!t.fake)
		skip();
	p = unwind_testing_mapped(&t, 100, own_mapping(t.fake->a.symbols));
	maps = &p->maps;
	own = maps->items[0];
	maps->count = UNWIND_RANGES + over;
	maps->items = reallocarray(maps->items, maps->count, sizeof(own));
	assert_non_null(maps->items);
	for (uint64_t i = 1; i < maps->count; i++) {
		maps->items[i] = own;
		maps->items[i].start += i * (own.end - own.start);
		maps->items[i].end += i * (own.end - own.start);
	}
	unwind_testing_fill(&t, 77, 0, UNWIND_RANGES);
	unwind_testing_renew(&t, p);
	assert_true(unwind_testing_run(&t, unwind_testing_has_table, p, 20000));
	assert_int_equal(p->unwind.cut, over);
	assert_ptr_equal(module_of(100, 77, own.start, &end), own.module);
	assert_int_equal(end, UNWIND_END_NO_PLACE);
	/* What another filling left out is another's matter. */
	module_of(100, 78, own.start, &end);
	assert_int_equal(end, UNWIND_END_NO_MAPPING);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(unwind_tables)
{
	const struct CMUnitTest tests[] = {
		EACH(test_unconfirmed),
		EACH(test_refused),
		EACH(test_other_image),
		EACH(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
