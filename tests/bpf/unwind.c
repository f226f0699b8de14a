/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.c: stacks by tables of a lying writer. With any tables, no frame but one in the process's
 * executable memory leaves the kernel side, and no process is walked by another's table.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/syscall.h>

#include "unwind_fixture.h"

HARNESS_LOADS("sampler", "ranges*");

/* The kernel side takes executable mappings, and reports how many were not. */
static void ranges_are_what_is_mapped(void **state)
{
	struct fixture f = begin("burn");
	struct ranges_record first = { 0 }, second = { 0 };
	struct unwind_ranges ranges;
	uint32_t table = TABLE, executable = 0;

	claim(&f, true);
	assert_true(fill(&f, &first));
	for (size_t i = 0; i < f.count; i++)
		executable += f.places[i].executable;
	assert_int_equal(first.table, TABLE);
	assert_int_equal(first.count, f.count);
	assert_int_equal(first.missed, f.count - executable);
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(f.h->skel->maps.unwind_ranges), &table, &ranges),
		0);
	assert_int_equal(ranges.tgid, f.pid);
	assert_int_equal(ranges.table_generation, first.table_generation);
	for (size_t i = 0; i < f.count; i++) {
		const struct place *p = &f.places[i];

		assert_int_equal(UNWIND_RANGE_PAGE(ranges.ranges[i]), p->start / 4096);
		assert_int_equal(UNWIND_RANGE_PAGES(ranges.ranges[i]),
				 p->executable ? (p->end - p->start) / 4096 : 0);
	}
	assert_true(fill(&f, &second));
	assert_true(second.table_generation > first.table_generation);
	end(&f);
}

/* Processes outside of all watches are not looked at; nor is a table that is none. */
static void claims_have_walls(void **state)
{
	struct fixture f = begin("burn");
	pid_t stranger = harness_spawn("t-burn", "burn", NULL);
	struct ranges_record record = { 0 };

	claim(&f, false);
	f.claims->tgid = (uint32_t)stranger;
	f.claims->start_ns = harness_start_ns(f.h, stranger);
	assert_false(fill(&f, &record));
	harness_kill(stranger);
	claim(&f, false);
	f.claims->start_ns++;
	assert_false(fill(&f, &record));
	claim(&f, false);
	f.claims->table = 1u << 20;
	assert_false(fill(&f, &record));
	claim(&f, false);
	f.claims->count = UNWIND_RANGES + 1;
	assert_true(fill(&f, &record));
	assert_int_equal(record.table_generation, 0);
	claim(&f, false);
	assert_true(fill(&f, &record));
	assert_true(record.table_generation > 0);
	end(&f);
}

/* A range of another file than the claimed one is empty; each of the others has a check. */
static void ranges_are_of_the_claimed_file(void **state)
{
	static struct unwind_ranges ranges;
	struct fixture f = begin("burn");
	int map = bpf_map__fd(f.h->skel->maps.unwind_ranges);
	struct ranges_record record = { 0 };
	uint32_t table = TABLE, files = 0;

	claim(&f, false);
	assert_true(fill(&f, &record));
	assert_int_equal(record.missed, 0);
	assert_int_equal(bpf_map_lookup_elem(map, &table, &ranges), 0);
	for (uint32_t i = 0; i < record.count; i++) {
		assert_int_equal(ranges.checks[i] != 0, f.claims->inodes[i] != 0);
		files += f.claims->inodes[i] != 0;
	}
	assert_true(files >= 2 && files < record.count); /* the vDSO has none */
	for (uint32_t i = 0; i < f.claims->count; i++)
		f.claims->inodes[i]++;
	assert_true(fill(&f, &record));
	assert_int_equal(record.missed, record.count);
	assert_int_equal(bpf_map_lookup_elem(map, &table, &ranges), 0);
	for (uint32_t i = 0; i < record.count; i++)
		assert_int_equal(ranges.checks[i], 0);
	end(&f);
}

/* Rules at random, rows for all text: many walks, and nothing but code addresses. */
static void lying_tables_tell_nothing(void **state)
{
	struct fixture f = begin("burn");
	struct walked all = { 0 };
	struct ranges_record record = { 0 };

	srandom(7);
	for (int i = 0; i < 40; i++) {
		struct unwind_rule rule = {
			.cfa_offset = (int32_t)(random() % 64) * 8 - 64,
			.fp_offset = (int16_t)((random() % 64) * 8 - 256),
			.cfa = (uint8_t)(UNWIND_CFA_SP + random() % 6),
			.saved = UNWIND_SAVED(random() % 6, random() % 6),
		};
		struct walked w;

		claim(&f, i % 2);
		lie(&f, rule, UNWIND_KIND_ROWS + (uint32_t)random() % 3);
		assert_true(fill(&f, &record));
		publish(&f, record.table_generation);
		w = take(&f, 60);
		all.samples += w.samples;
		all.frames += w.frames;
		for (int k = 0; k < UNWIND_END_COUNT_; k++)
			all.ends[k] += w.ends[k];
	}
	assert_true(all.samples > 100);
	assert_true(all.ends[UNWIND_END_NO_CALLER] > 0);
	print_message("%zu samples, %zu frames, %lu led to no code\n", all.samples, all.frames,
		      all.ends[UNWIND_END_NO_CALLER]);
	end(&f);
}

/* A table of another process, or of the same before its execve, is not used. */
static void tables_are_one_images(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_END };
	struct fixture f = begin("exec");
	struct ranges_record record = { 0 };
	struct walked w;
	uint32_t image;

	claim(&f, false);
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	image = record.image;
	publish(&f, record.table_generation);
	assert_int_equal(kill(f.pid, SIGUSR1), 0);
	harness_sleep_ms(100);
	sample_for(f.h, 200);
	assert_true(f.h->samples.count > 0);
	w = look(&f);
	assert_int_equal(w.samples, 0);

	/* The same table, filled for the new image, is. */
	read_places(&f);
	claim(&f, false);
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	assert_int_equal(record.image, image + 1);
	w = take(&f, 100);
	assert_int_equal(w.samples, 0);
	publish(&f, record.table_generation);
	w = take_some(&f);
	assert_int_equal(w.ends[UNWIND_END_COMPLETE], w.samples);
	assert_int_equal(w.frames, w.samples);

	/* Another process with as many images that claims it is refused. */
	harness_kill(f.pid);
	f.pid = harness_spawn("t-burn", "exec", f.dir);
	assert_int_equal(kill(f.pid, SIGUSR1), 0);
	harness_sleep_ms(100);
	target_set(&f, TARGET_MAPPED, TABLE + 1);
	sample_for(f.h, 200);
	assert_true(f.h->samples.count > 0);
	assert_int_equal(look(&f).samples, 0);
	end(&f);
}

/* Who asks for build-ids gets the leaf's behind the stack, which is unwound all the same. */
static void leaf_ids_are_told(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_END };
	struct fixture f = begin("burn");
	struct ranges_record record = { 0 };
	size_t seen = 0;

	claim(&f, false);
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.table_generation);
	target_set(&f, 0, TABLE + 1);
	harness_forget(f.h);
	sample_for(f.h, 100);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		const struct sample *s = f.h->samples.records[i];
		const uint64_t *frames = (const uint64_t *)(s + 1) + s->kernel_frames;
		const struct frame_build_id *id =
			(const struct frame_build_id *)(frames + s->user_frames);

		assert_int_equal(s->flags & (SAMPLE_UNWOUND | SAMPLE_BUILD_ID), SAMPLE_UNWOUND);
		if (!(s->flags & SAMPLE_LEAF_ID) || id->status != 1)
			continue;
		assert_int_equal((frames[0] ^ id->offset_or_ip) & 0xfff, 0);
		seen++;
	}
	assert_true(seen > 0);
	assert_int_equal(look(&f).samples > 0, 1);
	end(&f);
}

/* Rows that never end are cut at the depth of a sample. */
static void depth_is_bounded(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_SP,
				    .cfa_offset = 8,
				    .saved = UNWIND_SAVED(UNWIND_RA_ALONE, UNWIND_FP_SAME) };
	struct fixture f = begin("burn");
	struct ranges_record record = { 0 };
	struct walked w;

	claim(&f, false);
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.table_generation);
	w = take_some(&f);
	assert_in_range(w.deepest, 1, STACK_FRAMES);
	end(&f);
}

#define SWITCH_MS    1500
#define SWITCHES_MAX 4096
#define WILD	     9 /* a rule that no walk by good rows meets */

static void write_table(struct fixture *f, uint32_t number, bool poison)
{
	write_rows(f, number, poison ? WILD : UNWIND_RULE_END);
	for (size_t i = 0; i < f->claims->count; i++)
		f->tables[number].mappings[i] = (struct unwind_mapping){
			.base = poison ? 0 : f->claims->starts[i],
			.file = number,
			.kind = poison ? UNWIND_KIND_FP : UNWIND_KIND_ROWS,
		};
}

/* Everything into table `number`, as the consumer does it: poison first, so that it would be seen.
 */
static void switch_to(struct fixture *f, uint32_t number, uint32_t old)
{
	struct ranges_record record = { 0 };

	write_table(f, number, true);
	write_table(f, number, false);
	f->claims->table = number;
	assert_true(fill(f, &record));
	__atomic_store_n(&f->tables[number].published, record.table_generation, __ATOMIC_RELEASE);
	target_set(f, TARGET_MAPPED, number + 1);
	__atomic_store_n(&f->tables[old].published, 0, __ATOMIC_RELEASE);
	assert_int_equal(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0), 0);
}

static const char *file_of(const struct fixture *f, uint64_t address)
{
	for (size_t i = 0; i < f->count; i++)
		if (address >= f->places[i].start && address < f->places[i].end)
			return f->places[i].file;
	return "";
}

/* Prints a stack, and how long after which switch it was taken. */
static void say_stack(const struct fixture *f, const struct sample *s, const uint64_t *switched_ns,
		      uint32_t switches)
{
	const uint64_t *frames = (const uint64_t *)(s + 1) + s->kernel_frames;
	uint32_t i = 0;

	while (i < switches && switched_ns[i] < s->time_ns)
		i++;
	print_message("end %u, in %s, %" PRId64 " us after switch %u of %u:", s->stop_reason,
		      s->flags & SAMPLE_IN_USER ? "user mode" : "the kernel",
		      i ? (int64_t)(s->time_ns - switched_ns[i - 1]) / 1000 : -1, i, switches);
	for (size_t k = 0; k < s->user_frames; k++)
		print_message(" %" PRIx64 " (%s)", frames[k], file_of(f, frames[k]));
	print_message("\n");
}

/* Stacks that are not one frame that ends by its row; the first few are printed. */
static size_t odd_stacks(const struct fixture *f, const uint64_t *switched_ns, uint32_t switches)
{
	size_t odd = 0;

	for (size_t i = 0; i < f->h->samples.count; i++) {
		const struct sample *s = f->h->samples.records[i];

		if (!(s->flags & SAMPLE_UNWOUND) ||
		    (s->user_frames == 1 && s->stop_reason == UNWIND_END_COMPLETE))
			continue;
		if (odd++ < 10)
			say_stack(f, s, switched_ns, switches);
	}
	return odd;
}

/*
 * Two tables change places under 10,000 ticks a second, each overwritten with poison when its grace
 * has passed: no tick sees any of it. And without the protocol the same test sees the poison.
 */
static void switching_is_never_seen(void **state)
{
	struct fixture f = begin("burn");
	uint32_t now = TABLE, switches = 0;
	uint64_t switched_ns[SWITCHES_MAX], end_ns;
	struct walked w;
	size_t odd;

	claim(&f, false);
	f.rules[UNWIND_RULE_END] = (struct unwind_rule){ .cfa = UNWIND_CFA_END };
	f.rules[WILD] = (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED };
	switch_to(&f, now, TABLE + 1);
	harness_forget(f.h);
	harness_tick(f.h, 10000);
	end_ns = harness_now_ns() + SWITCH_MS * 1000000ull;
	while (harness_now_ns() < end_ns && switches < SWITCHES_MAX) {
		uint32_t old = now;

		now = old == TABLE ? TABLE + 1 : TABLE;
		switch_to(&f, now, old);
		harness_drain(f.h);
		switched_ns[switches++] = harness_now_ns();
	}
	ticks_stop(f.h);
	odd = odd_stacks(&f, switched_ns, switches);
	w = look(&f);
	print_message("%u switches, %zu stacks, %zu wrong\n", switches, w.samples, odd);
	assert_true(switches > 3 && w.samples > 0);
	assert_int_equal(odd, 0);

	harness_tick(f.h, 10000);
	w = (struct walked){ 0 };
	for (int i = 0; i < 40 && w.ends[UNWIND_END_COMPLETE] == w.samples; i++) {
		write_rows(&f, now, WILD);
		harness_sleep_ms(50);
		harness_drain(f.h);
		w = look(&f);
	}
	ticks_stop(f.h);
	assert_true(w.ends[UNWIND_END_COMPLETE] < w.samples);
	end(&f);
}

/*
 * An address that the table does not know is reported once in 100 ms, and as rarely as requested.
 */
static void unknown_addresses_are_told(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_END };
	struct fixture f = begin("burn");
	struct ranges_record record = { 0 };
	const struct event *event;
	uint64_t begun_ns;
	struct walked w;
	size_t n;

	claim(&f, false);
	f.claims->count = 0;
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.table_generation);
	harness_forget(f.h);
	begun_ns = harness_now_ns();
	sample_for(f.h, 350);
	n = harness_events(f.h, EVENT_UNMAPPED, (uint32_t)f.pid, &event);
	assert_in_range(n, 2, (harness_now_ns() - begun_ns) / 100000000 + 1);
	assert_int_equal(event->start_ns, harness_start_ns(f.h, f.pid));
	w = look(&f);
	assert_int_equal(w.frames, w.samples); /* the leaf, which was running */
	assert_int_equal(w.ends[UNWIND_END_NO_MAPPING], w.samples);
	f.tables[TABLE].quiet_ns = 60000000000;
	sample_for(f.h, 250);
	assert_int_equal(harness_events(f.h, EVENT_UNMAPPED, (uint32_t)f.pid, &event), 0);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_what_is_mapped),
		cmocka_unit_test(claims_have_walls),
		cmocka_unit_test(ranges_are_of_the_claimed_file),
		cmocka_unit_test(lying_tables_tell_nothing),
		cmocka_unit_test(tables_are_one_images),
		cmocka_unit_test(leaf_ids_are_told),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(switching_is_never_seen),
		cmocka_unit_test(unknown_addresses_are_told),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
