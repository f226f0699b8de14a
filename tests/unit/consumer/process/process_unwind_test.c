/* SPDX-License-Identifier: BSD-2-Clause */
/* From mappings to a published table. */
#include "tests/unit/consumer/testing/fake_sample_testing.h"

#include <bpf/bpf.h>

#include "consumer/discovery/process_match.h"
#include "consumer/process/process_unwind.h"
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

static bool has_second(const struct process *p)
{
	return t.fake->a.unwind.tables.published == 2;
}

/* This program's code, so many pages further up than it is here. */
static struct mapping further(uint64_t pages)
{
	struct mapping m = own_mapping(t.fake->a.symbols);

	m.start += pages << 12;
	m.end += pages << 12;
	return m;
}

static void test_publish(void **state)
{
	const struct unwind_process *table;
	struct process *p;
	json_object *line;

	if (!t.fake)
		skip();
	p = unwind_testing_published(&t, 100, 0, 77);
	table = &t.tables[p->unwind.table - 1];
	assert_int_equal(p->unwind.table, 1);
	assert_int_equal(unwind_testing_told(&t, p), 1);
	assert_int_equal(table->published, 77);
	assert_int_equal(table->mappings[0].kind, UNWIND_KIND_ROWS);
	assert_int_equal(t.fake->a.pins.unwind_claims->starts[0], p->maps.items[0].start);
	assert_int_equal(t.fake->a.pins.unwind_claims->tgid, 0);
	assert_true(t.fake->a.pins.unwind_files[table->mappings[0].file].place.row_count > 0);
	line = fake_last(t.fake, "process.unwind");
	assert_string_equal(fake_text(line, "unwind"), "table");
	json_object_put(line);
}

/* Nothing new: the same table, asked for more rarely. Something new: another, reported no more. */
static void test_renew(void **state)
{
	struct process *p;

	if (!t.fake)
		skip();
	p = unwind_testing_published(&t, 100, 0, 77);
	unwind_testing_renew(&t, p);
	assert_int_equal(p->unwind.table, 1);
	assert_int_equal(t.tables[0].quiet_ns, 0); /* there was no request */
	for (int i = 0; i < 20; i++) {
		p->unwind.left = true;
		unwind_testing_renew(&t, p);
		assert_true(t.tables[0].quiet_ns > 0);
	}
	assert_int_equal(t.tables[0].quiet_ns, 10 * NSEC_PER_SEC);

	unwind_testing_mapped(&t, 100, further(16));
	unwind_testing_fill(&t, 78, 1, 1);
	unwind_testing_renew(&t, p);
	assert_true(unwind_testing_run(&t, has_second, p, 20000));
	assert_int_equal(p->unwind.table, 2);
	assert_int_equal(unwind_testing_told(&t, p), 2);
	assert_int_equal(t.tables[0].published, 0);
	assert_int_equal(t.tables[1].published, 78);
	assert_int_equal(fake_count(t.fake, "process.unwind"), 1);
}

/* By frame pointers alone: another table is made, without rows, and that is reported. */
static void test_rule(void **state)
{
	static const struct rule fp = { .name = "fp", .unwind = RULE_UNWIND_FP };
	struct process *p;
	json_object *line;

	if (!t.fake)
		skip();
	p = unwind_testing_published(&t, 100, 0, 77);
	process_unwind_matched(&t.fake->a.unwind, p);
	assert_int_equal(p->unwind.table, 1);
	p->rule = &fp;
	unwind_testing_fill(&t, 78, 1, 1);
	process_unwind_matched(&t.fake->a.unwind, p);
	assert_true(unwind_testing_run(&t, has_second, p, 20000));
	assert_int_equal(unwind_testing_told(&t, p), 2);
	assert_int_equal(t.tables[0].published, 0);
	assert_int_equal(t.tables[1].mappings[0].kind, UNWIND_KIND_FP);
	line = fake_last(t.fake, "process.unwind");
	assert_string_equal(fake_text(line, "unwind"), "fp");
	json_object_put(line);
	p->rule = NULL;
}

/* What the kernel side does at a fork of a process that has table number `unwind` - 1. */
static struct process *forked(uint32_t tgid, uint32_t unwind)
{
	struct process_key key = { .tgid = tgid, .start_ns = 5 };
	struct target target = { .rule = NO_SLOT, .unwind = unwind };
	struct process *p;

	assert_int_equal(bpf_map_update_elem(t.fake->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	assert_int_equal(process_get(&t.fake->a.processes, tgid, 5, &p), 0);
	return p;
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

/*
 * A child without a reading is in its parent's mappings, also when the parent has gone and until
 * the table is filled for another; what it inherited stays its own until it has another.
 */
static void test_child(void **state)
{
	static const struct rule fp = { .name = "fp", .unwind = RULE_UNWIND_FP };
	struct process *parent, *child;
	enum unwind_end end;
	uint64_t leaf;

	if (!t.fake)
		skip();
	parent = unwind_testing_published(&t, 100, 0, 77);
	leaf = parent->maps.items[0].start;
	child = forked(101, 1);
	child->requested = true;
	assert_int_equal(process_targets_match(&t.fake->a.targets, child), 0);
	assert_int_equal(unwind_testing_told(&t, child), 1);
	parent->unwind.used_ns = 0;
	assert_ptr_equal(module_of(101, 77, leaf, &end), parent->maps.items[0].module);
	assert_true(parent->unwind.used_ns > 0);
	assert_int_equal(end, UNWIND_END_NO_MAPPING);
	assert_ptr_equal(module_of(101, 78, leaf, &end), &stack_sample_unknown);
	assert_ptr_equal(module_of(101, 0, leaf, &end), &stack_sample_unknown);

	process_match_gone(&t.fake->a.discovery, parent);
	assert_ptr_equal(module_of(101, 77, leaf, &end), parent->maps.items[0].module);
	assert_int_equal(unwind_testing_published(&t, 102, 1, 78)->unwind.table, 2);
	assert_ptr_equal(module_of(101, 77, leaf, &end), parent->maps.items[0].module);

	child = unwind_testing_mapped(&t, 101, own_mapping(t.fake->a.symbols));
	child->rule = &fp;
	unwind_testing_fill(&t, 79, 2, 1);
	unwind_testing_renew(&t, child);
	assert_true(unwind_testing_run(&t, unwind_testing_has_table, child, 20000));
	assert_int_equal(unwind_testing_told(&t, child), 3);
	child->rule = NULL;
}

/*
 * Whether a sample of p at that time, walked or not, shows that the kernel side refuses its table.
 */
static bool refused(struct process *p, uint32_t flags, uint64_t time_ns)
{
	const struct sample record = { .time_ns = time_ns, .flags = flags, .table_generation = 77 };
	const struct walk_table *table;
	bool yes = process_unwind_sampled(&t.fake->a.unwind, p, &record, &table);

	assert_ptr_equal(table, flags & SAMPLE_UNWOUND ? &t.fake->a.unwind.tables.items[0] : NULL);
	return yes;
}

/* A table that the kernel side refuses (an execve without an event) is made anew. */
static void test_not_walked(void **state)
{
	struct process *p;

	if (!t.fake)
		skip();
	p = unwind_testing_published(&t, 100, 0, 77);
	assert_false(refused(p, SAMPLE_UNWOUND, clock_mono_ns()));
	assert_false(refused(p, 0, p->unwind.published_ns - 1));
	assert_false(refused(p, SAMPLE_BUILD_ID, clock_mono_ns()));
	assert_true(p->unwind.shape != 0);
	assert_true(refused(p, 0, clock_mono_ns()));
	assert_int_equal(p->unwind.shape, 0);
	/* Until the mappings are read again, which may not be at once, each one shows it. */
	assert_true(refused(p, 0, clock_mono_ns()));
	unwind_testing_fill(&t, 78, 1, 1);
	unwind_testing_renew(&t, p);
	assert_true(unwind_testing_run(&t, has_second, p, 20000));
	assert_int_equal(unwind_testing_told(&t, p), 2);
	assert_false(refused(p, 0, p->unwind.published_ns - 1));
}

/* A process that has left while its mappings waited gets no table: it may be freed at any time. */
static void test_left(void **state)
{
	struct process *p;

	if (!t.fake)
		skip();
	p = unwind_testing_published(&t, 100, 0, 77);
	process_queue_read(&t.fake->a.processes, p);
	process_match_leave(&t.fake->a.discovery, p, "moved");
	assert_true(p->left_ns);
	assert_null(t.fake->a.unwind.tables.items[0].process);
	unwind_testing_fill(&t, 78, 1, 1);
	process_unwind_step(&t.fake->a.unwind);
	process_unwind_unmapped(&t.fake->a.unwind, p, clock_mono_ns());
	assert_false(p->unwind.waiting);
	assert_int_equal(p->unwind.table, 0);
	for (size_t i = 0; i < t.fake->a.unwind.tables.count; i++)
		assert_null(t.fake->a.unwind.tables.items[i].process);
	processes_sweep(&t.fake->a.processes, UINT64_MAX / 2);
	assert_null(process_find(&t.fake->a.processes, 100, 5));
}

/* More processes than tables: a waiting process gets the table of a gone one. */
static void test_full(void **state)
{
	struct process *p[UNWIND_TESTING_TABLES + 1];

	if (!t.fake)
		skip();
	for (uint32_t i = 0; i < UNWIND_TESTING_TABLES; i++)
		p[i] = unwind_testing_published(&t, 100 + i, i, 70 + i);
	assert_int_equal(t.fake->a.unwind.tables.published, UNWIND_TESTING_TABLES);
	p[UNWIND_TESTING_TABLES] = unwind_testing_mapped(&t, 200, own_mapping(t.fake->a.symbols));
	unwind_testing_renew(&t, p[UNWIND_TESTING_TABLES]);
	assert_int_equal(p[UNWIND_TESTING_TABLES]->unwind.table, 0);
	assert_true(t.fake->a.unwind.tables.full > 0);
	unwind_testing_fill(&t, 99, 1, 1);
	process_match_gone(&t.fake->a.discovery, p[1]);
	assert_true(
		unwind_testing_run(&t, unwind_testing_has_table, p[UNWIND_TESTING_TABLES], 20000));
	assert_int_equal(p[UNWIND_TESTING_TABLES]->unwind.table, 2);
	assert_int_equal(t.fake->a.unwind.tables.live, UNWIND_TESTING_TABLES);
}

static bool is_never_done(const struct process *p)
{
	return false;
}

/*
 * More processes than tables, without samples: a newcomer that sleeps takes none away, and makes
 * none change hands. One that is sampled takes one.
 */
static void test_sleepers(void **state)
{
	struct process *p[UNWIND_TESTING_TABLES], *sleeper = NULL;
	const struct process_unwind *u;

	if (!t.fake)
		skip();
	u = &t.fake->a.unwind;
	for (uint32_t i = 0; i < UNWIND_TESTING_TABLES; i++) {
		p[i] = unwind_testing_published(&t, 100 + i, i, 70 + i);
		p[i]->unwind.used_ns -= 60 * NSEC_PER_SEC;
	}
	for (uint32_t i = 0; i < 5; i++) {
		sleeper = unwind_testing_mapped(&t, 200 + i, own_mapping(t.fake->a.symbols));
		unwind_testing_renew(&t, sleeper);
		unwind_testing_run(&t, is_never_done, sleeper, 60);
	}
	assert_int_equal(u->tables.published, UNWIND_TESTING_TABLES);
	assert_int_equal(u->tables.live, UNWIND_TESTING_TABLES);
	for (uint32_t i = 0; i < UNWIND_TESTING_TABLES; i++)
		assert_int_equal(p[i]->unwind.table, i + 1);
	p[1]->unwind.used_ns -= NSEC_PER_SEC;
	unwind_testing_fill(&t, 99, 1, 1);
	unwind_testing_sample(&t, sleeper);
	assert_true(unwind_testing_run(&t, unwind_testing_has_table, sleeper, 20000));
	assert_int_equal(sleeper->unwind.table, 2);
	assert_int_equal(u->tables.published, UNWIND_TESTING_TABLES + 1);
}

static bool is_concluded(const struct process *p)
{
	return !p->unwind.plan && unwind_testing_has_table(p);
}

/* All files are compiled already when process.match is written: process.unwind follows it. */
static void test_announced_after_the_match(void **state)
{
	struct process *p;
	json_object *line;

	if (!t.fake)
		skip();
	unwind_testing_published(&t, 100, 0, 77);
	assert_int_equal(fake_count(t.fake, "process.unwind"), 1);
	p = unwind_testing_mapped(&t, 101, own_mapping(t.fake->a.symbols));
	p->announced = false;
	unwind_testing_fill(&t, 78, 1, 1);
	unwind_testing_renew(&t, p);
	assert_true(unwind_testing_run(&t, is_concluded, p, 20000));
	assert_int_equal(fake_count(t.fake, "process.unwind"), 1);
	p->announced = true;
	process_unwind_announced(&t.fake->a.unwind, p);
	assert_int_equal(fake_count(t.fake, "process.unwind"), 2);
	line = fake_last(t.fake, "process.unwind");
	assert_string_equal(fake_text(line, "pid"), "101");
	assert_string_equal(fake_text(line, "unwind"), "table");
	json_object_put(line);
	/* Once. */
	process_unwind_announced(&t.fake->a.unwind, p);
	assert_int_equal(fake_count(t.fake, "process.unwind"), 2);
	assert_int_equal(t.fake->a.unwind.tables.published, 2);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(process_unwind)
{
	const struct CMUnitTest tests[] = {
		EACH(test_publish), EACH(test_renew),	   EACH(test_rule),
		EACH(test_child),   EACH(test_not_walked), EACH(test_left),
		EACH(test_full),    EACH(test_sleepers),   EACH(test_announced_after_the_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
