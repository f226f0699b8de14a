/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/kernel/psi.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const char both[] = "some avg10=3.11 avg60=0.07 avg300=100.00 total=184467\n"
			   "full avg10=0.00 avg60=12.34 avg300=0.01 total=99\n";
static const char only_some[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";

static void test_parse(void **state)
{
	struct psi psi;

	assert_int_equal(psi_parse(both, strlen(both), &psi), 0);
	assert_int_equal(psi.some.avg10, 311);
	assert_int_equal(psi.some.avg60, 7);
	assert_int_equal(psi.some.avg300, 10000);
	assert_int_equal(psi.some.total_us, 184467);
	assert_true(psi.has_full);
	assert_int_equal(psi.full.avg60, 1234);
	assert_int_equal(psi.full.total_us, 99);
	assert_int_equal(psi_parse(only_some, strlen(only_some), &psi), 0);
	assert_false(psi.has_full);
	assert_int_equal(psi.full.total_us, 0);
}

/* Every proper beginning of a good text is refused, but for the one that ends after its first line.
 */
static void test_parse_cut(void **state)
{
	size_t first = (size_t)(strchr(both, '\n') - both) + 1;

	for (size_t n = 0; n < strlen(both); n++) {
		struct psi psi = { .some.avg10 = 42 };
		_cleanup_free_ char *text = malloc(n ? n : 1);

		assert_non_null(text);
		memcpy(text, both, n);
		if (n == first) {
			assert_int_equal(psi_parse(text, n, &psi), 0);
			continue;
		}
		assert_int_equal(psi_parse(text, n, &psi), -EINVAL);
		assert_int_equal(psi.some.avg10, 42);
	}
}

static void test_parse_malformed(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=0",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551616\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=99999999999999999999999\n",
		"some avg10=101.00 avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=0.100 avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=0.5 avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=0. avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=.00 avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=nan avg60=0.00 avg300=0.00 total=0\n",
		"some avg60=0.00 avg10=0.00 avg300=0.00 total=0\n",
		"some  avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nmore\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct psi psi;

		if (psi_parse(bad[i], strlen(bad[i]), &psi) != -EINVAL)
			fail_msg("accepted %s", bad[i]);
	}
}

static void test_read(void **state)
{
	char name[] = "/tmp/trocar-psi-XXXXXX";
	_cleanup_close_ int fd = mkstemp(name);
	struct psi psi;

	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(psi_read(fd, &psi), -EINVAL);
	assert_int_equal(write(fd, both, strlen(both)), strlen(both));
	/* It reads from the start however often, as pressure files want it. */
	assert_int_equal(psi_read(fd, &psi), 0);
	assert_int_equal(psi_read(fd, &psi), 0);
	assert_int_equal(psi.some.total_us, 184467);
	assert_int_equal(psi_read(-1, &psi), -EBADF);
}

/* What this kernel prints, where it has PSI. */
static void test_read_kernel(void **state)
{
	static const char *const files[] = { "/proc/pressure/cpu", "/proc/pressure/memory",
					     "/proc/pressure/io" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_close_ int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		unsigned long long total_us = 0;
		char text[256] = "";
		struct psi psi;
		int r;

		if (fd < 0)
			skip();
		if (pread(fd, text, sizeof(text) - 1, 0) < 0)
			skip();
		r = psi_read(fd, &psi);
		if (r == -EOPNOTSUPP)
			skip();
		assert_int_equal(r, 0);
		/* It only grows. A machine that is young has none of some kinds. */
		assert_int_equal(
			sscanf(text, "some avg10=%*f avg60=%*f avg300=%*f total=%llu", &total_us),
			1);
		assert_true(psi.some.total_us >= total_us);
	}
}

static struct psi totals(uint64_t some_us, uint64_t full_us)
{
	return (struct psi){ .some.total_us = some_us, .full.total_us = full_us, .has_full = true };
}

static void add(struct psi_history *h, uint64_t ms, uint64_t some_us, uint64_t full_us)
{
	struct psi psi = totals(some_us, full_us);

	psi_history_add(h, ms * NSEC_PER_MSEC, &psi);
}

static uint64_t stall(const struct psi_history *h, uint64_t window_ms, bool full, uint64_t *from_ms)
{
	const struct psi_point *newest = psi_history_newest(h), *from;
	uint64_t window_ns = window_ms * NSEC_PER_MSEC;

	*from_ms = ~0ULL;
	if (!newest)
		return 0;
	from = psi_history_since(h, newest->time_ns > window_ns ? newest->time_ns - window_ns : 0);
	*from_ms = from->time_ns / NSEC_PER_MSEC;
	return psi_growth_us(&from->psi, &newest->psi, full);
}

static void test_history_windows(void **state)
{
	struct psi_history h;
	uint64_t from;

	assert_int_equal(psi_history_init(&h, 16), 0);
	assert_null(psi_history_newest(&h));
	assert_int_equal(stall(&h, 1000, false, &from), 0);
	assert_int_equal(from, ~0ULL);
	add(&h, 1000, 500, 0);
	assert_int_equal(stall(&h, 1000, false, &from), 0);
	assert_int_equal(from, 1000);
	add(&h, 1100, 700, 10);
	add(&h, 1200, 1700, 20);
	add(&h, 1300, 1700, 20);
	/* The point that is exactly as old as the window counts. */
	assert_int_equal(stall(&h, 200, false, &from), 1000);
	assert_int_equal(from, 1100);
	assert_int_equal(stall(&h, 201, false, &from), 1200);
	assert_int_equal(from, 1000);
	assert_int_equal(stall(&h, 100, false, &from), 0);
	assert_int_equal(stall(&h, 100, true, &from), 0);
	assert_int_equal(stall(&h, 200, true, &from), 10);
	/* Less history than the window: from the oldest there is. */
	assert_int_equal(stall(&h, 60000, false, &from), 1200);
	assert_int_equal(from, 1000);
	psi_history_clear(&h);
	assert_null(psi_history_newest(&h));
	assert_int_equal(stall(&h, 60000, false, &from), 0);
	psi_history_done(&h);
}

/* Beside the plain definition, over a ring that wraps many times. */
static void test_history_wrap(void **state)
{
	enum { SPACE = 7, POINTS = 500 };
	uint64_t time[POINTS], total[POINTS], seed = 9;
	struct psi_history h;

	assert_int_equal(psi_history_init(&h, SPACE), 0);
	for (size_t i = 0; i < POINTS; i++) {
		uint64_t window = 1 + next_random(&seed) % 900, from;
		size_t oldest = i + 1 > SPACE ? i + 1 - SPACE : 0, at = i;

		time[i] = (i ? time[i - 1] : 5000) + 50 + next_random(&seed) % 100;
		total[i] = (i ? total[i - 1] : 0) + next_random(&seed) % 1000;
		add(&h, time[i], total[i], 0);
		while (at > oldest && time[i] - time[at] < window)
			at--;
		assert_int_equal(stall(&h, window, false, &from), total[i] - total[at]);
		assert_int_equal(from, time[at]);
		assert_int_equal(psi_history_newest(&h)->time_ns, time[i] * NSEC_PER_MSEC);
	}
	psi_history_done(&h);
}

/* A cgroup that was made anew under the same path starts at 0: no stall, never a huge one. */
static void test_history_backwards(void **state)
{
	struct psi_history h;
	uint64_t from;

	assert_int_equal(psi_history_init(&h, 4), 0);
	add(&h, 1000, 900000, 0);
	add(&h, 1100, 5, 0);
	assert_int_equal(stall(&h, 1000, false, &from), 0);
	psi_history_done(&h);
}

/* The newest that is old enough, else the oldest; and the rest of it in other room. */
static void test_history_since_resize(void **state)
{
	struct psi_history h = {};

	assert_null(psi_history_since(&h, 0));
	assert_int_equal(psi_history_resize(&h, 4), 0);
	assert_null(psi_history_since(&h, 0));
	for (uint64_t i = 1; i <= 6; i++)
		add(&h, i * 100, i, 0);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(h.count, 4);
		assert_int_equal(psi_history_since(&h, 1000 * NSEC_PER_MSEC)->psi.some.total_us, 6);
		assert_int_equal(psi_history_since(&h, 500 * NSEC_PER_MSEC)->psi.some.total_us, 5);
		assert_int_equal(psi_history_since(&h, 499 * NSEC_PER_MSEC)->psi.some.total_us, 4);
		assert_int_equal(psi_history_since(&h, 0)->psi.some.total_us, 3);
		assert_int_equal(psi_history_resize(&h, 9), 0);
		assert_int_equal(h.space, 9);
	}
	assert_int_equal(psi_history_resize(&h, 2), 0);
	assert_int_equal(h.count, 2);
	assert_int_equal(psi_history_newest(&h)->psi.some.total_us, 6);
	assert_int_equal(psi_history_since(&h, 0)->psi.some.total_us, 5);
	psi_history_done(&h);
}

static void test_growth(void **state)
{
	struct psi from = { .some.total_us = 5, .full.total_us = 7 };
	struct psi to = { .some.total_us = 11, .full.total_us = 6 };

	assert_int_equal(psi_growth_us(&from, &to, false), 6);
	assert_int_equal(psi_growth_us(&from, &to, true), 0);
}

static void test_write(void **state)
{
	_cleanup_(jsonw_done) struct jsonw w;
	struct psi psi;

	jsonw_init(&w, 4096);
	assert_int_equal(psi_parse(both, strlen(both), &psi), 0);
	jsonw_object(&w, NULL);
	psi_write(&psi, &w, "now");
	psi.has_full = false;
	psi_write(&psi, &w, "less");
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_memory_equal(
		w.data,
		"{\"now\":{\"some\":{\"avg10\":3.110,\"avg60\":0.070,\"avg300\":100.000,"
		"\"total_us\":184467},\"full\":{\"avg10\":0.000,\"avg60\":12.340,\"avg300\":0.010,"
		"\"total_us\":99}},\"less\":{\"some\":{\"avg10\":3.110,\"avg60\":0.070,"
		"\"avg300\":100.000,\"total_us\":184467}}}",
		w.bytes);
}

UNIT_TESTS(psi)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),		cmocka_unit_test(test_parse_cut),
		cmocka_unit_test(test_parse_malformed), cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_kernel),	cmocka_unit_test(test_history_windows),
		cmocka_unit_test(test_history_wrap),	cmocka_unit_test(test_history_backwards),
		cmocka_unit_test(test_write),		cmocka_unit_test(test_history_since_resize),
		cmocka_unit_test(test_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
