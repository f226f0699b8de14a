/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.c: stacks by tables whose writer lies. Whatever the tables say, no frame but one in the
 * process's executable memory leaves the kernel side, and no process is walked by another's table.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "shared/cleanup.h"

#define HZ	 997
#define SLOT	 5
#define TABLE	 3
#define PLACES	 64
#define ROW_AT	 0 /* elements of the pool */
#define PAGES_AT 16
#define PAGES	 128 /* words: one row for 32 KiB of text behind the base */

/* A mapping of the process, as /proc has it. */
struct place {
	uint64_t start, end;
	bool executable;
};

struct fixture {
	struct harness *h;
	char dir[4096];
	pid_t pid;
	struct place places[PLACES];
	size_t count;
	struct unwind_process *tables;
	struct unwind_claims *claims;
	struct unwind_file *files;
	struct unwind_rule *rules;
	uint64_t *pool;
};

static void *map(const struct bpf_map *map)
{
	size_t bytes = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* What is mapped now; without the vsyscall page, which is no mapping. */
static void read_places(struct fixture *f)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64], line[512], mode[5];
	unsigned long start, end;

	snprintf(path, sizeof(path), "/proc/%d/maps", f->pid);
	file = fopen(path, "re");
	assert_non_null(file);
	f->count = 0;
	while (fgets(line, sizeof(line), file)) {
		assert_int_equal(sscanf(line, "%lx-%lx %4s", &start, &end, mode), 3);
		if (strstr(line, "[vsyscall]"))
			continue;
		assert_true(f->count < PLACES);
		f->places[f->count++] = (struct place){ start, end, mode[2] == 'x' };
	}
	assert_true(f->count > 4);
}

static bool is_executable(const struct fixture *f, uint64_t address)
{
	for (size_t i = 0; i < f->count; i++)
		if (address >= f->places[i].start && address < f->places[i].end)
			return f->places[i].executable;
	return false;
}

static void target_set(const struct fixture *f, uint32_t flags, uint32_t unwind)
{
	struct process_key key = { .tgid = (uint32_t)f->pid,
				   .start_ns = harness_start_ns(f->h, f->pid) };
	struct target target = { .flags = flags, .rule = NO_SLOT, .unwind = unwind };

	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(f->h->skel->maps.targets), &key, &target, BPF_ANY),
		0);
}

static struct fixture begin(const char *mode)
{
	struct fixture f = { .h = harness_new(NULL) };
	uint64_t id = harness_group(f.h, "burn", f.dir);

	f.pid = harness_spawn("t-burn", mode, f.dir);
	harness_watch(f.h, id, SLOT, SLOT_CAPTURE, 0);
	f.tables = map(f.h->skel->maps.unwind_process);
	f.claims = map(f.h->skel->maps.unwind_claims);
	f.files = map(f.h->skel->maps.unwind_files);
	f.rules = map(f.h->skel->maps.unwind_rules);
	f.pool = map(f.h->skel->maps.unwind_pool);
	target_set(&f, TARGET_MAPPED, 0);
	read_places(&f);
	return f;
}

static void end(struct fixture *f)
{
	harness_kill(f->pid);
	harness_free(f->h);
}

/* Claims every mapping of the process, or the executable ones. */
static void claim(struct fixture *f, bool all)
{
	f->claims->count = 0;
	for (size_t i = 0; i < f->count; i++)
		if (all || f->places[i].executable)
			f->claims->starts[f->claims->count++] = f->places[i].start;
	f->claims->table = TABLE;
	f->claims->start_ns = harness_start_ns(f->h, f->pid);
	f->claims->tgid = (uint32_t)f->pid;
}

/* Has the kernel side look at the claims; false when it writes nothing. */
static bool fill(const struct fixture *f, struct ranges_record *ret_record)
{
	_cleanup_free_ char *bytes = NULL;
	size_t n = harness_read(f->h->skel->progs.ranges, &bytes);

	if (n < sizeof(*ret_record))
		return false;
	assert_int_equal(n, sizeof(*ret_record));
	memcpy(ret_record, bytes, sizeof(*ret_record));
	return true;
}

/* One rule for all text: rows of one file whose table begins where the mapping does. */
static void lie(struct fixture *f, struct unwind_rule rule, uint32_t kind)
{
	size_t executable = 0;

	f->rules[7] = rule;
	f->pool[ROW_AT] = 7ull << 32;
	for (int i = 0; i < PAGES / 2; i++)
		f->pool[PAGES_AT + i] = (uint64_t)UNWIND_PAGE(0, 1) << 32 | UNWIND_PAGE(0, 1);
	f->files[0].place = (struct unwind_place){
		.rows = ROW_AT, .row_count = 1, .pages = PAGES_AT, .page_count = PAGES
	};
	for (size_t i = 0; i < f->claims->count; i++) {
		while (f->places[executable].start != f->claims->starts[i])
			executable++;
		f->tables[TABLE].mappings[i] = (struct unwind_mapping){
			.base = f->places[executable].start, .file = 0, .kind = kind
		};
	}
}

static void publish(struct fixture *f, uint64_t number)
{
	__atomic_store_n(&f->tables[TABLE].published, number, __ATOMIC_RELEASE);
	target_set(f, TARGET_MAPPED, TABLE + 1);
}

static void sample_for(struct harness *h, unsigned int ms)
{
	harness_tick(h, HZ);
	harness_sleep_ms(ms);
	for (int i = 0; i < HARNESS_CPUS; i++) {
		bpf_link__destroy(h->ticks[i]);
		h->ticks[i] = NULL;
	}
	harness_drain(h);
}

/* How many samples there are that were walked by a table, and their frames. */
struct walked {
	size_t samples, frames, deepest;
	uint64_t ends[UNWIND_END_COUNT_];
};

/* Counts; every user frame must be in executable memory. */
static struct walked look(const struct fixture *f)
{
	struct walked w = { 0 };

	for (size_t i = 0; i < f->h->samples.count; i++) {
		const struct sample *s = f->h->samples.records[i];
		const uint64_t *frames = (const uint64_t *)(s + 1) + s->kernel_frames;

		assert_int_equal(s->tgid, f->pid);
		if (!(s->flags & SAMPLE_UNWOUND))
			continue;
		assert_int_equal(
			f->h->samples.bytes[i],
			sizeof(*s) + 8 * ((size_t)s->kernel_frames + s->user_frames) +
				(s->flags & SAMPLE_LEAF_ID ? sizeof(struct frame_build_id) : 0));
		assert_in_range(s->user_frames, 1, STACK_FRAMES);
		for (size_t k = 0; k < s->user_frames; k++)
			if (!is_executable(f, frames[k]))
				fail_msg("frame %zu of %u is %lx", k, s->user_frames, frames[k]);
		w.samples++;
		w.frames += s->user_frames;
		w.deepest = s->user_frames > w.deepest ? s->user_frames : w.deepest;
		assert_in_range(s->user_end, 1, UNWIND_END_COUNT_ - 1);
		w.ends[s->user_end]++;
	}
	harness_forget(f->h);
	return w;
}

static struct walked take(struct fixture *f, unsigned int ms)
{
	harness_forget(f->h);
	sample_for(f->h, ms);
	return look(f);
}

/* The same until there is one that was walked: on a busy machine the child waits for its turn. */
static struct walked take_some(struct fixture *f)
{
	struct walked w = { 0 };

	for (int i = 0; i < 50 && w.samples == 0; i++)
		w = take(f, 100);
	assert_true(w.samples > 0);
	return w;
}

/* The kernel side takes what is executable, and says how much was not. */
static void ranges_are_what_is_mapped(void **state)
{
	struct fixture f = begin("burn");
	struct ranges_record first, second;
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
	assert_int_equal(ranges.fill, first.fill);
	for (size_t i = 0; i < f.count; i++) {
		const struct place *p = &f.places[i];

		assert_int_equal(UNWIND_RANGE_PAGE(ranges.ranges[i]), p->start / 4096);
		assert_int_equal(UNWIND_RANGE_PAGES(ranges.ranges[i]),
				 p->executable ? (p->end - p->start) / 4096 : 0);
	}
	assert_true(fill(&f, &second));
	assert_true(second.fill > first.fill);
	end(&f);
}

/* Who is nobody's business is not looked at; nor is a table that is none. */
static void claims_have_walls(void **state)
{
	struct fixture f = begin("burn");
	struct ranges_record record;

	claim(&f, false);
	f.claims->tgid = (uint32_t)getppid();
	assert_false(fill(&f, &record));
	claim(&f, false);
	f.claims->start_ns++;
	assert_false(fill(&f, &record));
	claim(&f, false);
	f.claims->table = 1u << 20;
	assert_false(fill(&f, &record));
	claim(&f, false);
	f.claims->count = UNWIND_RANGES + 1;
	assert_true(fill(&f, &record));
	assert_int_equal(record.fill, 0);
	claim(&f, false);
	assert_true(fill(&f, &record));
	assert_true(record.fill > 0);
	end(&f);
}

/* Rules at random, rows for all text: many walks, and nothing but code addresses. */
static void lying_tables_tell_nothing(void **state)
{
	struct fixture f = begin("burn");
	struct walked all = { 0 };
	struct ranges_record record;

	srandom(7);
	for (int i = 0; i < 40; i++) {
		struct unwind_rule rule = {
			.cfa_offset = (int32_t)(random() % 512) * 8 - 64,
			.fp_offset = (int16_t)((random() % 512) * 8 - 2048),
			.cfa = (uint8_t)(UNWIND_CFA_SP + random() % 6),
			.saved = UNWIND_SAVED(random() % 6, random() % 6),
		};
		struct walked w;

		claim(&f, i % 2);
		lie(&f, rule, UNWIND_KIND_ROWS + (uint32_t)random() % 3);
		assert_true(fill(&f, &record));
		publish(&f, record.fill);
		w = take(&f, 60);
		all.samples += w.samples;
		all.frames += w.frames;
		for (int k = 0; k < UNWIND_END_COUNT_; k++)
			all.ends[k] += w.ends[k];
	}
	assert_true(all.samples > 100);
	/* They did lead somewhere, and were stopped where no code is. */
	assert_true(all.ends[UNWIND_END_NO_MAPPING] + all.ends[UNWIND_END_NO_POINTERS] > 0);
	print_message("%zu samples, %zu frames, %lu left the mappings\n", all.samples, all.frames,
		      all.ends[UNWIND_END_NO_MAPPING]);
	end(&f);
}

/* A table of another process, or of the same before its execve, is not used. */
static void tables_are_one_images(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_END };
	struct fixture f = begin("exec");
	struct ranges_record record;
	struct walked w;

	claim(&f, false);
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.fill);
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
	w = take(&f, 100);
	assert_int_equal(w.samples, 0);
	publish(&f, record.fill);
	w = take_some(&f);
	assert_int_equal(w.ends[UNWIND_END_COMPLETE], w.samples);
	assert_int_equal(w.frames, w.samples);

	/* Another process that says it is its own is refused. */
	harness_kill(f.pid);
	f.pid = harness_spawn("t-burn", "burn", f.dir);
	target_set(&f, TARGET_MAPPED, TABLE + 1);
	w = take(&f, 100);
	assert_int_equal(w.samples, 0);
	end(&f);
}

/* Who asks for build-ids gets the leaf's behind the stack, which is unwound all the same. */
static void leaf_ids_are_told(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_END };
	struct fixture f = begin("burn");
	struct ranges_record record;
	size_t seen = 0;

	claim(&f, false);
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.fill);
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
	struct ranges_record record;
	struct walked w;

	claim(&f, false);
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.fill);
	w = take_some(&f);
	assert_in_range(w.deepest, 1, STACK_FRAMES);
	end(&f);
}

/* An address that the table does not know is told once in 100 ms, and as rarely as was asked. */
static void unknown_addresses_are_told(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_END };
	struct fixture f = begin("burn");
	struct ranges_record record;
	const struct event *event;
	uint64_t begun_ns;
	struct walked w;
	size_t n;

	claim(&f, false);
	f.claims->count = 0;
	lie(&f, rule, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.fill);
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
		cmocka_unit_test(lying_tables_tell_nothing),
		cmocka_unit_test(tables_are_one_images),
		cmocka_unit_test(leaf_ids_are_told),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(unknown_addresses_are_told),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
