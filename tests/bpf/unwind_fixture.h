/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_fixture.h: a process that burns in a watched cgroup, its mappings as /proc has them, and
 * the unwinder's maps to write lies into. Functions assert.
 */
#ifndef TROCAR_TESTS_BPF_UNWIND_FIXTURE_H
#define TROCAR_TESTS_BPF_UNWIND_FIXTURE_H

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "shared/tools/cleanup.h"

#define HZ	      997
#define SLOT	      5
#define TABLE	      3
#define PLACES	      128
#define FILES	      6	   /* that have room in the pool */
#define PAGES	      8192 /* words: one row for 2 MiB of text behind the base, more than any has */
#define FILE_PAGES    16   /* elements from a file's row to its page index */
#define FILE_ELEMENTS (FILE_PAGES + PAGES / 2)

/* A mapping of the process, as /proc has it. */
struct place {
	uint64_t start, end, inode;
	bool executable;
	char file[32]; /* the last part of its path, cut */
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

static inline void *map(const struct bpf_map *map)
{
	size_t bytes = (size_t)bpf_map__max_entries(map) * bpf_map__value_size(map);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* What is mapped now; without the vsyscall page, which is no mapping. */
static inline void read_places(struct fixture *f)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64], line[512], mode[5];
	unsigned long start, end, inode;
	const char *name;
	bool executable;

	snprintf(path, sizeof(path), "/proc/%d/maps", f->pid);
	file = fopen(path, "re");
	assert_non_null(file);
	f->count = 0;
	while (fgets(line, sizeof(line), file)) {
		/* NOLINTNEXTLINE(cert-err34-c): the kernel writes no number that does not fit */
		assert_int_equal(
			sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &start, &end, mode, &inode), 4);
		if (strstr(line, "[vsyscall]"))
			continue;
		assert_true(f->count < PLACES);
		executable = mode[2] == 'x';
		assert_true(!executable || end - start <= PAGES * UNWIND_PAGE_BYTES);
		name = strrchr(line, '/');
		f->places[f->count] = (struct place){
			.start = start, .end = end, .inode = inode, .executable = executable
		};
		snprintf(f->places[f->count++].file, sizeof(f->places->file), "%.*s",
			 name ? (int)strcspn(name + 1, "\n") : 0, name ? name + 1 : "");
	}
	assert_true(f->count > 4);
}

static inline bool is_executable(const struct fixture *f, uint64_t address)
{
	for (size_t i = 0; i < f->count; i++)
		if (address >= f->places[i].start && address < f->places[i].end)
			return f->places[i].executable;
	return false;
}

static inline void target_set(const struct fixture *f, uint32_t flags, uint32_t unwind)
{
	struct process_key key = { .tgid = (uint32_t)f->pid,
				   .start_ns = harness_start_ns(f->h, f->pid) };
	struct target target = { .flags = flags, .rule = NO_SLOT, .unwind = unwind };

	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(f->h->skel->maps.targets), &key, &target, BPF_ANY),
		0);
}

static inline struct fixture begin(const char *mode)
{
	const struct harness_options options = { .pool_elements = FILES * FILE_ELEMENTS };
	struct fixture f = { .h = harness_new(&options) };
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

static inline void end(struct fixture *f)
{
	harness_kill(f->pid);
	harness_free(f->h);
}

/* Claims every mapping of the process, or the executable ones. */
static inline void claim(const struct fixture *f, bool all)
{
	f->claims->count = 0;
	for (size_t i = 0; i < f->count; i++)
		if (all || f->places[i].executable) {
			f->claims->inodes[f->claims->count] = f->places[i].inode;
			f->claims->starts[f->claims->count++] = f->places[i].start;
		}
	f->claims->table = TABLE;
	f->claims->start_ns = harness_start_ns(f->h, f->pid);
	f->claims->tgid = (uint32_t)f->pid;
}

/* Has the kernel side look at the claims; false when it writes nothing. */
static inline bool fill(const struct fixture *f, struct ranges_record *ret_record)
{
	_cleanup_free_ char *bytes = NULL;
	size_t n = harness_read(f->h->skel->progs.ranges, &bytes);

	if (n < sizeof(*ret_record))
		return false;
	assert_int_equal(n, sizeof(*ret_record));
	memcpy(ret_record, bytes, sizeof(*ret_record));
	return true;
}

/* Rows of file `number` in a place of its own: `rule` alone, for all text of a mapping. */
static inline void write_rows(struct fixture *f, uint32_t number, uint16_t rule)
{
	uint32_t at = FILE_ELEMENTS * number;
	uint64_t *rows = f->pool + at;

	assert_true(number < FILES);
	for (int i = 0; i < PAGES / 2; i++)
		rows[FILE_PAGES + i] = (uint64_t)UNWIND_PAGE(0, 1) << 32 | UNWIND_PAGE(0, 1);
	*(volatile uint64_t *)rows = (uint64_t)rule << 32;
	f->files[number].place = (struct unwind_place){
		.rows = at, .row_count = 1, .pages = at + FILE_PAGES, .page_count = PAGES
	};
}

/* One rule for all text: rows of one file with a table that begins where the mapping does. */
static inline void lie(struct fixture *f, struct unwind_rule rule, uint32_t kind)
{
	size_t executable = 0;

	f->rules[7] = rule;
	write_rows(f, 0, 7);
	for (size_t i = 0; i < f->claims->count; i++) {
		while (f->places[executable].start != f->claims->starts[i])
			executable++;
		f->tables[TABLE].mappings[i] = (struct unwind_mapping){
			.base = f->places[executable].start, .file = 0, .kind = kind
		};
	}
}

static inline void publish(struct fixture *f, uint64_t number)
{
	__atomic_store_n(&f->tables[TABLE].published, number, __ATOMIC_RELEASE);
	target_set(f, TARGET_MAPPED, TABLE + 1);
}

static inline void ticks_stop(struct harness *h)
{
	for (int i = 0; i < HARNESS_CPUS; i++) {
		bpf_link__destroy(h->ticks[i]);
		h->ticks[i] = NULL;
	}
	harness_drain(h);
}

static inline void sample_for(struct harness *h, unsigned int ms)
{
	harness_tick(h, HZ);
	harness_sleep_ms(ms);
	ticks_stop(h);
}

/* How many samples there are that were walked by a table, and their frames. */
struct walked {
	size_t samples, frames, deepest;
	uint64_t ends[UNWIND_END_COUNT_];
};

/* Counts; every user frame must be in executable memory. */
static inline struct walked look(const struct fixture *f)
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
			if (!is_executable(f, SAMPLE_ADDRESS(frames[k])))
				fail_msg("frame %zu of %u is %lx", k, s->user_frames, frames[k]);
		w.samples++;
		w.frames += s->user_frames;
		w.deepest = s->user_frames > w.deepest ? s->user_frames : w.deepest;
		assert_in_range(s->stop_reason, 1, UNWIND_END_COUNT_ - 1);
		w.ends[s->stop_reason]++;
	}
	harness_forget(f->h);
	return w;
}

static inline struct walked take(struct fixture *f, unsigned int ms)
{
	harness_forget(f->h);
	sample_for(f->h, ms);
	return look(f);
}

/* The same until there is one that was walked: on a busy machine the child waits for its turn. */
static inline struct walked take_some(struct fixture *f)
{
	struct walked w = { 0 };

	for (int i = 0; i < 50 && w.samples == 0; i++)
		w = take(f, 100);
	assert_true(w.samples > 0);
	return w;
}

#endif
