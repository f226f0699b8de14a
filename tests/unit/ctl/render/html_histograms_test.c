/* SPDX-License-Identifier: BSD-2-Clause */
/* The pictures of how long waits were, by the page's text; tests/pictures looks at it. */
#include "tests/unit/runner/unit.h"

#include "ctl/render/html_histograms.h"
#include "tests/unit/ctl/events_testing.h"

#define HISTOGRAM(signal, key, more)  \
	EVENTS_HEAD("histogram", "1") \
	",\"signal\":\"" signal "\",\"key\":{" key "},\"unit\":\"ns\"," more "}\n"
#define TWO "\"buckets\":[[1024,3],[393216,6],[null,1]],\"count\":10,\"p50\":393216,\"p99\":null"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %.20000s", what, events_out);
}

static unsigned int count(const char *what)
{
	unsigned int n = 0;

	for (const char *at = events_out; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* A bar for each step with waits, where the scale has it; what is of a part has no picture. */
static void test_pictures(void **state)
{
	events_write(EVENTS_START("1") HISTOGRAM("runq", "\"of\":\"all\"", TWO) HISTOGRAM(
		"runq", "\"of\":\"pool\",\"pid\":7",
		TWO) HISTOGRAM("block",
			       "\"of\":\"disk\",\"device\":\"a<b\",\"op\":\"read\",\"part\":\"queue\"",
			       TWO)
			     HISTOGRAM(
				     "block",
				     "\"of\":\"disk\",\"device\":\"sda\",\"op\":\"read\",\"part\":\"queue\",\"size_bytes\":null",
				     TWO)
				     HISTOGRAM("syscall", "\"of\":\"call\",\"call\":\"fsync\"",
					       "\"buckets\":[],\"count\":0,\"p50\":0,\"p99\":0")
					     EVENTS_END("1"));
	assert_int_equal(events_command("html", events_file, NULL), 0);
	assert_int_equal(count("<svg viewBox="), 2);
	has("<figcaption>waits for a CPU: 10; half of them at most 393 us, 99 of 100 at most longer");
	has("<figcaption>requests: a&lt;b read queue: 10; ");
	has("<rect x=\"0\" y=\"32\" width=\"5\" height=\"32\"><title>at most 1 us: 3</title></rect>");
	has("<rect x=\"102\" y=\"0\" width=\"5\" height=\"64\"><title>at most 393 us: 6</title></rect>");
	has("<title>longer than 17.1 s: 1</title>");
	assert_int_equal(count("<rect "), 6);
}

/* Beyond the limit they are counted. */
static void test_limit(void **state)
{
	static char lines[1 << 16];
	size_t n = (size_t)snprintf(lines, sizeof(lines), "%s", EVENTS_START("1"));

	for (int i = 0; i < HTML_HISTOGRAMS_MAX + 3; i++)
		n += (size_t)snprintf(
			lines + n, sizeof(lines) - n,
			HISTOGRAM("lock", "\"of\":\"lock\",\"address\":\"0x%d\"",
				  "\"buckets\":[[1536,1]],\"count\":1,\"p50\":1536,\"p99\":1536"),
			10 + i);
	snprintf(lines + n, sizeof(lines) - n, "%s", EVENTS_END("1"));
	events_write(lines);
	assert_int_equal(events_command("html", events_file, NULL), 0);
	assert_int_equal(count("<svg viewBox="), HTML_HISTOGRAMS_MAX);
	has("<figcaption>waits for lock 0x10: 1; half of them at most 1 us, 99 of 100 at most 1 us<");
	has("<rect x=\"6\" y=\"0\" ");
	has("<p>and 3 more in the lines</p>");
}

UNIT_TESTS(html_histograms)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = { TEST(pictures), TEST(limit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
