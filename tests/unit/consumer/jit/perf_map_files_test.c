/* SPDX-License-Identifier: BSD-2-Clause */
/* Which perf maps are open when, on one thread: the table does not know which thread calls. */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "consumer/jit/perf_map_files.h"
#include "shared/tools/clock.h"
#include "tests/unit/consumer/symbols/jit_testing.h"

struct fixture {
	struct perf_map_files files;
	char folder[32], path[64];
	struct process_key self;
	unsigned int wakes, borrows;
	int borrowed; /* what the broker gives: a descriptor, or -errno */
};

static void wake(void *context)
{
	((struct fixture *)context)->wakes++;
}

static int borrow(void *context, const struct process_key *process, int *ret_fd)
{
	struct fixture *f = context;

	f->borrows++;
	if (f->borrowed < 0)
		return f->borrowed;
	*ret_fd = fcntl(f->borrowed, F_DUPFD_CLOEXEC, 0);
	return 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->folder, "/tmp/perf_map_files_test.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	f->self = jit_testing_self();
	snprintf(f->path, sizeof(f->path), "%s/perf-%u.map", f->folder, f->self.tgid);
	perf_map_files_init(&f->files, f->folder);
	perf_map_files_set_wake(&f->files, wake, f);
	f->borrowed = -ENOTCONN;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	perf_map_files_done(&f->files);
	unlink(f->path);
	rmdir(f->folder);
	free(f);
	return 0;
}

/* The first byte of the map that is given for the process; 0 when none is, and then why. */
static char given(struct fixture *f, const struct process_key *process, enum reason *ret_reason)
{
	_cleanup_close_ int owned = -1;
	char byte = 0;
	int fd = -1;

	*ret_reason = perf_map_files_open(&f->files, process, &fd, &owned);
	if (*ret_reason == REASON_NONE)
		assert_int_equal(pread(fd, &byte, 1, 0), 1);
	return byte;
}

/* As if the process had ended, and another had its number: what is held is asked for by its key. */
static void end_process(struct fixture *f)
{
	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++)
		f->files.items[i].process.start_ns += 50000000;
	f->self.start_ns += 50000000;
}

static void pass(struct fixture *f, uint64_t ns)
{
	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++) {
		struct perf_map_file *item = &f->files.items[i];

		item->tried_ns -= item->tried_ns ? ns : 0;
		item->gone_ns -= item->gone_ns ? ns : 0;
	}
}

static size_t held(const struct fixture *f)
{
	size_t n = 0;

	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++)
		n += f->files.items[i].fd >= 0;
	return n;
}

/* A process that was met is named after its end; one that was not is marked so. */
static void test_gone(void **state)
{
	struct fixture *f = *state;
	enum reason reason;

	jit_testing_write(f->path, "5000 10 good\n");
	assert_int_equal(given(f, &f->self, &reason), '5');
	perf_map_files_meet(&f->files, &f->self);
	assert_int_equal(f->wakes, 1);
	assert_int_equal(held(f), 0); /* the main thread opens nothing */
	perf_map_files_serve(&f->files, true);
	assert_int_equal(held(f), 1);
	end_process(f);
	unlink(f->path);
	assert_int_equal(given(f, &f->self, &reason), '5');
	f->self.start_ns += 50000000;
	assert_int_equal(given(f, &f->self, &reason), 0);
	assert_int_equal(reason, REASON_PROCESS_GONE);
}

/* While it lives the file of the moment counts: runtimes write new ones. */
static void test_newer(void **state)
{
	struct fixture *f = *state;
	enum reason reason;

	jit_testing_write(f->path, "5000 10 old\n");
	perf_map_files_meet(&f->files, &f->self);
	perf_map_files_serve(&f->files, true);
	unlink(f->path);
	jit_testing_write(f->path, "6000 10 new\n");
	assert_int_equal(given(f, &f->self, &reason), '6');
	unlink(f->path);
	assert_int_equal(given(f, &f->self, &reason), '5');
}

/* What was opened stays so until some time after the end, and as long as a session waits. */
static void test_closed(void **state)
{
	struct fixture *f = *state;
	enum reason reason;

	jit_testing_write(f->path, "5000 10 good\n");
	perf_map_files_meet(&f->files, &f->self);
	perf_map_files_serve(&f->files, true);
	pass(f, PERF_MAP_FILES_LINGER_NS + 1);
	perf_map_files_serve(&f->files, true);
	assert_int_equal(held(f), 1); /* it lives */
	assert_int_equal(perf_map_files_due_ns(&f->files), 0);
	perf_map_files_leave(&f->files, &f->self);
	assert_int_equal(f->wakes, 2);
	assert_true(perf_map_files_due_ns(&f->files) > clock_mono_ns());
	perf_map_files_serve(&f->files, true);
	assert_int_equal(held(f), 1);
	pass(f, PERF_MAP_FILES_LINGER_NS);
	perf_map_files_serve(&f->files, false);
	assert_int_equal(held(f), 1);
	assert_true(perf_map_files_due_ns(&f->files) <= clock_mono_ns());
	perf_map_files_serve(&f->files, true);
	assert_int_equal(held(f), 0);
	assert_int_equal(perf_map_files_due_ns(&f->files), 0);
	end_process(f);
	assert_int_equal(given(f, &f->self, &reason), 0);
}

/* A map that is not there yet is looked for again, not at once and not for ever. */
static void test_again(void **state)
{
	struct fixture *f = *state;
	enum reason reason;

	perf_map_files_set_borrow(&f->files, borrow, f);
	for (unsigned int i = 1; i <= PERF_MAP_FILES_TRIES + 2; i++) {
		perf_map_files_meet(&f->files, &f->self);
		perf_map_files_serve(&f->files, true);
		perf_map_files_meet(&f->files, &f->self);
		perf_map_files_serve(&f->files, true);
		assert_int_equal(f->borrows, i < PERF_MAP_FILES_TRIES ? i : PERF_MAP_FILES_TRIES);
		pass(f, PERF_MAP_FILES_AGAIN_NS);
	}
	end_process(f);
	assert_int_equal(given(f, &f->self, &reason), 0);
	assert_int_equal(reason, REASON_NO_PERF_MAP); /* not a missing look */
}

/* Where the host has none the broker is asked, and only there. */
static void test_borrowed(void **state)
{
	struct fixture *f = *state;
	char path[64];
	enum reason reason;

	snprintf(path, sizeof(path), "%s/inner", f->folder);
	jit_testing_write(path, "7000 10 inner\n");
	f->borrowed = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(f->borrowed >= 0);
	perf_map_files_set_borrow(&f->files, borrow, f);
	assert_int_equal(given(f, &f->self, &reason), '7');
	perf_map_files_meet(&f->files, &f->self);
	perf_map_files_serve(&f->files, true);
	jit_testing_write(f->path, "5000 10 good\n");
	assert_int_equal(given(f, &f->self, &reason), '5');
	assert_int_equal(f->borrows, 2);
	end_process(f);
	assert_int_equal(given(f, &f->self, &reason), '7');
	assert_int_equal(f->borrows, 2); /* it has gone: there is no remedy */
	close(f->borrowed);
	unlink(path);
}

/* More processes than there are places: those that have gone make room, living ones do not. */
static void test_full(void **state)
{
	struct process_key other = { .start_ns = 7 };
	struct fixture *f = *state;

	jit_testing_write(f->path, "5000 10 good\n");
	perf_map_files_meet(&f->files, &f->self);
	for (uint32_t i = 1; i < PERF_MAP_FILES_MAX; i++) {
		other.tgid = 0x7fff0000u + i;
		perf_map_files_meet(&f->files, &other);
	}
	perf_map_files_serve(&f->files, true);
	assert_int_equal(held(f), 1);
	f->wakes = 0;
	other.tgid = 0x7fff0000u;
	perf_map_files_meet(&f->files, &other);
	assert_int_equal(f->wakes, 0);
	perf_map_files_leave(&f->files, &f->self);
	perf_map_files_meet(&f->files, &other); /* there is only an open one to give up */
	perf_map_files_serve(&f->files, true);
	assert_int_equal(held(f), 0);
	f->wakes = 0;
	perf_map_files_meet(&f->files, &other);
	assert_int_equal(f->wakes, 1);
	other.tgid++;
	perf_map_files_serve(&f->files, true);
	perf_map_files_leave(&f->files, &other);
	other.tgid = 0x7ffeffffu;
	f->wakes = 0;
	perf_map_files_meet(&f->files, &other);
	assert_int_equal(f->wakes, 1);
}

UNIT_TESTS(perf_map_files)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_newer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_borrowed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
