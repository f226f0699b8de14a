/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "consumer/symbols/kernel_symbol_reader.h"
#include "consumer/symbols/symbols.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/symbols/records_testing.h"

#define CORE   0xffffffff81000000ULL
#define MODULE 0xffffffffc0000000ULL

static char path[] = "/tmp/ksyms_test.XXXXXX";

/* The kernel as it is now: its own function, and one of a module. */
static void write_ksyms(const char *core, const char *module)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	records_file_ksym(f, CORE, core, "");
	records_file_ksym(f, MODULE, module, "ext4");
	fclose(f);
}

static const char *find(struct ksyms *k, uint64_t address)
{
	const char *module = "", *fn;
	uint64_t start;

	fn = kernel_symbol_reader_find(k, address, &start, &module);
	return fn ? fn : "";
}

/* As if the table had been read that long ago. */
static void age(struct ksyms *k, uint64_t ns)
{
	k->read_ns -= ns;
}

/* The kernel's own code does not move: an old table serves, however old. */
static void test_core_does_not_age(void **state)
{
	struct ksyms k;

	write_ksyms("old", "old_module");
	assert_int_equal(kernel_symbol_reader_init(&k, path), 0);
	assert_string_equal(find(&k, CORE), "old");
	write_ksyms("new", "new_module");
	age(&k, SYMBOLS_KERNEL_AGE_NS + 1);
	kernel_symbol_reader_trim(&k);
	assert_string_equal(find(&k, CORE), "old");
	assert_null(k.held);
	kernel_symbol_reader_done(&k);
}

/* A module's place may be another's by then; the name that was given out stays until the trim. */
static void test_module_ages(void **state)
{
	const char *held;
	struct ksyms k;

	write_ksyms("core", "old_module");
	assert_int_equal(kernel_symbol_reader_init(&k, path), 0);
	held = find(&k, MODULE);
	write_ksyms("core", "new_module");
	age(&k, SYMBOLS_KERNEL_AGE_NS / 2);
	assert_ptr_equal(find(&k, MODULE), held);
	age(&k, SYMBOLS_KERNEL_AGE_NS / 2 + 1);
	assert_string_equal(find(&k, MODULE), "new_module");
	assert_string_equal(held, "old_module");
	/* Once between two trims. */
	write_ksyms("core", "newer_module");
	age(&k, SYMBOLS_KERNEL_AGE_NS + 1);
	assert_string_equal(find(&k, MODULE), "new_module");
	kernel_symbol_reader_trim(&k);
	assert_string_equal(find(&k, MODULE), "newer_module");
	kernel_symbol_reader_done(&k);
}

/* Where it can not be read again, the old name is the best there is. */
static void test_gone(void **state)
{
	struct ksyms k;

	write_ksyms("core", "module");
	assert_int_equal(kernel_symbol_reader_init(&k, path), 0);
	assert_string_equal(find(&k, MODULE), "module");
	assert_int_equal(unlink(path), 0);
	age(&k, SYMBOLS_KERNEL_AGE_NS + 1);
	assert_string_equal(find(&k, MODULE), "module");
	kernel_symbol_reader_forget(&k);
	assert_string_equal(find(&k, MODULE), "");
	kernel_symbol_reader_done(&k);
}

/* ---- BPF programs: two that the kernel lists, with another one between them that it does not */

#define FIRST  (MODULE + 0x100000)
#define SECOND (MODULE + 0x102000)

static char programs[] = "/tmp/bpf_code_test.XXXXXX";

/* The programs as they are now: both loaded at `load_ns` of CLOCK_MONOTONIC, the second maybe. */
static void write_programs(const char *first, const char *second, uint64_t load_ns)
{
	uint64_t suspended = clock_boot_ns() - clock_mono_ns();
	struct bpf_code_record record = { FIRST, FIRST + 0x80, load_ns + suspended };
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	records_file_ksym(f, CORE, "core", "");
	records_file_ksym(f, FIRST, first, KERNEL_BPF_MODULE);
	if (second)
		records_file_ksym(f, SECOND, second, KERNEL_BPF_MODULE);
	fclose(f);
	f = fopen(programs, "we");
	assert_non_null(f);
	if (second)
		fwrite(&(struct bpf_code_record){ SECOND, SECOND + 0x40, load_ns + suspended },
		       sizeof(record), 1, f);
	fwrite(&record, sizeof(record), 1, f);
	fclose(f);
}

static void start_bpf(struct ksyms *k)
{
	write_programs("first", "second", clock_mono_ns() - NSEC_PER_SEC);
	assert_int_equal(kernel_symbol_reader_init(k, path), 0);
	assert_int_equal(kernel_symbol_reader_set_bpf(k, programs), 0);
	k->since_ns = clock_mono_ns();
}

/* A program's name reaches no further than its code. */
static void test_program_ends(void **state)
{
	struct ksyms k;

	start_bpf(&k);
	assert_string_equal(find(&k, FIRST - 1), "");
	assert_string_equal(find(&k, FIRST), "first");
	assert_string_equal(find(&k, FIRST + 0x7f), "first");
	assert_string_equal(find(&k, FIRST + 0x80), "");
	assert_string_equal(find(&k, SECOND - 0x800), "");
	assert_string_equal(find(&k, SECOND + 0x3f), "second");
	assert_string_equal(find(&k, SECOND + 0x40), "");
	assert_string_equal(find(&k, CORE), "core");
	kernel_symbol_reader_done(&k);
}

/* Another program came to the same place: it names nothing that was sampled before. */
static void test_program_replaced(void **state)
{
	struct ksyms k;

	start_bpf(&k);
	assert_string_equal(find(&k, FIRST + 1), "first");
	write_programs("newer", NULL, clock_mono_ns());
	kernel_symbol_reader_trim(&k);
	assert_string_equal(find(&k, FIRST + 1), "");
	assert_string_equal(find(&k, SECOND + 1), "");
	/* The next session begins: it has a name, and not that of the old table. */
	kernel_symbol_reader_trim(&k);
	k.since_ns = clock_mono_ns();
	assert_string_equal(find(&k, FIRST + 1), "newer");
	kernel_symbol_reader_done(&k);
}

/* Without the iterator, or with one that cannot be read, no program has a name. */
static void test_no_programs(void **state)
{
	struct ksyms k;

	start_bpf(&k);
	assert_int_equal(unlink(programs), 0);
	assert_string_equal(find(&k, FIRST), "");
	assert_string_equal(find(&k, CORE), "core");
	kernel_symbol_reader_done(&k);
}

UNIT_TESTS(kernel_symbol_reader)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_core_does_not_age),
		cmocka_unit_test(test_module_ages),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_program_ends),
		cmocka_unit_test(test_program_replaced),
		cmocka_unit_test(test_no_programs),
	};
	int r;

	close(mkstemp(path));
	close(mkstemp(programs));
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(programs);
	return r;
}
