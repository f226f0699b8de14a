/* SPDX-License-Identifier: BSD-2-Clause */
/* module_file_test.c: files that the host's path does not give, through a broker. */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "consumer/symbols/build_ids.h"
#include "consumer/symbols/symbols.h"
#include "shared/elf/reason.h"
#include "tests/unit/consumer/symbols/specimen_testing.h"

enum specimen { PIE, STRIPPED, UUID, SPECIMENS };

static char *paths[SPECIMENS];

/* A broker in this process: what it would open, and how often it was asked. */
struct lender {
	const char *path;
	unsigned int asked, from_start; /* of them: for the place that starts at 0x1000 */
};

static int lend(void *context, const struct process_key *process, uint64_t start, uint64_t end,
		int *ret_fd)
{
	struct lender *l = context;
	int fd;

	l->asked++;
	l->from_start += start == 0x1000 && end == 0x2000 && process->tgid == 7;
	if (!l->path || start != 0x1000)
		return -EACCES;
	fd = open(l->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	*ret_fd = fd;
	return 0;
}

/* A module with the specimen's numbers, at a path that leads nowhere on the host. */
static struct module *unreachable(struct symbols *s, const char *path, const char *as)
{
	struct module *m;
	struct file_identity identity;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	identity = elf_file_identity(&st);
	assert_int_equal(symbols_module(s, &identity, as, false, &m), 0);
	return m;
}

static void place(struct symbols *s, struct module *m, uint64_t start)
{
	symbols_place(s, m, &(struct process_key){ .tgid = 7, .start_ns = 9 }, start,
		      start + 0x1000);
}

static void test_borrowed(void **state)
{
	static const char *const paths_inside[] = { "/in/the/container", "/gone (deleted)",
						    "/dev/null" };
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "main", &size);

	for (size_t i = 0; i < ARRAY_SIZE(paths_inside); i++) {
		struct lender lender = { .path = paths[PIE] };
		struct symbols *s = fresh(1 << 20);
		struct module *m = unreachable(s, paths[PIE], paths_inside[i]);
		struct symbols_stats stats;
		struct symbol_name name;

		symbols_set_borrow(s, lend, &lender);
		place(s, m, 0x1000);
		place(s, m, 0x5000); /* asked first: seen last */
		assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
		assert_string_equal(name.fn, "main");
		assert_int_equal(m->build_id_bytes, 20);
		assert_int_equal(lender.asked, 2);
		assert_int_equal(lender.from_start, 1);
		symbols_stats(s, &stats);
		assert_int_equal(stats.files_borrowed, 1);
		symbols_free(s);
	}
}

/* Refused, or another file by now: the reason of the host stays, and it is not asked every time. */
static void test_not_borrowed(void **state)
{
	struct lender lender = { .path = NULL };
	struct symbols *s = fresh(1 << 20);
	struct module *m = unreachable(s, paths[PIE], "/in/the/container");

	symbols_set_borrow(s, lend, &lender);
	expect_why(s, m, "no_file");
	assert_int_equal(lender.asked, 0); /* it is mapped nowhere */
	symbols_free(s);
	s = fresh(1 << 20);
	symbols_set_borrow(s, lend, &lender);
	m = unreachable(s, paths[PIE], "/gone (deleted)");
	place(s, m, 0x1000);
	expect_why(s, m, "deleted");
	expect_why(s, m, "deleted");
	assert_int_equal(lender.asked, 1);
	lender.path = paths[UUID];
	m = unreachable(s, paths[PIE], "/in/the/container");
	place(s, m, 0x1000);
	expect_why(s, m, "no_file");
	assert_int_equal(lender.asked, 2);
	symbols_free(s);
}

/*
 * A memory file was never at any path: a restart of its process would not help. The broker refuses
 * it and is not asked.
 */
static void test_memory_file(void **state)
{
	struct lender lender = { .path = NULL };
	struct symbols *s = fresh(1 << 20);
	struct module *m = unreachable(s, paths[PIE], "/memfd:runc_cloned (deleted)");

	symbols_set_borrow(s, lend, &lender);
	place(s, m, 0x1000);
	expect_why(s, m, "memory_file");
	assert_int_equal(lender.asked, 0);
	assert_null(strstr(reason_help("memory_file"), "restart"));
	symbols_free(s);
}

/* The kernel's word on the build-id decides, on the host's file and on the broker's. */
static void test_learned(void **state)
{
	static const uint8_t other[BUILD_ID_BYTES] = { 1, 2, 3 };
	struct lender lender = { .path = paths[UUID] };
	struct symbols *s = fresh(1 << 20);
	struct module *m = module_of(s, paths[UUID]);
	uint8_t id[BUILD_ID_BYTES] = { 0 };
	struct symbol_name name;
	uint32_t size;

	symbols_set_borrow(s, lend, &lender);
	place(s, m, 0x1000);
	symbols_learn_build_id(s, m, other);
	expect_why(s, m, "other_file");
	assert_int_equal(lender.asked, 1);
	assert_memory_equal(m->build_id, other, BUILD_ID_BYTES);
	symbols_free(s);
	s = fresh(1 << 20);
	m = module_of(s, paths[UUID]);
	symbols_user(s, m, 64, false, &name);
	memcpy(id, m->build_id, m->build_id_bytes);
	symbols_free(s);
	s = fresh(1 << 20);
	m = module_of(s, paths[UUID]);
	symbols_learn_build_id(s, m, id);
	symbols_learn_build_id(s, m, other);
	assert_int_equal(m->build_id_bytes, 16);
	assert_int_equal(symbols_user(s, m, offset_of(paths[UUID], "main", &size), false, &name),
			 0);
	symbols_free(s);
}

/* A frame of which only the build-id is known, of a file in a container. */
static void test_build_id_borrowed(void **state)
{
	struct lender lender = { .path = paths[PIE] };
	struct symbols *s = fresh(1 << 20);
	struct module *file = module_of(s, paths[PIE]), *m;
	uint8_t id[BUILD_ID_BYTES] = { 0 };
	struct symbol_name name;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "main", &size);

	assert_int_equal(symbols_user(s, file, offset, false, &name), 0);
	memcpy(id, file->build_id, file->build_id_bytes);
	symbols_free(s);
	s = fresh(1 << 20);
	symbols_set_borrow(s, lend, &lender);
	file = unreachable(s, paths[PIE], "/in/the/container");
	place(s, file, 0x1000);
	assert_int_equal(symbols_module_by_build_id(s, id, &m), 0);
	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	assert_string_equal(name.fn, "main");
	assert_ptr_equal(m->resolved, file);
	id[0] ^= 1;
	assert_int_equal(symbols_module_by_build_id(s, id, &m), 0);
	lender.asked = 0;
	expect_why(s, m, "unknown_build_id");
	expect_why(s, m, "unknown_build_id");
	assert_int_equal(lender.asked, 0);
	symbols_free(s);
}

/* Containers have their own copies of a file: one table serves all that are equal to the kernel. */
static void test_one_table_for_copies(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *here = module_of(s, paths[PIE]), *there;
	uint8_t id[BUILD_ID_BYTES] = { 0 };
	struct symbols_stats stats;
	struct symbol_name name;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "main", &size);

	assert_int_equal(symbols_user(s, here, offset, false, &name), 0);
	memcpy(id, here->build_id, here->build_id_bytes);
	assert_int_equal(symbols_module(s, &(struct file_identity){ .device = 77, .inode = 77 },
					"/in/a/container", false, &there),
			 0);
	expect_why(s, there, "no_file");
	symbols_learn_build_id(s, there, id);
	assert_int_equal(symbols_user(s, there, offset, false, &name), 0);
	assert_string_equal(name.fn, "main");
	symbols_stats(s, &stats);
	assert_int_equal(stats.files_read, 1);
	id[3] ^= 1;
	assert_int_equal(symbols_module(s, &(struct file_identity){ .device = 78, .inode = 78 },
					"/in/a/container", false, &there),
			 0);
	symbols_learn_build_id(s, there, id);
	expect_why(s, there, "no_file");
	symbols_free(s);
}

/* Writes a copy of the specimen, with `from` replaced by `to` (of its length) in all of it. */
static struct module *copy_of(struct symbols *s, const char *from, const char *to, char *path)
{
	_cleanup_free_ char *data = NULL;
	size_t bytes, length = strlen(from);
	struct module *m;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &data, &bytes), 0);
	for (size_t i = 0; i + length <= bytes; i++)
		if (memcmp(data + i, from, length) == 0)
			memcpy(data + i, to, length);
	assert_int_equal(write(fd, data, bytes), bytes);
	close(fd);
	m = module_of(s, path);
	return m;
}

/* Two files of one build-id: a copy shares the table, another program does not. */
static void test_other_file_of_one_id(void **state)
{
	char same[] = "/tmp/trocar-copy-XXXXXX", other[] = "/tmp/trocar-copy-XXXXXX";
	struct symbols *s = fresh(1 << 20);
	struct module *here = module_of(s, paths[PIE]), *m, *by_id;
	uint8_t id[BUILD_ID_BYTES] = { 0 };
	struct symbols_stats stats;
	struct symbol_name name;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "specimen_local", &size);

	assert_int_equal(symbols_user(s, here, offset, false, &name), 0);
	memcpy(id, here->build_id, here->build_id_bytes);
	assert_int_equal(symbols_module_by_build_id(s, id, &by_id), 0);
	assert_int_equal(symbols_user(s, by_id, offset, false, &name), 0);
	m = copy_of(s, "specimen_local", "specimen_local", same);
	symbols_learn_build_id(s, m, id);
	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	assert_string_equal(name.fn, "specimen_local");
	assert_int_equal(symbols_user(s, by_id, offset, false, &name), 0);
	symbols_stats(s, &stats);
	assert_int_equal(stats.files_read, 1);
	m = copy_of(s, "specimen_local", "specimen_other", other);
	symbols_learn_build_id(s, m, id);
	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	assert_string_equal(name.fn, "specimen_other");
	/* Nothing identifies which of the two it is. */
	expect_why(s, by_id, "unknown_build_id");
	symbols_free(s);
	unlink(same);
	unlink(other);
}

/* A short build-id was made by hand, and proves nothing about another file. */
static void test_short_id(void **state)
{
	uint8_t id[BUILD_ID_BYTES] = { 1, 2, 3 };
	char path[] = "/tmp/trocar-copy-XXXXXX";
	struct symbols *s = fresh(1 << 20);
	struct module *m, *by_id;

	assert_false(build_ids_tell(id, 8));
	assert_false(build_ids_tell(id, 0));
	id[7] = 1;
	assert_true(build_ids_tell(id, 8));
	assert_true(build_ids_tell(id, BUILD_ID_BYTES));
	id[7] = 0;
	m = copy_of(s, "specimen_local", "specimen_local", path);
	symbols_learn_build_id(s, m, id);
	assert_int_equal(symbols_module_by_build_id(s, id, &by_id), 0);
	expect_why(s, by_id, "unknown_build_id");
	symbols_free(s);
	unlink(path);
}

UNIT_TESTS(module_file)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_borrowed),
		cmocka_unit_test(test_not_borrowed),
		cmocka_unit_test(test_memory_file),
		cmocka_unit_test(test_learned),
		cmocka_unit_test(test_build_id_borrowed),
		cmocka_unit_test(test_one_table_for_copies),
		cmocka_unit_test(test_other_file_of_one_id),
		cmocka_unit_test(test_short_id),
	};

	int r;

	if (argc != 1 + SPECIMENS) {
		fprintf(stderr, "usage: %s SPECIMEN...\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < SPECIMENS; i++)
		paths[i] = realpath(argv[1 + i], NULL);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < SPECIMENS; i++)
		free(paths[i]);
	return r;
}
