/* SPDX-License-Identifier: BSD-2-Clause */
/* Files compiled on their own thread into memory that stands for the kernel side's maps. */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/unwind/store/unwind_files.h"
#include "shared/tools/io.h"
#include "tests/unit/consumer/unwind/testing/own_program_testing.h"

#define ELEMENTS (1u << 20)

static struct unwind_maps maps;
static uint64_t *pool;
static struct symbols *symbols;
static struct unwind_files *files;
static char dir[64];

static int setup(void **state)
{
	maps = (struct unwind_maps){
		.pool_fd = own_memory(ELEMENTS * 8, (void **)&pool),
		.pool_elements = ELEMENTS,
		.rules = calloc(UNWIND_RULES_MAX, sizeof(*maps.rules)),
		.files = calloc(UNWIND_FILES_MAX, sizeof(*maps.files)),
	};
	strcpy(dir, "/tmp/trocar-files-XXXXXX");
	if (!mkdtemp(dir) || !maps.rules || !maps.files)
		return -1;
	return symbols_new(1 << 20, NULL, &symbols);
}

static int teardown(void **state)
{
	unwind_files_free(files);
	files = NULL;
	symbols_free(symbols);
	munmap(pool, ELEMENTS * 8);
	close(maps.pool_fd);
	free(maps.rules);
	free(maps.files);
	return rmdir(dir);
}

static void start(uint32_t elements)
{
	maps.pool_elements = elements;
	assert_int_equal(unwind_files_new(&maps, symbols, &files), 0);
}

static struct module *module_of(const char *path)
{
	return own_module_of(symbols, path);
}

static void wait_news(void)
{
	struct pollfd p = { .fd = unwind_files_fd(files), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 20000), 1);
	unwind_files_news(files);
}

/* Asks until it is settled. */
static int hold(struct module *m, uint32_t *ret_number)
{
	int r;

	while ((r = unwind_files_hold(files, m, ret_number)) == -EAGAIN)
		wait_news();
	return r;
}

static char *self(void)
{
	static char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(n > 0);
	path[n] = 0;
	return path;
}

/* Another file of the same bytes, in `dir`. */
static void copy_self(const char *to, char *ret_path)
{
	char *data;
	size_t bytes;
	FILE *file;

	sprintf(ret_path, "%s/%s", dir, to);
	assert_int_equal(io_read_file(-1, self(), 64u << 20, &data, &bytes), 0);
	file = fopen(ret_path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	fclose(file);
	free(data);
}

static void test_rows(void **state)
{
	struct unwind_module m;
	const struct unwind_place *place;
	const struct unwind_row *rows;
	uint32_t number, again;

	start(ELEMENTS);
	assert_int_equal(unwind_files_hold(files, module_of(self()), &number), -EAGAIN);
	assert_int_equal(hold(module_of(self()), &number), 0);
	assert_int_equal(hold(module_of(self()), &again), 0);
	assert_int_equal(number, again);
	place = &maps.files[number].place;
	assert_true(place->row_count > 10 && place->page_count > 1);
	rows = (const struct unwind_row *)(pool + place->rows);
	for (uint32_t i = 1; i < place->row_count; i++)
		assert_true(rows[i - 1].pc < rows[i].pc);
	assert_int_equal(maps.rules[UNWIND_RULE_END].cfa, UNWIND_CFA_END);
	for (uint32_t i = 0; i < place->row_count; i++)
		if (rows[i].rule > UNWIND_RULE_END)
			assert_in_range(maps.rules[rows[i].rule].cfa, UNWIND_CFA_SP,
					UNWIND_CFA_PLT);
	assert_true(unwind_files_module(files, 0, &m));
	assert_null(m.reason);
	assert_int_equal(m.rows, place->row_count);
	assert_false(unwind_files_module(files, 1, &m));
	unwind_files_release(files, number);
	unwind_files_release(files, number);
}

/* One build is compiled once, wherever its file lies. */
static void test_same_build(void **state)
{
	struct unwind_files_stats stats;
	uint32_t one, two;
	char path[128];

	start(ELEMENTS);
	copy_self("copy", path);
	assert_int_equal(hold(module_of(self()), &one), 0);
	assert_int_equal(hold(module_of(path), &two), 0);
	assert_int_equal(one, two);
	unwind_files_stats(files, &stats);
	assert_int_equal(stats.compiled, 1);
	assert_int_equal(stats.modules, 2);
	unlink(path);
}

/* A missing file has the reason, and is not tried again at once. */
static void test_failures(void **state)
{
	uint32_t number;
	char path[128];
	struct module *m;
	FILE *file;

	start(ELEMENTS);
	sprintf(path, "%s/text", dir);
	file = fopen(path, "we");
	fputs("no program at all", file);
	fclose(file);
	m = module_of(path);
	unlink(path);
	assert_int_equal(hold(m, &number), -EACCES);
	assert_string_equal(unwind_files_why(files, m), "no_file");
	assert_string_equal(symbols_rowless(m), "no_file");
	assert_int_equal(unwind_files_hold(files, m, &number), -EACCES);
	assert_int_equal(symbols_module(symbols, &(struct file_identity){ 0 }, "[anon]", true, &m),
			 0);
	assert_string_equal(unwind_files_why(files, m), "anonymous");
}

static bool is_pending(void *context, const struct module *m)
{
	return unwind_files_is_pending(files, m);
}

/* A file of a forgotten module is known no more, and compiled again for another module. */
static void test_forget(void **state)
{
	struct unwind_module first;
	struct module *m;
	uint32_t number;

	start(ELEMENTS);
	assert_int_equal(hold(module_of(self()), &number), 0);
	unwind_files_release(files, number);
	for (uint64_t i = 0; i < SYMBOLS_MODULES_KEEP; i++) {
		const struct file_identity other = { .inode = 1, .generation = (uint32_t)i + 2 };

		assert_int_equal(symbols_module(symbols, &other, "/later", false, &m), 0);
		m->released_ns = 9;
	}
	assert_true(unwind_files_module(files, 0, &first));
	assert_false(is_pending(NULL, module_of(self())));
	assert_int_equal(symbols_forget(symbols, 2, is_pending, NULL), 1);
	unwind_files_forget(files);
	symbols_sweep(symbols);
	assert_false(unwind_files_module(files, 0, &first));
	assert_int_equal(hold(module_of(self()), &number), 0);
	unwind_files_release(files, number);
}

/* Held rows stay; builds without a holder make room. */
static void test_pool(void **state)
{
	char path[PATH_MAX];
	struct module *own = module_of(self()), *shell;
	struct unwind_files_stats stats;
	uint32_t number, other, room;

	assert_non_null(realpath("/bin/sh", path));
	shell = module_of(path);
	start(ELEMENTS);
	assert_int_equal(hold(own, &number), 0);
	unwind_files_stats(files, &stats);
	room = stats.pool_used;
	unwind_files_free(files);

	/* Room for the larger one alone. */
	start(ELEMENTS);
	assert_int_equal(hold(shell, &other), 0);
	unwind_files_stats(files, &stats);
	room = stats.pool_used > room ? stats.pool_used : room;
	unwind_files_free(files);

	start(room);
	assert_int_equal(hold(own, &number), 0);
	assert_int_equal(hold(shell, &other), -ENOSPC);
	assert_string_equal(unwind_files_why(files, shell), "pool_full");
	assert_string_equal(symbols_rowless(shell), "pool_full");
	unwind_files_free(files);

	start(room);
	assert_int_equal(hold(own, &number), 0);
	unwind_files_release(files, number);
	assert_int_equal(hold(shell, &other), 0);
	unwind_files_stats(files, &stats);
	assert_int_equal(stats.evicted, 1);
	unwind_files_release(files, other);
	/* And back: an evicted file is compiled anew. */
	assert_int_equal(hold(own, &number), 0);
}

static void test_grace(void **state)
{
	uint64_t ticket;

	start(ELEMENTS);
	ticket = unwind_files_grace(files);
	while (unwind_files_graced(files) < ticket)
		wait_news();
	assert_int_equal(unwind_files_grace(files), ticket + 1);
}

UNIT_TESTS(unwind_files)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_build, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pool, setup, teardown),
		cmocka_unit_test_setup_teardown(test_grace, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
