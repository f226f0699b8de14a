/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for locks: variables of a mapped file, locks elsewhere, and files without symbols. */
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/locks/lock_names.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/symbols/specimen_testing.h"
#include "tests/unit/consumer/testing/report_testing.h"

/* The specimens that the build hands over, in this order. */
enum specimen { PIE, STRIPPED, SPECIMENS };

static char *paths[SPECIMENS];
static char self[4096];

struct shelf {
	char books[40];
	uint32_t lock;
};

struct shelf lock_names_test_shelf = { .books = "x" };
uint32_t lock_names_test_word;

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;
static struct lock_waited items[LOCK_WAITS_NAMED + 1];
static struct lock_waits waits;

static int find_code(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct lock_place *place = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		place->code_address = info->dlpi_addr + p->p_vaddr;
		place->code_offset = p->p_offset;
		return 1;
	}
	return 1;
}

/* Where this program has its code, in a module of its own file. */
static struct lock_place place_here(struct symbols *s)
{
	struct lock_place place = { .module = module_of(s, self) };

	dl_iterate_phdr(find_code, &place);
	return place;
}

static struct session_result *new_session(void)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");

	s->signals[SIGNAL_LOCK] = signals_new(SIGNAL_LOCK, &host, &target);
	assert_non_null(s->signals[SIGNAL_LOCK]);
	waits = (struct lock_waits){ .items = items };
	s->signals[SIGNAL_LOCK]->evidence = &waits;
	report_testing_begin(1u << 20, 8192, 12);
	return s;
}

static struct lock_waited *add_lock(const void *address, const struct lock_place *place)
{
	struct lock_waited *l = &items[waits.count++];

	*l = (struct lock_waited){ .lock = { .address = (uint64_t)(uintptr_t)address, .tgid = 7 },
				   .locks = 1 };
	if (place)
		l->place = *place;
	return l;
}

static void expect_words(const struct lock_name *name, const char *said)
{
	char text[256];

	lock_names_say(name, text, sizeof(text));
	assert_string_equal(text, said);
}

/* Variables are named with the offset in them, and addresses outside of the file's data are not. */
static void test_variables(void **state)
{
	struct session_result *s = new_session();
	const struct lock_place here = place_here(report_testing_symbols);
	_cleanup_free_ struct lock_name *names = NULL;
	int on_stack;

	add_lock(&lock_names_test_shelf.lock, &here);
	add_lock(&on_stack, &here)->memory.kind = LOCK_MEMORY_ANONYMOUS;
	add_lock(&lock_names_test_word, &here)->memory.kind = LOCK_MEMORY_ANONYMOUS;
	names = lock_names_read(s, report_testing_symbols);
	assert_string_equal(names[0].symbol, "lock_names_test_shelf");
	assert_int_equal(names[0].offset, offsetof(struct shelf, lock));
	assert_string_equal(names[0].module, self);
	assert_null(names[0].memory);
	expect_words(&names[0], "lock lock_names_test_shelf in consumer_evidence_test");
	assert_null(names[1].module);
	assert_null(names[1].symbol);
	assert_non_null(names[1].memory);
	/* The kernel maps .bss as it maps anonymous memory. */
	assert_string_equal(names[2].symbol, "lock_names_test_word");
	assert_null(names[2].memory);
	session_result_free(s);
}

/* A stripped file, one that has gone, and one that is another by now. */
static void test_reasons(void **state)
{
	struct session_result *s = new_session();
	struct lock_place here = place_here(report_testing_symbols), gone = here, other = here;
	_cleanup_free_ struct lock_name *names = NULL;
	struct file_identity identity = { .device = 1, .inode = 1 };
	struct module *m;
	uint8_t id[BUILD_ID_BYTES] = { 1, 2, 3 };

	assert_int_equal(
		symbols_module(report_testing_symbols, &identity, "/nonexistent", false, &m), 0);
	gone.module = m;
	add_lock(&lock_names_test_word, &gone)->memory.kind = LOCK_MEMORY_FILE;
	m = module_of(report_testing_symbols, paths[PIE]);
	symbols_learn_build_id(report_testing_symbols, m, id);
	other.module = m;
	add_lock(&lock_names_test_word, &other);
	names = lock_names_read(s, report_testing_symbols);
	assert_null(names[0].module);
	assert_string_equal(names[0].reason, "no_file");
	expect_words(&names[0], "one lock in the file");
	assert_null(names[1].module);
	assert_string_equal(names[1].reason, "other_file");
	expect_words(&names[1], "one lock");
	session_result_free(s);
}

/* Sets where a file at address 0 has its code, and returns the last address of its data. */
static uint64_t find_data(const char *path, struct lock_place *place)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t last = 0;
	ElfW(Ehdr) header;
	ElfW(Phdr) p;

	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	for (int i = 0; i < header.e_phnum; i++) {
		off_t at = (off_t)(header.e_phoff + (size_t)i * sizeof(p));

		assert_int_equal(pread(fd, &p, sizeof(p), at), sizeof(p));
		if (p.p_type == PT_LOAD && p.p_flags & PF_X) {
			place->code_address = p.p_vaddr;
			place->code_offset = p.p_offset;
		}
		if (p.p_type == PT_LOAD && p.p_flags & PF_W)
			last = p.p_vaddr + p.p_memsz - 1;
	}
	assert_true(last);
	return last;
}

/* For a file without .symtab the line has that the lock is in its data, and why it has no name. */
static void test_stripped(void **state)
{
	struct session_result *s = new_session();
	struct lock_place place = { .module = module_of(report_testing_symbols, paths[STRIPPED]) };
	uint64_t at = find_data(paths[STRIPPED], &place);
	_cleanup_free_ struct lock_name *names = NULL;

	add_lock((const void *)(uintptr_t)at, &place);
	names = lock_names_read(s, report_testing_symbols);
	assert_string_equal(names[0].module, paths[STRIPPED]);
	assert_null(names[0].symbol);
	assert_string_equal(names[0].reason, "stripped");
	session_result_free(s);
}

/* Locks of several modules keep their own names, however they stand; the rest has none. */
static void test_many(void **state)
{
	struct session_result *s = new_session();
	const struct lock_place here = place_here(report_testing_symbols);
	struct lock_place other = here;
	_cleanup_free_ struct lock_name *names = NULL;
	struct module *m;

	assert_int_equal(symbols_module(report_testing_symbols,
					&(struct file_identity){ .device = 1, .inode = 1 },
					"/nonexistent", false, &m),
			 0);
	other.module = m;
	for (int i = 0; i < LOCK_WAITS_NAMED; i++)
		add_lock(&lock_names_test_shelf.books[i % 40], i % 2 ? &here : &other);
	*add_lock(NULL, NULL) = (struct lock_waited){ .locks = 9 };
	names = lock_names_read(s, report_testing_symbols);
	for (int i = 0; i < LOCK_WAITS_NAMED; i++) {
		if (i % 2 == 0) {
			assert_string_equal(names[i].reason, "no_file");
			continue;
		}
		assert_string_equal(names[i].symbol, "lock_names_test_shelf");
		assert_ptr_equal(names[i].symbol, names[i].text);
		assert_int_equal(names[i].offset, i % 40);
	}
	assert_null(names[LOCK_WAITS_NAMED].module);
	assert_null(names[LOCK_WAITS_NAMED].memory);
	session_result_free(s);
}

/* What a lock lies in that is no variable, in words. */
static void test_memory(void **state)
{
	static const struct {
		struct lock_memory memory;
		const char *said;
	} rows[] = {
		{ { .kind = LOCK_MEMORY_UNKNOWN }, "one lock" },
		{ { .kind = LOCK_MEMORY_ANONYMOUS }, "one lock in anonymous memory" },
		{ { .kind = LOCK_MEMORY_ANONYMOUS, .name = "arena" },
		  "one lock in anonymous memory named arena" },
		{ { .kind = LOCK_MEMORY_HEAP, .offset = 64 }, "one lock on the heap" },
		{ { .kind = LOCK_MEMORY_STACK, .tid = 81 }, "one lock on the stack" },
		{ { .kind = LOCK_MEMORY_SHARED, .inode = 5, .name = "memfd:queue" },
		  "one lock in shared memory memfd:queue" },
		{ { .kind = LOCK_MEMORY_FILE, .inode = 5, .name = "table" },
		  "one lock in the file table" },
		{ { .kind = LOCK_MEMORY_KINDS_ }, "one lock" },
	};
	struct session_result *s = new_session();
	_cleanup_free_ struct lock_name *names = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		add_lock(NULL, NULL)->memory = rows[i].memory;
	names = lock_names_read(s, report_testing_symbols);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect_words(&names[i], rows[i].said);
	expect_words(NULL, "one lock");
	session_result_free(s);
}

/* Without locks, or without the signal, there is nothing to name. */
static void test_none(void **state)
{
	struct session_result *s = new_session();

	assert_null(lock_names_read(s, report_testing_symbols));
	s->signals[SIGNAL_LOCK]->evidence = NULL;
	assert_null(lock_names_read(s, report_testing_symbols));
	session_result_free(s);
}

#define EACH(test) \
	cmocka_unit_test_setup_teardown(test, report_testing_setup, report_testing_teardown)

UNIT_TESTS(lock_names)
{
	const struct CMUnitTest tests[] = {
		EACH(test_variables), EACH(test_reasons), EACH(test_stripped),
		EACH(test_many),      EACH(test_memory),  EACH(test_none),
	};
	int r;

	if (argc != 1 + SPECIMENS || !realpath("/proc/self/exe", self)) {
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
