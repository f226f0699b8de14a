/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "consumer/unwind/cfi/cfi_entry.h"
#include "tests/unit/consumer/unwind/testing/cfi_file_testing.h"

static struct frames f;

static struct cfi_section section_of(bool debug)
{
	return (struct cfi_section){ .data = f.data,
				     .bytes = f.bytes,
				     .address = debug ? 0 : WRAP_DATA + WRAP_FRAMES,
				     .debug = debug };
}

/* A CIE of the given bytes behind its id. */
static size_t put_cie(const uint8_t *body, size_t bytes, bool debug)
{
	size_t at = f.bytes;

	frames_put(&f, 0, 4);
	frames_put(&f, debug ? UINT32_MAX : 0, 4);
	frames_bytes(&f, body, bytes);
	frames_end(&f, at);
	return at;
}

static bool read_cie(const uint8_t *body, size_t bytes, bool debug, struct cfi_cie *ret_cie)
{
	struct cfi_section s;

	f.bytes = 0;
	put_cie(body, bytes, debug);
	s = section_of(debug);
	return cfi_entry_cie(&s, 0, ret_cie);
}

#define CIE(cie, debug, ...)                                                                 \
	read_cie((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), \
		 debug, cie)

static void test_augmentations(void **state)
{
	struct cfi_cie cie;

	assert_true(CIE(&cie, false, 1, 0, 1, 0x78, 16, 0x0c, 7, 8));
	assert_int_equal(cie.code_align, 1);
	assert_int_equal(cie.data_align, -8);
	assert_int_equal(cie.return_register, 16);
	assert_int_equal(cie.encoding, CFI_ABSOLUTE);
	assert_false(cie.sized);
	assert_int_equal(cfi_bytes_left(&cie.program), 3);
	/* z, R, P with a relative pointer of 4 bytes, L, S, B; then one instruction */
	assert_true(CIE(&cie, false, 1, 'z', 'R', 'P', 'L', 'S', 'B', 0, 1, 0x78, 16, 7, 0x1b, 0x9b,
			1, 2, 3, 4, 0x1b, 0));
	assert_true(cie.sized && cie.signal);
	assert_int_equal(cie.encoding, 0x1b);
	assert_int_equal(cfi_bytes_left(&cie.program), 1);
	/* the old form: "eh", and a pointer behind it */
	assert_true(CIE(&cie, false, 1, 'e', 'h', 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0x78, 16));
	assert_int_equal(cie.data_align, -8);
}

static void test_refused(void **state)
{
	struct cfi_cie cie;

	assert_false(CIE(&cie, false, 2, 0, 1, 0x78, 16));	/* version */
	assert_false(CIE(&cie, false, 1, 'R', 0, 1, 0x78, 16)); /* letters without their size */
	assert_false(CIE(&cie, false, 1, 'z', 'Q', 0, 1, 0x78, 16, 0));	      /* unknown */
	assert_false(CIE(&cie, false, 1, 'z', 'R', 0, 1, 0x78, 16, 0));	      /* no room for R */
	assert_false(CIE(&cie, false, 1, 'z', 'R', 0, 1, 0x78, 16, 9, 0x1b)); /* beyond the entry */
	assert_false(CIE(&cie, false, 1, 'z', 'R'));			      /* without an end */
	assert_false(CIE(&cie, false, 1, 0, 0x80, 2, 0x78, 16)); /* CFI_CODE_ALIGN_MAX */
	assert_false(CIE(&cie, false, 1, 0, 1, 0xff));		 /* cut */
	assert_false(CIE(&cie, false, 1, 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z', 'z',
			 'z', 'z', 'z', 'z', 'z', 0, 1, 0x78, 16, 0));
}

static void test_debug_frame(void **state)
{
	struct cfi_cie cie;

	assert_true(CIE(&cie, true, 4, 0, 8, 0, 1, 0x78, 16));
	assert_int_equal(cie.return_register, 16);
	assert_true(CIE(&cie, true, 3, 0, 1, 0x78, 0x90, 0));
	assert_int_equal(cie.return_register, 16);
	assert_false(CIE(&cie, true, 4, 0, 4, 0, 1, 0x78, 16)); /* of 4-byte addresses */
	assert_false(CIE(&cie, true, 4, 0, 8, 4, 1, 0x78, 16)); /* with segments */
}

static void test_fde(void **state)
{
	struct cfi_section s;
	struct cfi_entry entry;
	struct cfi_cie cie;
	struct cfi_fde fde;
	size_t at;

	f.bytes = 0;
	frames_cie(&f, true);
	at = f.bytes;
	FRAMES_FDE(&f, WRAP_TEXT + 0x40, 0x123, 0x41);
	s = section_of(false);
	assert_true(cfi_entry_read(&s, at, &entry));
	assert_false(entry.common);
	assert_int_equal(entry.cie, f.cie);
	assert_int_equal(entry.next, f.bytes);
	assert_true(cfi_entry_cie(&s, entry.cie, &cie));
	assert_true(cie.signal);
	assert_true(cfi_entry_fde(&s, &entry, &cie, &fde));
	assert_int_equal(fde.start, WRAP_TEXT + 0x40);
	assert_int_equal(fde.bytes, 0x123);
	assert_int_equal(cfi_bytes_left(&fde.program), 2);
	assert_false(cfi_entry_cie(&s, at, &cie)); /* an FDE is no CIE */
	f.data[at + 16] = 100;			   /* an augmentation beyond the entry */
	assert_false(cfi_entry_fde(&s, &entry, &cie, &fde));
	f.data[at + 4] = 0xff; /* a CIE before the section */
	f.data[at + 5] = 0xff;
	assert_true(cfi_entry_read(&s, at, &entry));
	assert_true(entry.cie == CFI_NO_CIE);
	assert_false(cfi_entry_cie(&s, entry.cie, &cie));
	f.data[at] += 1; /* a length beyond the section */
	assert_false(cfi_entry_read(&s, at, &entry));
}

/* 64 bits: in .debug_frame read, in .eh_frame stepped over. */
static void test_wide(void **state)
{
	struct cfi_section s;
	struct cfi_entry entry;
	struct cfi_cie cie;

	f.bytes = 0;
	frames_put(&f, UINT32_MAX, 4);
	frames_put(&f, 8 + 5, 8);
	frames_put(&f, UINT64_MAX, 8);
	frames_bytes(&f, (const uint8_t[]){ 3, 0, 1, 0x78, 16 }, 5);
	s = section_of(true);
	assert_true(cfi_entry_cie(&s, 0, &cie));
	s = section_of(false);
	assert_true(cfi_entry_read(&s, 0, &entry));
	assert_false(entry.common);
	assert_true(entry.cie == CFI_NO_CIE);
	assert_int_equal(entry.next, f.bytes);
}

UNIT_TESTS(cfi_entry)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_augmentations), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_debug_frame),   cmocka_unit_test(test_fde),
		cmocka_unit_test(test_wide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
