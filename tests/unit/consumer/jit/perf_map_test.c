/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "consumer/jit/perf_map.h"
#include "consumer/jit/perf_map_names.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/consumer/symbols/jit_testing.h"

static struct jit_map *parse(const char *text)
{
	struct jit_map *map;

	assert_int_equal(perf_map_parse(text, strlen(text), &map), 0);
	return map;
}

static void expect(const struct jit_map *map, uint64_t address, const char *name, uint64_t start)
{
	uint64_t found = 0;
	const char *fn = perf_map_find(map, address, &found);

	if (!name) {
		assert_null(fn);
		return;
	}
	assert_non_null(fn);
	assert_string_equal(fn, name);
	assert_int_equal(found, start);
}

static void test_lines(void **state)
{
	struct jit_map *map = parse("7f0000001000 80 LazyCompile:*foo /app/index.js:10\n"
				    "0x7F0000002000 0x10 Builtin:Call");

	assert_true(perf_map_bytes(map) > 0);
	expect(map, 0x7f0000000fff, NULL, 0);
	expect(map, 0x7f0000001000, "LazyCompile:*foo /app/index.js:10", 0x7f0000001000);
	expect(map, 0x7f000000107f, "LazyCompile:*foo /app/index.js:10", 0x7f0000001000);
	expect(map, 0x7f0000001080, NULL, 0);
	expect(map, 0x7f000000200f, "Builtin:Call", 0x7f0000002000);
	expect(map, UINT64_MAX, NULL, 0);
	perf_map_free(map);
	map = parse("");
	expect(map, 1, NULL, 0);
	perf_map_free(map);
}

/* Code moves and places are used again: the last line about an address counts. */
static void test_newest(void **state)
{
	struct jit_map *map = parse("1000 100 old\n1000 40 new\n1020 200 newest\n");

	expect(map, 0x1000, "new", 0x1000);
	expect(map, 0x1030, "newest", 0x1020);
	expect(map, 0x1100, "newest", 0x1020);
	perf_map_free(map);
}

/* Where small functions have lived, a large new one covers their entries, however many they are. */
static void test_newest_above_many(void **state)
{
	_cleanup_free_ char *text = malloc(1 << 16);
	struct jit_map *map;
	size_t at = 0;

	assert_non_null(text);
	for (unsigned int i = 0; i < 200; i++)
		at += (size_t)snprintf(text + at, (1 << 16) - at, "%x 20 small_%u\n",
				       0x100000 + i * 0x20, i);
	snprintf(text + at, (1 << 16) - at, "100000 4000 living_now\n");
	map = parse(text);
	for (uint64_t address = 0x100000; address < 0x104000; address += 0x10)
		expect(map, address, "living_now", 0x100000);
	expect(map, 0x104000, NULL, 0);
	perf_map_free(map);
}

#define RANDOM_LINES 400
#define RANDOM_SPACE 0x800

/* Each address has the function of the last line that holds it, as a search of all lines finds. */
static void test_newest_of_random(void **state)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		char text[RANDOM_LINES * 24], name[16];
		uint64_t starts[RANDOM_LINES], sizes[RANDOM_LINES], random = seed;
		struct jit_map *map;
		size_t at = 0;

		for (unsigned int i = 0; i < RANDOM_LINES; i++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			starts[i] = 0x10000 + (random >> 33) % RANDOM_SPACE;
			sizes[i] = 1 + (random >> 48) % (i % 7 ? 16 : 300);
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%" PRIx64 " %" PRIx64 " f%u\n", starts[i], sizes[i],
					       i);
		}
		map = parse(text);
		for (uint64_t a = 0xfff0; a < 0x10000 + RANDOM_SPACE + 400; a++) {
			int i = RANDOM_LINES - 1;

			while (i >= 0 && a - starts[i] >= sizes[i])
				i--;
			snprintf(name, sizeof(name), "f%d", i);
			expect(map, a, i < 0 ? NULL : name, i < 0 ? 0 : starts[i]);
		}
		perf_map_free(map);
	}
}

static void test_malformed(void **state)
{
	static const char text[] = "\n \n1\n1 2\n1 2 \nzz 1 a\n1 zz a\n"
				   "11112222333344445 1 a\nffffffffffffffff 2 a\n1 0 a\n-1 1 a\n"
				   "5000 10 good\n";
	/* What the lines would hold if one were taken, whole, cut or wrapped. */
	static const uint64_t refused[] = {
		0, 1, 2, 0x1111222233334444, 0x1112222333344445, UINT64_MAX - 1, UINT64_MAX
	};
	struct jit_map *map = parse(text);

	expect(map, 0x5000, "good", 0x5000);
	expect(map, 0x5010, NULL, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		expect(map, refused[i], NULL, 0);
	perf_map_free(map);
}

static void test_walls(void **state)
{
	size_t lines = PERF_MAP_SYMBOLS_MAX + 1000, space = lines * 20 + 2 * PERF_MAP_NAME_BYTES;
	uint64_t oldest = 0x1000 + lines - (PERF_MAP_SYMBOLS_MAX - 1);
	_cleanup_free_ char *text = malloc(space);
	struct jit_map *map;
	uint64_t start;
	size_t at = 0;

	assert_non_null(text);
	for (size_t i = 0; i < lines; i++)
		at += (size_t)snprintf(text + at, space - at, "%zx 1 a\n", 0x1000 + i);
	at += (size_t)snprintf(text + at, space - at, "10 1 ");
	memset(text + at, 'x', PERF_MAP_NAME_BYTES + 100);
	at += PERF_MAP_NAME_BYTES + 100;
	assert_int_equal(perf_map_parse(text, at, &map), 0);
	/* The oldest are left out: the long name and all but one of the newest lines are kept. */
	expect(map, 0x1000, NULL, 0);
	expect(map, oldest - 1, NULL, 0);
	expect(map, oldest, "a", oldest);
	expect(map, 0x1000 + lines - 1, "a", 0x1000 + lines - 1);
	assert_int_equal(strlen(perf_map_find(map, 0x10, &start)), PERF_MAP_NAME_BYTES - 1);
	assert_true(perf_map_is_cut(map));
	perf_map_free(map);
}

/* Opens and reads it. */
static enum reason read_map(const char *folder, const struct process_key *key,
			    struct jit_map **ret_map)
{
	_cleanup_close_ int fd = -1;
	enum reason reason = perf_map_open(folder, key, &fd);

	return reason == REASON_NONE ? perf_map_load(fd, key, ret_map) : reason;
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
	assert_true(perf_map_is_cut(map));
	expect(map, 0x7f5000, "good", 0x7f5000);
	expect(map, 0x7f5010, NULL, 0);
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

/* Of a map that is longer than what is read of it, a function without a name may be in the rest. */
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
	assert_int_equal(perf_map_load(fds[0], &self, &map), REASON_NOT_REGULAR);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(perf_map_load(fds[0], &self, &map), REASON_READ_ERROR);
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
	assert_int_equal(perf_map_open(folder, &key, &fd), REASON_NONE);
	assert_int_equal(futimens(fd, old), 0);
	assert_int_equal(perf_map_load(fd, &key, &map), REASON_OTHER_FILE);
	close(fd);
	assert_int_equal(perf_map_open(folder, &key, &fd), REASON_OTHER_FILE);
	jit_testing_write(path, "6000 10 new\n");
	assert_int_equal(read_map(folder, &key, &map), REASON_NONE);
	expect(map, 0x6000, "new", 0x6000);
	perf_map_free(map);
	unlink(path);
	rmdir(folder);
}

UNIT_TESTS(perf_map)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_above_many),
		cmocka_unit_test(test_newest_of_random),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_walls),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
