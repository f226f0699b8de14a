/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "consumer/jit/perf_map_names.h"
#include "consumer/jit/perf_map_read.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "tests/unit/consumer/symbols/jit_testing.h"

/* Everything in the files was there before the samples. */
static const struct perf_map_age aged = { .began_ns = UINT64_MAX };

static void expect(const struct jit_map *map, uint64_t address, const char *name, uint64_t start)
{
	uint64_t found = 0;
	const char *fn = NULL;
	enum reason reason = perf_map_find(map, address, &fn, &found);

	if (!name) {
		assert_int_not_equal(reason, REASON_NONE);
		return;
	}
	assert_int_equal(reason, REASON_NONE);
	assert_string_equal(fn, name);
	assert_int_equal(found, start);
}

/* Opens and reads it. */
static enum reason read_map(const char *folder, const struct process_key *key,
			    struct jit_map **ret_map)
{
	_cleanup_close_ int fd = -1;
	enum reason reason = perf_map_read_open(folder, key, &fd);

	return reason == REASON_NONE ? perf_map_read_load(fd, key, &aged, ret_map) : reason;
}

static void test_file(void **state)
{
	char folder[] = "/tmp/jit_map_test.XXXXXX", path[64];
	struct process_key key = jit_testing_self(), other = key;
	struct jit_map *map = NULL;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/perf-%u.map", folder, key.tgid);
	assert_int_equal(read_map(folder, &key, &map), REASON_NO_PERF_MAP);
	jit_testing_write(path, "5000 10 good\n");
	assert_int_equal(read_map(folder, &key, &map), REASON_NONE);
	expect(map, 0x5008, "good", 0x5000);
	perf_map_free(map);
	/* Another process with this number: the file may be of the one before it. */
	other.start_ns += 50000000;
	assert_int_equal(read_map(folder, &other, &map), REASON_PROCESS_GONE);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(read_map(folder, &key, &map), REASON_OTHER_FILE);
	}
	unlink(path);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(read_map(folder, &key, &map), REASON_NOT_REGULAR);
	unlink(path);
	assert_int_equal(symlink("/proc/self/status", path), 0);
	assert_int_equal(read_map(folder, &key, &map), REASON_NOT_REGULAR);
	unlink(path);
	rmdir(folder);
}

/* Of a file that is mostly a hole only the end is read: the line that it cuts is no line. */
static void test_sparse(void **state)
{
	char folder[] = "/tmp/jit_map_test.XXXXXX", path[64];
	static const char line[] = "7f5000 10 good\n";
	struct process_key key = jit_testing_self();
	struct jit_map *map = NULL;
	off_t far = (off_t)1 << 40;
	const char *fn;
	uint64_t start;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/perf-%u.map", folder, key.tgid);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, line, strlen(line), far), strlen(line));
	assert_int_equal(pwrite(fd, line, strlen(line), far + PERF_MAP_BYTES_MAX - 2),
			 strlen(line));
	assert_int_equal(pwrite(fd, "\n", 1, far + PERF_MAP_BYTES_MAX - 3), 1);
	assert_int_equal(read_map(folder, &key, &map), REASON_NONE);
	expect(map, 0x7f5000, "good", 0x7f5000);
	assert_int_equal(perf_map_find(map, 0x7f5010, &fn, &start), REASON_PERF_MAP_CUT);
	perf_map_free(map);
	/* What is read begins behind the first line's "7f": 5000 is no address of it. */
	assert_int_equal(ftruncate(fd, far + PERF_MAP_BYTES_MAX + 2), 0);
	assert_int_equal(read_map(folder, &key, &map), REASON_NONE);
	expect(map, 0x5000, NULL, 0);
	perf_map_free(map);
	close(fd);
	unlink(path);
	rmdir(folder);
}

/* Where runtimes write it, kept for the session. */
static void test_kept(void **state)
{
	struct process_key key = jit_testing_self(), none = { .tgid = 1 };
	struct jit j = { 0 };
	struct perf_map_files files;
	const char *fn = NULL, *again = NULL;
	uint64_t start = 0;
	char path[64];
	size_t bytes;

	perf_map_files_init(&files, PERF_MAP_FOLDER);
	snprintf(path, sizeof(path), PERF_MAP_FOLDER "/perf-%u.map", key.tgid);
	jit_testing_write(path, "5000 10 good\n");
	assert_int_equal(perf_map_names_find(&j, &files, &key, 0x5004, 1 << 20, &fn, &start),
			 REASON_NONE);
	assert_string_equal(fn, "good");
	assert_int_equal(start, 0x5000);
	bytes = j.bytes;
	assert_true(bytes > 0);
	unlink(path);
	assert_int_equal(perf_map_names_find(&j, &files, &key, 0x5004, 1 << 20, &again, &start),
			 REASON_NONE);
	assert_ptr_equal(again, fn);
	assert_int_equal(perf_map_names_find(&j, &files, &key, 0x9000, 1 << 20, &fn, &start),
			 REASON_NO_SYMBOL);
	assert_int_equal(perf_map_names_find(&j, &files, &none, 0x5004, 1 << 20, &fn, &start),
			 REASON_PROCESS_GONE);
	none.tgid = 2;
	assert_int_equal(perf_map_names_find(&j, &files, &none, 0x5004, 1, &fn, &start),
			 REASON_CACHE_FULL);
	assert_int_equal(j.bytes, bytes);
	perf_map_names_done(&j);
	assert_int_equal(perf_map_names_find(&j, &files, &key, 0x5004, 1, &fn, &start),
			 REASON_NO_PERF_MAP);
	perf_map_names_done(&j);
	perf_map_files_done(&files);
}

/* Of a map that is longer than its read part, a function without a name may be in the rest. */
static void test_cut(void **state)
{
	struct process_key key = jit_testing_self();
	struct perf_map_files files;
	struct jit j = { 0 };
	const char *fn = NULL;
	uint64_t start = 0;
	char path[64];

	perf_map_files_init(&files, PERF_MAP_FOLDER);
	snprintf(path, sizeof(path), PERF_MAP_FOLDER "/perf-%u.map", key.tgid);
	jit_testing_write(path, "5000 10 first\n");
	assert_int_equal(truncate(path, PERF_MAP_BYTES_MAX + 100), 0);
	assert_int_equal(perf_map_names_find(&j, &files, &key, 0x5004, 1 << 20, &fn, &start),
			 REASON_PERF_MAP_CUT);
	perf_map_names_done(&j);
	perf_map_files_done(&files);
	unlink(path);
}

/* What the broker hands over is looked at too. */
static void test_load(void **state)
{
	struct process_key self = jit_testing_self();
	struct jit_map *map = NULL;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(perf_map_read_load(fds[0], &self, &aged, &map), REASON_NOT_REGULAR);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(perf_map_read_load(fds[0], &self, &aged, &map), REASON_READ_ERROR);
	assert_null(map);
}

/* A file from before the process: of another one that had its number. */
static void test_left(void **state)
{
	const struct timespec old[2] = { { .tv_sec = time(NULL) - 3600 },
					 { .tv_sec = time(NULL) - 3600 } };
	char folder[] = "/tmp/jit_map_test.XXXXXX", path[64];
	struct process_key key = jit_testing_self();
	struct jit_map *map = NULL;
	int fd = -1;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/perf-%u.map", folder, key.tgid);
	jit_testing_write(path, "5000 10 good\n");
	assert_int_equal(perf_map_read_open(folder, &key, &fd), REASON_NONE);
	assert_int_equal(futimens(fd, old), 0);
	assert_int_equal(perf_map_read_load(fd, &key, &aged, &map), REASON_OTHER_FILE);
	close(fd);
	assert_int_equal(perf_map_read_open(folder, &key, &fd), REASON_OTHER_FILE);
	jit_testing_write(path, "6000 10 new\n");
	assert_int_equal(read_map(folder, &key, &map), REASON_NONE);
	expect(map, 0x6000, "new", 0x6000);
	perf_map_free(map);
	unlink(path);
	rmdir(folder);
}

static void append(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static enum reason name_first(struct jit *j, struct perf_map_files *files, uint64_t began_ns,
			      const char **ret_fn)
{
	struct process_key key = jit_testing_self();
	uint64_t start;
	enum reason reason;

	perf_map_names_done(j);
	perf_map_names_begin(j, began_ns);
	reason = perf_map_names_find(j, files, &key, 0x5004, 1 << 20, ret_fn, &start);
	return reason;
}

/* A file that grows: which of its lines are older than the samples. */
static void test_ages(void **state)
{
	struct process_key key = jit_testing_self();
	struct perf_map_files files;
	const char *fn = NULL;
	uint64_t between_ns;
	struct jit j = { 0 };
	char path[64];

	perf_map_files_init(&files, PERF_MAP_FOLDER);
	snprintf(path, sizeof(path), PERF_MAP_FOLDER "/perf-%u.map", key.tgid);
	jit_testing_write(path, "5000 10 first\n5000 10 second\n");
	perf_map_files_meet(&files, &key);
	perf_map_files_serve(&files, false);
	assert_int_equal(name_first(&j, &files, 1, &fn), REASON_CODE_REUSED);
	usleep(30000);
	between_ns = clock_mono_ns();
	assert_int_equal(name_first(&j, &files, between_ns, &fn), REASON_NONE);
	assert_string_equal(fn, "second");
	usleep(30000);
	append(path, "6000 10 other\n");
	/* By the mark, although the file has grown since. */
	assert_int_equal(name_first(&j, &files, between_ns, &fn), REASON_NONE);
	assert_string_equal(fn, "second");
	append(path, "5000 10 third\n");
	assert_int_equal(name_first(&j, &files, between_ns, &fn), REASON_CODE_REUSED);
	perf_map_files_mark(&files);
	perf_map_files_serve(&files, false);
	usleep(30000);
	append(path, "7000 10 last\n");
	assert_int_equal(name_first(&j, &files, clock_mono_ns() - 10000000, &fn), REASON_NONE);
	assert_string_equal(fn, "third");
	/* Written anew: the marks are of another text. */
	jit_testing_write(path, "5000 10 fourth\n5000 10 fifth\n5000 10 sixth\n8000 10 more\n");
	assert_int_equal(name_first(&j, &files, between_ns, &fn), REASON_CODE_REUSED);
	perf_map_names_done(&j);
	perf_map_files_done(&files);
	unlink(path);
}

UNIT_TESTS(perf_map_read)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),    cmocka_unit_test(test_file),
		cmocka_unit_test(test_sparse), cmocka_unit_test(test_kept),
		cmocka_unit_test(test_load),   cmocka_unit_test(test_left),
		cmocka_unit_test(test_ages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
