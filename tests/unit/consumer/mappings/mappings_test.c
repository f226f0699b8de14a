/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/mappings/mappings_read.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/consumer/symbols/records_testing.h"

#define START_NS 777

struct fixture {
	struct symbols *symbols;
	struct control control;
	char path[32];
	FILE *file;
	uint32_t tgid;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->path, sizeof(f->path), "/tmp/mappings_test.XXXXXX");
	f->file = fdopen(mkstemp(f->path), "w");
	f->tgid = (uint32_t)getpid();
	f->control = (struct control){ .vma_tgid = 5, .vma_from = 6 };
	*state = f;
	return symbols_new(1 << 20, NULL, &f->symbols);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	symbols_free(f->symbols);
	free(f);
	return 0;
}

static void add(struct fixture *f, uint64_t start, uint64_t end, uint32_t flags, const char *path)
{
	records_file_mapping(f->file,
			     (struct mapping_record){ .start_ns = START_NS,
						      .start = start,
						      .end = end,
						      .file_offset = 0x1000,
						      .inode = path ? 9 : 0,
						      .device = path ? 8 : 0,
						      .tgid = f->tgid,
						      .flags = flags },
			     path);
}

static int read_all(struct fixture *f, struct mappings *ret_mappings)
{
	int r;

	fclose(f->file);
	f->file = NULL;
	r = mappings_read(f->path, &f->control, f->tgid, START_NS, f->symbols, ret_mappings);
	assert_int_equal(f->control.vma_tgid, 5);
	assert_int_equal(f->control.vma_from, 6);
	return r;
}

static void test_read(void **state)
{
	struct fixture *f = *state;
	const struct mapping *found;
	struct runtime runtime;
	struct mappings m;

	add(f, 0x7000, 0x9000, 0, "/usr/lib/libpython3.11.so.1.0");
	add(f, 0x1000, 0x3000, MAPPING_IS_EXE, "/usr/sbin/apache2");
	add(f, 0x9000, 0xa000, 0, "/srv/plugin.so (deleted)");
	add(f, 0xa000, 0xb000, MAPPING_ANON, NULL);
	add(f, 0xc000, 0xd000, MAPPING_VDSO, NULL);
	add(f, 0x1000, 0x3000, 0, "/usr/sbin/apache2");
	assert_int_equal(read_all(f, &m), 0);
	assert_int_equal(m.count, 5);
	assert_true(m.read_ns > 0);
	assert_string_equal(m.exe->path, "/usr/sbin/apache2");
	assert_null(mappings_find(&m, 0xfff));
	found = mappings_find(&m, 0x1000);
	assert_non_null(found);
	assert_ptr_equal(found->module, m.exe);
	assert_int_equal(mapping_offset(found, 0x2345), 0x2345);
	assert_null(mappings_find(&m, 0x3000));
	found = mappings_find(&m, 0x9fff);
	assert_string_equal(found->module->path, "/srv/plugin.so");
	assert_true(found->module->deleted);
	assert_true(mappings_find(&m, 0xa000)->module->anonymous);
	assert_string_equal(mappings_find(&m, 0xa000)->module->path, "[anon]");
	assert_string_equal(mappings_find(&m, 0xcfff)->module->path, "[vdso]");
	/* Below 4 GiB it is that of a process of 32 bits. */
	assert_int_equal(mappings_find(&m, 0xcfff)->module->identity.bytes, 0x1000);
	assert_null(mappings_find(&m, 0xd000));
	assert_null(mappings_find(&m, UINT64_MAX));
	mappings_runtime(&m, &runtime);
	assert_string_equal(runtime.name, "python");
	assert_string_equal(runtime.how, "library");
	mappings_done(&m);
	mappings_runtime(&m, &runtime);
	assert_null(runtime.name);
}

static void test_other_process(void **state)
{
	struct fixture *f = *state;
	struct mappings m;

	records_file_mapping(
		f->file,
		(struct mapping_record){ .start_ns = START_NS + 1, .end = 1, .tgid = f->tgid },
		NULL);
	assert_int_equal(read_all(f, &m), -ESRCH);
}

static void test_not_listed(void **state)
{
	struct fixture *f = *state;
	struct mappings m;

	assert_int_equal(read_all(f, &m), -EACCES);
	assert_int_equal(mappings_read(f->path, &f->control, UINT32_MAX, START_NS, f->symbols, &m),
			 -ESRCH);
	assert_int_equal(mappings_read("/nonexistent", &f->control, 1, 1, f->symbols, &m), -ENOENT);
}

static void test_malformed(void **state)
{
	struct fixture *f = *state;
	struct mappings m;

	add(f, 0x1000, 0x2000, 0, "/bin/x");
	add(f, 0x3000, 0x2000, 0, "/bin/x");
	assert_int_equal(read_all(f, &m), -EBADMSG);
}

static void test_half_a_record(void **state)
{
	struct fixture *f = *state;
	struct mappings m;

	add(f, 0x1000, 0x2000, 0, "/bin/x");
	fwrite("half", 4, 1, f->file);
	assert_int_equal(read_all(f, &m), -EBADMSG);
}

static void test_no_progress(void **state)
{
	struct fixture *f = *state;
	struct mappings m;

	add(f, 0x1000, 0x2000, 0, "/bin/x");
	add(f, 0, 0x2000, MAPPING_MORE, NULL);
	assert_int_equal(read_all(f, &m), -EBADMSG);
}

static void test_too_many(void **state)
{
	struct fixture *f = *state;
	struct mappings m;

	for (uint64_t i = 0; i < MAPPINGS_MAX + 10; i++)
		add(f, i * 0x1000, (i + 1) * 0x1000, 0, "/bin/x");
	assert_int_equal(read_all(f, &m), -EOVERFLOW);
	assert_int_equal(m.count, MAPPINGS_MAX);
	mappings_done(&m);
}

/* Answers two rounds through a FIFO, as the kernel side does for a process with many mappings. */
static void *answer_rounds(void *context)
{
	struct fixture *f = context;

	f->file = fopen(f->path, "we");
	add(f, 0x1000, 0x2000, MAPPING_IS_EXE, "/bin/x");
	add(f, 0, 0x5000, MAPPING_MORE, NULL);
	fclose(f->file);
	while (__atomic_load_n(&f->control.vma_from, __ATOMIC_RELAXED) != 0x5000)
		usleep(1000);
	f->file = fopen(f->path, "we");
	add(f, 0x6000, 0x7000, 0, "/lib/y");
	fclose(f->file);
	return NULL;
}

static void test_more(void **state)
{
	struct fixture *f = *state;
	struct mappings m;
	pthread_t thread;

	fclose(f->file);
	unlink(f->path);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer_rounds, f), 0);
	assert_int_equal(mappings_read(f->path, &f->control, f->tgid, START_NS, f->symbols, &m), 0);
	pthread_join(thread, NULL);
	assert_int_equal(m.count, 2);
	assert_string_equal(mappings_find(&m, 0x6000)->module->path, "/lib/y");
	mappings_done(&m);
}

/* An execve(2) between two rounds: half of one image and half of another is neither. */
static void test_two_images(void **state)
{
	struct mapping_record record = {
		.start_ns = START_NS, .start = 0x1000, .end = 0x2000, .inode = 9, .device = 8
	};
	struct fixture *f = *state;
	struct mappings m;

	record.tgid = f->tgid;
	record.image = 3;
	records_file_mapping(f->file, record, "/lib/x");
	record.start = 0x5000;
	record.end = 0x6000;
	record.image = 4;
	records_file_mapping(f->file, record, "/lib/y");
	assert_int_equal(read_all(f, &m), -ESTALE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_TESTS(mappings)
{
	const struct CMUnitTest tests[] = {
		TEST(test_read),      TEST(test_other_process), TEST(test_not_listed),
		TEST(test_malformed), TEST(test_half_a_record), TEST(test_no_progress),
		TEST(test_too_many),  TEST(test_more),		TEST(test_two_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
