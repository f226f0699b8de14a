/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unwind_testing.h"

#include <bpf/bpf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shared/tools/clock.h"

bool unwind_testing_start(struct unwind_testing *t, uint32_t elements)
{
	struct pinned_maps *p;

	*t = (struct unwind_testing){ .fake = fake_new() };
	if (!t->fake)
		return false;
	p = &t->fake->a.pins;
	p->abi.unwind_rows = elements;
	p->abi.unwind_tables = UNWIND_TESTING_TABLES;
	p->unwind_pool_fd = own_memory(UNWIND_TESTING_ELEMENTS * 8, &t->pool);
	p->unwind_rules = calloc(UNWIND_RULES_MAX, sizeof(*p->unwind_rules));
	p->unwind_files = calloc(UNWIND_FILES_MAX, sizeof(*p->unwind_files));
	p->unwind_process_fd =
		own_memory(UNWIND_TESTING_TABLES * sizeof(*t->tables), (void **)&t->tables);
	p->unwind_claims = calloc(1, sizeof(*p->unwind_claims));
	snprintf(t->ranges, sizeof(t->ranges), "%s/ranges", t->fake->dir);
	p->ranges_path = p->ranges_pid_path = t->ranges;
	assert_int_equal(process_unwind_start(&t->fake->a.unwind), 0);
	return true;
}

void unwind_testing_stop(struct unwind_testing *t)
{
	struct pinned_maps p;

	if (!t->fake)
		return;
	p = t->fake->a.pins;
	unlink(t->ranges);
	process_unwind_done(&t->fake->a.unwind);
	fake_free(t->fake);
	t->fake = NULL;
	munmap(t->pool, UNWIND_TESTING_ELEMENTS * 8);
	munmap(t->tables, UNWIND_TESTING_TABLES * sizeof(*t->tables));
	close(p.unwind_pool_fd);
	close(p.unwind_process_fd);
	free(p.unwind_rules);
	free(p.unwind_files);
	free(p.unwind_claims);
}

void unwind_testing_record(struct unwind_testing *t, struct ranges_record record)
{
	FILE *file = fopen(t->ranges, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(&record, sizeof(record), 1, file), 1);
	fclose(file);
}

void unwind_testing_fill(struct unwind_testing *t, uint64_t fill, uint32_t table, uint32_t count)
{
	unwind_testing_record(
		t,
		(struct ranges_record){ .table_generation = fill, .table = table, .count = count });
}

struct process *unwind_testing_mapped(struct unwind_testing *t, uint32_t tgid,
				      struct mapping mapping)
{
	struct agent *a = &t->fake->a;
	struct process *p;

	assert_int_equal(process_get(&a->processes, tgid, 5, &p), 0);
	p->requested = true;
	p->announced = true;
	assert_int_equal(process_targets_match(&a->targets, p), 0);
	mappings_done(&p->maps);
	p->maps.items = calloc(1, sizeof(*p->maps.items));
	assert_non_null(p->maps.items);
	p->maps.count = 1;
	p->maps.read_ns = clock_mono_ns();
	p->maps.items[0] = mapping;
	symbols_hold(mapping.module);
	return p;
}

void unwind_testing_renew(struct unwind_testing *t, struct process *p)
{
	process_queue_read(&t->fake->a.processes, p);
	process_unwind_step(&t->fake->a.unwind);
}

void unwind_testing_sample(struct unwind_testing *t, struct process *p)
{
	const struct sample record = { .time_ns = clock_mono_ns(), .flags = SAMPLE_BUILD_ID };
	const struct walk_table *table;

	process_unwind_sampled(&t->fake->a.unwind, p, &record, &table);
	process_unwind_step(&t->fake->a.unwind);
}

bool unwind_testing_run(struct unwind_testing *t, bool (*done)(const struct process *p),
			const struct process *p, int ms)
{
	struct process_unwind *u = &t->fake->a.unwind;
	uint64_t until_ns = clock_mono_ns() + (uint64_t)ms * NSEC_PER_MSEC;

	while (!done(p) && clock_mono_ns() < until_ns) {
		struct pollfd fd = { .fd = unwind_files_fd(u->files), .events = POLLIN };

		if (poll(&fd, 1, 10) == 1)
			process_unwind_news(u);
	}
	return done(p);
}

bool unwind_testing_has_table(const struct process *p)
{
	return p->unwind.table > 0;
}

struct process *unwind_testing_published(struct unwind_testing *t, uint32_t tgid, uint32_t table,
					 uint64_t fill)
{
	struct process *p = unwind_testing_mapped(t, tgid, own_mapping(t->fake->a.symbols));

	unwind_testing_fill(t, fill, table, 1);
	unwind_testing_renew(t, p);
	assert_true(unwind_testing_run(t, unwind_testing_has_table, p, 20000));
	return p;
}

uint32_t unwind_testing_told(const struct unwind_testing *t, const struct process *p)
{
	struct process_key key = process_key(p);
	struct target target;

	assert_int_equal(bpf_map_lookup_elem(t->fake->a.pins.targets_fd, &key, &target), 0);
	return target.unwind;
}
