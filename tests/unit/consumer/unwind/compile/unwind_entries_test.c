/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "consumer/unwind/compile/unwind_entries.h"
#include "tests/unit/consumer/unwind/testing/cfi_file_testing.h"

static struct frames f;
static struct unwind_entries *e;

/* Frames of two CIEs and some functions; nothing is known of them. */
static int setup(void **state)
{
	f.bytes = 0;
	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT + 0x40, 0x123, 0x41);
	FRAMES_FDE(&f, WRAP_TEXT - 0x40, 0x20, 0x41, 0x0e, 16, 0x42, 0x0e, 8);
	frames_cie(&f, true);
	FRAMES_FDE(&f, WRAP_TEXT + 0x400, 0x10, 0x41);
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->section = (struct cfi_section){ .data = f.data,
					   .bytes = f.bytes,
					   .address = WRAP_DATA + WRAP_FRAMES };
	return 0;
}

static int teardown(void **state)
{
	free(e); /* the section is not the heap's */
	return 0;
}

static void test_read(void **state)
{
	struct unwind_entry entry;
	size_t at = 0;

	assert_int_equal(unwind_entries_read(e, at, &entry), 0);
	assert_false(entry.function);
	assert_int_equal(entry.loss, CFI_LOSS_NONE);
	at = entry.next;
	assert_int_equal(unwind_entries_read(e, at, &entry), 0);
	assert_true(entry.function && entry.cie->usual && entry.cie->plain);
	assert_int_equal(entry.fde.start, WRAP_TEXT + 0x40);
	assert_int_equal(entry.fde.bytes, 0x123);
	assert_int_equal(cfi_bytes_left(&entry.fde.program), 2);
	assert_int_equal(entry.cie->start.initial.cfa_offset, 8);
	e->section.bytes = entry.next - 1;
	assert_int_equal(unwind_entries_read(e, at, &entry), -EBADMSG);
	e->section.bytes = at + 7;
	assert_int_equal(unwind_entries_read(e, at, &entry), -EBADMSG);
}

static void test_signal(void **state)
{
	struct unwind_entry entry = { .next = f.cie };

	for (int i = 0; i < 2; i++)
		assert_int_equal(unwind_entries_read(e, entry.next, &entry), 0);
	assert_true(entry.function && entry.cie->cie.signal);
	assert_false(entry.cie->plain);
	assert_int_equal(entry.next, f.bytes);
}

/* A CIE is read once; its bytes are steps. */
static void test_steps(void **state)
{
	struct unwind_entry entry = { 0 };

	assert_int_equal(e->program.steps, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(unwind_entries_read(e, entry.next, &entry), 0);
	assert_in_range(e->program.steps, 5, 10);
}

/* The results of the readers of cfi_entry.h. */
static void same(size_t at, const struct unwind_entry *got)
{
	struct cfi_entry entry;
	struct cfi_fde fde;
	struct cfi_cie cie;

	assert_true(cfi_entry_read(&e->section, at, &entry));
	assert_int_equal(got->next, entry.next);
	if (entry.common || !cfi_entry_cie(&e->section, entry.cie, &cie) ||
	    cie.return_register != CFI_PC || !cfi_entry_fde(&e->section, &entry, &cie, &fde)) {
		assert_false(got->function);
		assert_int_equal(got->loss != CFI_LOSS_NONE, !entry.common);
		return;
	}
	if (!got->function) { /* its CIE's instructions may be broken */
		assert_int_equal(got->loss, CFI_LOSS_BAD_CIE);
		return;
	}
	assert_int_equal(got->fde.start, fde.start);
	assert_int_equal(got->fde.bytes, fde.bytes);
	assert_ptr_equal(got->fde.program.at, fde.program.at);
	assert_ptr_equal(got->fde.program.end, fde.program.end);
}

/* However entries are broken, they are read as the whole reader reads them, or refused with it. */
static void test_broken(void **state)
{
	static struct frames good;
	unsigned int functions = 0, refused = 0;

	good = f;
	srandom(1);
	for (int i = 0; i < 100000; i++) {
		struct unwind_entry entry;
		struct cfi_entry whole;

		f = good;
		for (int j = 0; j < 3; j++)
			f.data[(size_t)random() % f.bytes] = (uint8_t)random();
		memset(e->cies, 0, sizeof(e->cies));
		for (size_t at = 0; at < f.bytes; at = entry.next) {
			if (unwind_entries_read(e, at, &entry) < 0) {
				assert_false(cfi_entry_read(&e->section, at, &whole));
				refused++;
				break;
			}
			same(at, &entry);
			functions += entry.function;
		}
	}
	assert_in_range(functions, 1000, 299000);
	assert_in_range(refused, 1000, 99000);
}

UNIT_TESTS(unwind_entries)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
