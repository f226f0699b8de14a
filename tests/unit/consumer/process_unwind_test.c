/* SPDX-License-Identifier: BSD-2-Clause */
/* From mappings to a published table, with memory for the kernel's maps, a file for its iterator.
 */
#include "fake_sample.h"

#include <bpf/bpf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/matching.h"
#include "consumer/process.h"
#include "consumer/process_unwind.h"
#include "shared/clock.h"
#include "tests/unit/consumer/unwind/own.h"

#define ELEMENTS (1u << 20)
#define TABLES	 3

static struct fake *fake;
static char ranges[128];
static void *pool;
static struct unwind_process *tables;

static int setup(void **state)
{
	struct pins *p;

	fake = fake_new();
	if (!fake)
		return 0;
	p = &fake->a.pins;
	p->abi.unwind_rows = ELEMENTS;
	p->abi.unwind_tables = TABLES;
	p->unwind_pool_fd = own_memory(ELEMENTS * 8, &pool);
	p->unwind_rules = calloc(UNWIND_RULES_MAX, sizeof(*p->unwind_rules));
	p->unwind_files = calloc(UNWIND_FILES_MAX, sizeof(*p->unwind_files));
	p->unwind_process_fd = own_memory(TABLES * sizeof(*tables), (void **)&tables);
	p->unwind_claims = calloc(1, sizeof(*p->unwind_claims));
	snprintf(ranges, sizeof(ranges), "%s/ranges", fake->dir);
	p->ranges_path = ranges;
	assert_int_equal(process_unwind_start(&fake->a.unwind), 0);
	return 0;
}

static int teardown(void **state)
{
	struct pins p;

	if (!fake)
		return 0;
	p = fake->a.pins;
	unlink(ranges);
	process_unwind_done(&fake->a.unwind);
	fake_free(fake);
	munmap(pool, ELEMENTS * 8);
	munmap(tables, TABLES * sizeof(*tables));
	close(p.unwind_pool_fd);
	close(p.unwind_process_fd);
	free(p.unwind_rules);
	free(p.unwind_files);
	free(p.unwind_claims);
	fake = NULL;
	return 0;
}

/* What the kernel side will say of the next filling. */
static void next_record(struct ranges_record record)
{
	FILE *file = fopen(ranges, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(&record, sizeof(record), 1, file), 1);
	fclose(file);
}

static void next_fill(uint64_t fill, uint32_t table, uint32_t count)
{
	next_record((struct ranges_record){ .fill = fill, .table = table, .count = count });
}

/* Its mappings were read: makes or renews its table. */
static void follow(struct process *p)
{
	process_queue_read(&fake->a.processes, p);
	process_unwind_step(&fake->a.unwind);
}

/* What the loop does, until there has been as much news as is needed; the wall is 20 s. */
static void run_until(bool (*done)(const struct process *p), const struct process *p)
{
	for (int i = 0; i < 2000 && !done(p); i++) {
		struct pollfd fd = { .fd = unwind_files_fd(fake->a.unwind.files),
				     .events = POLLIN };

		if (poll(&fd, 1, 10) == 1)
			process_unwind_news(&fake->a.unwind);
	}
	assert_true(done(p));
}

/* A process that has this program's code mapped, `pages` further up than it is here. */
static struct process *mapped(uint32_t tgid, uint64_t pages)
{
	struct process *p;

	assert_int_equal(process_get(&fake->a.processes, tgid, 5, &p), 0);
	p->requested = true;
	p->announced = true;
	assert_int_equal(process_targets_match(&fake->a.targets, p), 0);
	mappings_done(&p->maps);
	p->maps.items = calloc(1, sizeof(*p->maps.items));
	assert_non_null(p->maps.items);
	p->maps.count = 1;
	p->maps.read_ns = clock_mono_ns();
	p->maps.items[0] = own_mapping(fake->a.symbols);
	p->maps.items[0].start += pages << 12;
	p->maps.items[0].end += pages << 12;
	return p;
}

static uint32_t told(const struct process *p)
{
	struct process_key key = { .tgid = p->tgid, .start_ns = p->start_ns };
	struct target target;

	assert_int_equal(bpf_map_lookup_elem(fake->a.pins.targets_fd, &key, &target), 0);
	return target.unwind;
}

static bool has_table(const struct process *p)
{
	return p->unwind.table > 0;
}

static bool has_second(const struct process *p)
{
	return fake->a.unwind.tables.published == 2;
}

static struct process *published(uint32_t tgid, uint32_t table, uint64_t fill)
{
	struct process *p = mapped(tgid, 0);

	next_fill(fill, table, 1);
	follow(p);
	run_until(has_table, p);
	return p;
}

static void test_publish(void **state)
{
	const struct unwind_process *table;
	struct process *p;
	json_object *line;

	if (!fake)
		skip();
	p = published(100, 0, 77);
	table = &tables[p->unwind.table - 1];
	assert_int_equal(p->unwind.table, 1);
	assert_int_equal(told(p), 1);
	assert_int_equal(table->published, 77);
	assert_int_equal(table->mappings[0].kind, UNWIND_KIND_ROWS);
	assert_int_equal(fake->a.pins.unwind_claims->starts[0], p->maps.items[0].start);
	assert_int_equal(fake->a.pins.unwind_claims->tgid, 0);
	assert_true(fake->a.pins.unwind_files[table->mappings[0].file].place.row_count > 0);
	line = fake_last(fake, "process.unwind");
	assert_string_equal(fake_text(line, "unwind"), "table");
	json_object_put(line);
}

/* Nothing new: the same table, asked for more rarely. Something new: another, said no more. */
static void test_renew(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = published(100, 0, 77);
	follow(p);
	assert_int_equal(p->unwind.table, 1);
	assert_int_equal(tables[0].quiet_ns, 0); /* nobody had asked */
	for (int i = 0; i < 20; i++) {
		p->unwind.left = true;
		follow(p);
		assert_true(tables[0].quiet_ns > 0);
	}
	assert_int_equal(tables[0].quiet_ns, 10 * NSEC_PER_SEC);

	mapped(100, 16);
	next_fill(78, 1, 1);
	follow(p);
	run_until(has_second, p);
	assert_int_equal(p->unwind.table, 2);
	assert_int_equal(told(p), 2);
	assert_int_equal(tables[0].published, 0);
	assert_int_equal(tables[1].published, 78);
	assert_int_equal(fake_count(fake, "process.unwind"), 1);
}

/* Read amid its start: once more a moment later, and not again after that. */
static void test_young(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = mapped(100, 0);
	p->exec_ns = p->maps.read_ns - NSEC_PER_MSEC;
	next_fill(77, 0, 1);
	follow(p);
	assert_int_equal(fake->a.reread.count, 1);
	p->tried_ns = 0;
	process_unwind_settle(&fake->a.unwind);
	assert_true(p->tried_ns > 0);
	assert_int_equal(fake->a.reread.count, 0);
	p->exec_ns = p->maps.read_ns - NSEC_PER_SEC;
	follow(p);
	assert_int_equal(fake->a.reread.count, 0);
}

/* What the kernel side could not confirm is asked for again, though nothing has changed. */
static void test_holes(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = mapped(100, 0);
	next_record((struct ranges_record){ .fill = 77, .table = 0, .count = 1, .missed = 1 });
	follow(p);
	run_until(has_table, p);
	assert_int_equal(fake->a.unwind.tables.unconfirmed, 1);
	next_fill(78, 1, 1);
	follow(p);
	assert_int_equal(p->unwind.table, 2);
	follow(p);
	assert_int_equal(p->unwind.table, 2);
	assert_int_equal(fake->a.unwind.tables.unconfirmed, 1);
}

/* Whose mappings were read just now waits a moment. */
static void test_unmapped(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = published(100, 0, 77);
	p->maps.read_ns = p->tried_ns = p->seen_ns = clock_mono_ns();
	process_unwind_unmapped(&fake->a.unwind, p, p->maps.read_ns - 1);
	assert_int_equal(fake->a.reread.count, 0);
	process_unwind_unmapped(&fake->a.unwind, p, p->maps.read_ns + 1);
	assert_true(p->unwind.left);
	assert_int_equal(fake->a.reread.count, 1);
}

/* The kernel side does not take the claims: the process is another by now, nothing is published. */
static void test_refused(void **state)
{
	struct unwind_files_stats stats;
	struct process *p;

	if (!fake)
		skip();
	p = mapped(100, 0);
	next_fill(0, 0, 0);
	follow(p);
	for (int i = 0; i < 200 && p->unwind.plan; i++) {
		usleep(10000);
		process_unwind_news(&fake->a.unwind);
	}
	assert_null(p->unwind.plan);
	assert_int_equal(p->unwind.table, 0);
	assert_int_equal(told(p), 0);
	for (int i = 0; i < TABLES; i++)
		assert_int_equal(tables[i].published, 0);
	unwind_files_stats(fake->a.unwind.files, &stats);
	assert_int_equal(stats.files, 1);
}

/* By frame pointers alone: another table is made, without rows, and that is said. */
static void test_rule(void **state)
{
	static const struct rule fp = { .name = "fp", .unwind = RULE_UNWIND_FP };
	struct process *p;
	json_object *line;

	if (!fake)
		skip();
	p = published(100, 0, 77);
	process_unwind_matched(&fake->a.unwind, p);
	assert_int_equal(p->unwind.table, 1);
	p->rule = &fp;
	next_fill(78, 1, 1);
	process_unwind_matched(&fake->a.unwind, p);
	run_until(has_second, p);
	assert_int_equal(told(p), 2);
	assert_int_equal(tables[0].published, 0);
	assert_int_equal(tables[1].mappings[0].kind, UNWIND_KIND_FP);
	line = fake_last(fake, "process.unwind");
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

	assert_int_equal(bpf_map_update_elem(fake->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	assert_int_equal(process_get(&fake->a.processes, tgid, 5, &p), 0);
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
			       .user_end = UNWIND_END_NO_MAPPING,
			       .fill = fill },
		     .frame = address };
	const struct module *module;
	struct stack_sample *h;
	struct process *p;

	h = fake_decode(fake, &record.head, &p);
	assert_non_null(p);
	assert_int_equal(h->user_frames, 1);
	module = h->frames[0].module;
	*ret_end = h->user_end;
	free(h);
	return module;
}

/*
 * A child that nobody could read is in its parent's mappings, also when the parent has gone and
 * until the table is filled for another; what it inherited stays its own until it has another.
 */
static void test_child(void **state)
{
	static const struct rule fp = { .name = "fp", .unwind = RULE_UNWIND_FP };
	struct process *parent, *child;
	enum unwind_end end;
	uint64_t leaf;

	if (!fake)
		skip();
	parent = published(100, 0, 77);
	leaf = parent->maps.items[0].start;
	child = forked(101, 1);
	child->requested = true;
	assert_int_equal(process_targets_match(&fake->a.targets, child), 0);
	assert_int_equal(told(child), 1);
	parent->unwind.used_ns = 0;
	assert_ptr_equal(module_of(101, 77, leaf, &end), parent->maps.items[0].module);
	assert_true(parent->unwind.used_ns > 0);
	assert_int_equal(end, UNWIND_END_NO_MAPPING);
	assert_ptr_equal(module_of(101, 78, leaf, &end), &stack_sample_unknown);
	assert_ptr_equal(module_of(101, 0, leaf, &end), &stack_sample_unknown);

	matching_gone(&fake->a, parent);
	assert_ptr_equal(module_of(101, 77, leaf, &end), parent->maps.items[0].module);
	assert_int_equal(published(102, 1, 78)->unwind.table, 2);
	assert_ptr_equal(module_of(101, 77, leaf, &end), parent->maps.items[0].module);

	child = mapped(101, 0);
	child->rule = &fp;
	next_fill(79, 2, 1);
	follow(child);
	run_until(has_table, child);
	assert_int_equal(told(child), 3);
	child->rule = NULL;
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

	if (!fake)
		skip();
	p = mapped(100, 0);
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
	next_fill(77, 0, UNWIND_RANGES);
	follow(p);
	run_until(has_table, p);
	assert_int_equal(p->unwind.cut, over);
	assert_ptr_equal(module_of(100, 77, own.start, &end), own.module);
	assert_int_equal(end, UNWIND_END_NO_PLACE);
	/* What another filling left out is another's matter. */
	module_of(100, 78, own.start, &end);
	assert_int_equal(end, UNWIND_END_NO_MAPPING);
}

/* Whether a sample of p at that time, walked or not, says that the kernel side refuses its table.
 */
static bool refused(struct process *p, uint32_t flags, uint64_t time_ns)
{
	const struct sample record = { .time_ns = time_ns, .flags = flags, .fill = 77 };
	const struct walk_table *table;
	bool yes = process_unwind_sampled(&fake->a.unwind, p, &record, &table);

	assert_ptr_equal(table, flags & SAMPLE_UNWOUND ? &fake->a.unwind.tables.items[0] : NULL);
	return yes;
}

/* A table that the kernel side refuses (an execve that nobody told of) is made anew. */
static void test_not_walked(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = published(100, 0, 77);
	assert_false(refused(p, SAMPLE_UNWOUND, clock_mono_ns()));
	assert_false(refused(p, 0, p->unwind.published_ns - 1));
	assert_false(refused(p, SAMPLE_BUILD_ID, clock_mono_ns()));
	assert_true(p->unwind.shape != 0);
	assert_true(refused(p, 0, clock_mono_ns()));
	assert_int_equal(p->unwind.shape, 0);
	/* It is on its way: the next one says nothing new. */
	assert_false(refused(p, 0, clock_mono_ns()));
}

static bool third_is_in(const struct process *p)
{
	return fake->a.unwind.tables.published == TABLES;
}

/* More processes than tables: who waits gets the one of who is gone. */
static void test_full(void **state)
{
	struct process *p[TABLES + 1];

	if (!fake)
		skip();
	for (uint32_t i = 0; i < TABLES; i++)
		p[i] = published(100 + i, i, 70 + i);
	assert_true(third_is_in(NULL));
	p[TABLES] = mapped(200, 0);
	follow(p[TABLES]);
	assert_int_equal(p[TABLES]->unwind.table, 0);
	assert_true(fake->a.unwind.tables.full > 0);
	next_fill(99, 1, 1);
	matching_gone(&fake->a, p[1]);
	run_until(has_table, p[TABLES]);
	assert_int_equal(p[TABLES]->unwind.table, 2);
	assert_int_equal(fake->a.unwind.tables.live, TABLES);
}

static bool says(const struct jsonw *w, const char *text)
{
	return memmem(w->data, w->bytes, text, strlen(text)) != NULL;
}

static void test_status(void **state)
{
	struct jsonw w;

	if (!fake)
		skip();
	published(100, 0, 77);
	jsonw_init(&w, 65536);
	jsonw_object(&w, NULL);
	process_unwind_write_status(&fake->a.unwind, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_true(says(&w, "\"tables_used\":1"));
	assert_true(says(&w, "process_unwind_test"));
	jsonw_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_publish, setup, teardown),
		cmocka_unit_test_setup_teardown(test_renew, setup, teardown),
		cmocka_unit_test_setup_teardown(test_young, setup, teardown),
		cmocka_unit_test_setup_teardown(test_holes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unmapped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(test_child, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_walked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_status, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
