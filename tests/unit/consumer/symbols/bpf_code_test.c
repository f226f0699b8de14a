/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "consumer/symbols/bpf_code.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static char path[] = "/tmp/bpf_code_test.XXXXXX";

static int read_records(const struct bpf_code_record *records, size_t count, struct bpf_code *c)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fwrite(records, sizeof(*records), count, f);
	fclose(f);
	return bpf_code_read(path, c);
}

static void test_find(void **state)
{
	const struct bpf_code_record records[] = { { 0x900, 0x940, 0 }, { 0x100, 0x180, 0 } };
	struct bpf_code c;

	assert_int_equal(read_records(records, ARRAY_SIZE(records), &c), 0);
	assert_null(bpf_code_find(&c, 0xff));
	assert_int_equal(bpf_code_find(&c, 0x100)->end, 0x180);
	assert_int_equal(bpf_code_find(&c, 0x17f)->start, 0x100);
	assert_null(bpf_code_find(&c, 0x180));
	assert_null(bpf_code_find(&c, 0x8ff));
	assert_int_equal(bpf_code_find(&c, 0x93f)->start, 0x900);
	assert_null(bpf_code_find(&c, 0x940));
	assert_null(bpf_code_find(&c, UINT64_MAX));
	bpf_code_done(&c);
	assert_null(bpf_code_find(&c, 0x100));
}

/* The kernel's time of a load counts suspends; that of a sample does not. */
static void test_time(void **state)
{
	uint64_t now = clock_mono_ns();
	struct bpf_code_record record = { 1, 2, clock_boot_ns() };
	struct bpf_code c;

	assert_int_equal(read_records(&record, 1, &c), 0);
	assert_in_range(c.items[0].load_ns, now - NSEC_PER_SEC, clock_mono_ns() + NSEC_PER_SEC);
	bpf_code_done(&c);
	record.load_ns = 0;
	assert_int_equal(read_records(&record, 1, &c), 0);
	assert_int_equal(c.items[0].load_ns, 0);
	bpf_code_done(&c);
}

static void test_broken(void **state)
{
	struct bpf_code_record record = { 2, 2, 0 };
	struct bpf_code c;

	assert_int_equal(read_records(&record, 1, &c), -EBADMSG);
	assert_int_equal(read_records(&record, 0, &c), 0);
	bpf_code_done(&c);
	record.end = 3;
	assert_int_equal(read_records(&record, 1, &c), 0);
	bpf_code_done(&c);
	assert_int_equal(truncate(path, sizeof(record) - 1), 0);
	assert_int_equal(bpf_code_read(path, &c), -EBADMSG);
	assert_int_equal(bpf_code_read("/nonexistent", &c), -ENOENT);
}

UNIT_TESTS(bpf_code)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_broken),
	};
	int r;

	close(mkstemp(path));
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return r;
}
