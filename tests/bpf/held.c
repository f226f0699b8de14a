/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held.c: a watched process that lets nobody have a page of a file that it has mapped, as whoever
 * serves a FUSE file system can. What the kernel side asks of that file it asks without waiting.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "held_file.h"
#include "unwind_fixture.h"

HARNESS_LOADS("sampler", "ranges*", "looks");

#define PAGE	 4096u
#define TEXT_AT	 (HELD_FILE_BYTES / 2) /* in the file */
#define BOUND_NS 100000000u

/* What the process has mapped: it tells us. */
struct told {
	char path[128];
	uint64_t text, inode;
	volatile int ready;
};

/* Maps the file, and touches nothing of it. */
static void be_held(void *context)
{
	struct told *told = context;
	int fd = open(told->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *at;

	if (fd < 0 || fstat(fd, &st) < 0)
		_exit(41);
	at = mmap(NULL, TEXT_AT + PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED || mprotect(at + TEXT_AT, PAGE, PROT_READ | PROT_EXEC) < 0)
		_exit(42);
	told->text = (uintptr_t)at + TEXT_AT;
	told->inode = st.st_ino;
	told->ready = 1;
	for (;;)
		pause();
}

/* Has the kernel side look at the file's text, and ask for a word of the page before. */
static int ask(const struct fixture *f, const struct told *told)
{
	struct ranges_record record = { 0 };

	claim(f, false);
	f->claims->starts[0] = told->text;
	f->claims->inodes[0] = told->inode;
	f->claims->below[0] = TEXT_AT;
	f->claims->count = 1;
	return fill(f, &record) && record.table_generation && !record.missed ? 0 : 1;
}

/* The same in a process of its own, which may be ended when it does not come back. */
static uint64_t ask_apart(const struct fixture *f, const struct told *told, struct held_file *file)
{
	uint64_t begun_ns = harness_now_ns();
	pid_t pid = fork();
	uint64_t took_ns;
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(ask(f, told));
	took_ns = held_file_wait(file, pid, begun_ns, &status);
	assert_int_equal(status, 0);
	return took_ns;
}

/* Neither for the page, nor for long: a walk that finds it there will take its word over. */
static void nobody_is_waited_for(void **state)
{
	struct told *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct held_file file = { .server = -1 };
	static struct unwind_ranges ranges;
	uint32_t table = TABLE;
	struct fixture f;
	uint64_t ns;

	assert_ptr_not_equal(told, MAP_FAILED);
	if (!held_file_begin(&file)) {
		print_message("no FUSE file system can be mounted here\n");
		skip();
	}
	snprintf(told->path, sizeof(told->path), "%s/%s", file.dir, HELD_FILE_NAME);
	f = begin("burn");
	harness_kill(f.pid);
	f.pid = harness_start(be_held, told, f.dir);
	for (int i = 0; i < 200 && !told->ready; i++)
		harness_sleep_ms(10);
	assert_true(told->ready);
	ns = ask_apart(&f, told, &file);
	print_message("%.1f ms\n", (double)ns / 1e6);
	assert_in_range(ns, 0, BOUND_NS);
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(f.h->skel->maps.unwind_ranges), &table, &ranges),
		0);
	assert_int_equal(UNWIND_RANGE_PAGES(ranges.ranges[0]), 1);
	assert_true(UNWIND_CHECK_IS_LATER(ranges.checks[0]));
	end(&f);
	held_file_end(&file);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(nobody_is_waited_for) };

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
