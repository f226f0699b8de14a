/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_changed.c: walks by a table after other files, other parts of the file or memory have been
 * mapped over the text of which it was made; and after changes that leave the text unchanged.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "look_fixture.h"

HARNESS_LOADS("sampler", "ranges*", "looks");

#define PAGE	    4096u
#define WHOLE_PAGES 8 /* of each file */
#define TEXT_PAGES  4 /* of the file's first, mapped as text */
#define RUN_PAGE    2 /* of them, in which the child runs */
#define SLEEP_AT    64

/* Each page of both files: a loop, and from SLEEP_AT on a loop of pause(2). */
static const uint8_t spin_code[] = { 0xeb, 0xfe };
static const uint8_t sleep_code[] = { 0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7 };

struct scene {
	char files[2][32];
	int orders[2]; /* a pipe: numbers of changes */
	bool sleeps;
	volatile uint64_t text;
	volatile uint32_t made; /* changes */
};

static void make_file(char *ret_path, size_t bytes)
{
	uint8_t page[PAGE] = { 0 };
	int fd;

	snprintf(ret_path, bytes, "/var/tmp/changed.XXXXXX");
	fd = mkostemp(ret_path, O_CLOEXEC);
	assert_true(fd >= 0);
	memcpy(page, spin_code, sizeof(spin_code));
	memcpy(page + SLEEP_AT, sleep_code, sizeof(sleep_code));
	for (int i = 0; i < WHOLE_PAGES; i++)
		assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	close(fd);
}

static void map_text(const struct scene *s, int file, uint32_t at, uint32_t pages, uint32_t from)
{
	int fd = open(s->files[file], O_RDONLY | O_CLOEXEC);
	void *to = (void *)(s->text + at * (uint64_t)PAGE);

	if (fd < 0 || mmap(to, pages * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
			   from * (off_t)PAGE) != to)
		_exit(41);
	close(fd);
}

static void map_whole(struct scene *s)
{
	map_text(s, 0, 0, TEXT_PAGES, 0);
}

static void map_other_file(struct scene *s)
{
	map_text(s, 1, RUN_PAGE, 1, RUN_PAGE);
}

static void map_other_file_at_start(struct scene *s)
{
	map_text(s, 1, 0, 1, 0);
}

static void map_other_part(struct scene *s)
{
	map_text(s, 0, RUN_PAGE, 1, RUN_PAGE + 1);
}

static void map_memory(struct scene *s)
{
	void *to = (void *)(s->text + RUN_PAGE * PAGE);
	uint8_t *copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		_exit(42);
	memcpy(copy, to, PAGE);
	if (mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		_exit(43);
}

/* Writes into the text, as tracers and code patchers do: the mapping is split, the file is not. */
static void patch(struct scene *s)
{
	if (mprotect((void *)(s->text + RUN_PAGE * PAGE), PAGE,
		     PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		_exit(44);
	*(volatile uint8_t *)(s->text + RUN_PAGE * PAGE + 128) = 1;
}

/* The file has another version, as after a copy over it; then the memory map changes anywhere. */
static void write_file(struct scene *s)
{
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	if (utimensat(AT_FDCWD, s->files[0], times, 0) < 0)
		_exit(45);
	if (mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		_exit(46);
}

/* Changes the memory map all the time, until the next order. */
static void change_map(struct scene *s)
{
	struct pollfd next = { .fd = s->orders[0], .events = POLLIN };

	s->made++;
	while (poll(&next, 1, 0) == 0)
		for (int i = 0; i < 100; i++)
			munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			       PAGE);
	s->made--;
}

static const struct change {
	void (*make)(struct scene *s);
	enum unwind_end end;
} changes[] = {
	{ map_whole, UNWIND_END_COMPLETE },	{ map_other_file, UNWIND_END_CHANGED },
	{ map_whole, UNWIND_END_COMPLETE },	{ map_other_part, UNWIND_END_CHANGED },
	{ map_whole, UNWIND_END_COMPLETE },	{ map_memory, UNWIND_END_CHANGED },
	{ map_whole, UNWIND_END_COMPLETE },	{ patch, UNWIND_END_COMPLETE },
	{ map_other_file, UNWIND_END_CHANGED }, { map_whole, UNWIND_END_COMPLETE },
	{ change_map, UNWIND_END_COMPLETE },	{ map_other_file_at_start, UNWIND_END_COMPLETE },
	{ map_whole, UNWIND_END_COMPLETE },	{ write_file, UNWIND_END_CHANGED },
};

static void *take_orders(void *context)
{
	struct scene *s = context;
	uint8_t order;

	while (read(s->orders[0], &order, 1) == 1) {
		changes[order].make(s);
		s->made++;
	}
	return NULL;
}

/* Runs in the text while its other thread changes the mapping there. */
static void run_in_text(void *context)
{
	struct scene *s = context;
	pthread_t thread;
	void *text = mmap(NULL, TEXT_PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (text == MAP_FAILED)
		_exit(47);
	s->text = (uintptr_t)text;
	map_whole(s);
	if (pthread_create(&thread, NULL, take_orders, s) != 0)
		_exit(48);
	s->made = 1;
	((void (*)(void))(s->text + RUN_PAGE * PAGE + (s->sleeps ? SLEEP_AT : 0)))();
}

static void wait_for(const struct scene *s, uint32_t made)
{
	for (int i = 0; i < 1000 && s->made < made; i++)
		harness_sleep_ms(10);
	assert_int_equal(s->made, made);
}

/* A process that runs in the text, with a published table by which each frame is the outermost. */
static struct fixture begin_scene(struct scene **ret_scene, bool sleeps)
{
	struct fixture f = begin_looks("sleep");
	struct ranges_record record = { 0 };
	struct scene *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(s, MAP_FAILED);
	make_file(s->files[0], sizeof(s->files[0]));
	make_file(s->files[1], sizeof(s->files[1]));
	assert_int_equal(pipe2(s->orders, O_CLOEXEC), 0);
	s->sleeps = sleeps;
	harness_kill(f.pid);
	f.pid = harness_start(run_in_text, s, f.dir);
	wait_for(s, 1);
	target_set(&f, TARGET_MAPPED, 0);
	read_places(&f);
	claim(&f, false);
	lie(&f, (struct unwind_rule){ .cfa = UNWIND_CFA_END }, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	assert_int_equal(record.missed, 0);
	publish(&f, record.table_generation);
	*ret_scene = s;
	return f;
}

static void end_scene(struct fixture *f, struct scene *s)
{
	end(f);
	for (int i = 0; i < 2; i++) {
		close(s->orders[i]);
		unlink(s->files[i]);
	}
	munmap(s, sizeof(*s));
}

static void order(struct scene *s, uint8_t number)
{
	assert_int_equal(write(s->orders[1], &number, 1), 1);
	wait_for(s, number + 2);
}

/* How the walks of the thread in the text ended, at ticks. */
static void ticks_see_changes(void **state)
{
	struct scene *s;
	struct fixture f = begin_scene(&s, false);

	for (uint8_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		size_t met = 0;

		order(s, i);
		for (int k = 0; k < 50 && met == 0; k++) {
			harness_forget(f.h);
			sample_for(f.h, 60);
			for (size_t n = 0; n < f.h->samples.count; n++) {
				const struct sample *sample = f.h->samples.records[n];

				if (sample->tid != (uint32_t)f.pid ||
				    !(sample->flags & SAMPLE_UNWOUND))
					continue;
				if (sample->stop_reason != changes[i].end)
					fail_msg("change %u: end %u", i, sample->stop_reason);
				met++;
			}
		}
		assert_true(met > 0);
	}
	end_scene(&f, s);
}

/* The same of looks at it, which do not depend on the lock of the memory map. */
static void looks_see_changes(void **state)
{
	struct scene *s;
	struct fixture f = begin_scene(&s, true);

	for (uint8_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		order(s, i);
		for (int k = 0; k < 50; k++) {
			struct seen_look l;

			read_asleep(f.h, f.pid, &l);
			assert_true(l.record.sample.flags & SAMPLE_UNWOUND);
			if (l.record.sample.stop_reason != changes[i].end)
				fail_msg("change %u: end %u", i, l.record.sample.stop_reason);
		}
	}
	end_scene(&f, s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticks_see_changes),
		cmocka_unit_test(looks_see_changes),
	};

	harness_main(argc, argv);
#if !defined(__x86_64__)
	print_message("the code of the files is x86-64's\n");
	return HARNESS_SKIP;
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
