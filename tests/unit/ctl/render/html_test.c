/* SPDX-License-Identifier: BSD-2-Clause */
/* trocar html, by its text; tests/pictures looks at the page. */
#include "tests/unit/runner/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl/render/html_text.h"
#include "tests/unit/ctl/events_testing.h"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %.20000s", what, events_out);
}

static void test_page(void **state)
{
	events_write(EVENTS_START("1") EVENTS_STACK("1", "during", "web", "4", "100000000",
						    EVENTS_USER("main"))
			     EVENTS_WAIT("1", "during", "web", "3", "200000000",
					 EVENTS_BLOCKED("lock", "false"), EVENTS_USER("take"))
				     EVENTS_END("1"));
	assert_int_equal(events_command("html", events_file, NULL), 0);
	has("<!DOCTYPE html>\n");
	has("<title>/c/1 stalled on cpu for 434 ms</title>");
	has("<figcaption>What ran</figcaption>");
	has("<figcaption>What waited, without waits for work or on a condition</figcaption>");
	has("<span class=\"c1\">functions</span>");
	assert_null(strstr(events_out, "<h1>"));
	events_command("html", "--title", "<b>&", events_file, NULL);
	has("<h1>&lt;b&gt;&amp;</h1>");
}

/* Nothing is printed where nothing is selected; a session without stacks has all else. */
static void test_nothing_selected(void **state)
{
	events_write(EVENTS_START("1") EVENTS_END("1"));
	assert_int_equal(events_command("html", events_file, NULL), 0);
	has("/c/1 stalled on cpu for 434 ms");
	assert_null(strstr(events_out, "<iframe"));
	assert_int_equal(events_command("html", "--session", "2", events_file, NULL), 1);
	assert_string_equal(events_out, "");
	assert_non_null(strstr(events_err, "no session is selected"));
	events_write(EVENTS_STACK("1", "during", "web", "4", "100000000", EVENTS_USER("main"))
			     EVENTS_END("1"));
	assert_int_equal(events_command("html", "--comm", "other", events_file, NULL), 1);
	assert_string_equal(events_out, "");
	assert_non_null(strstr(events_err, "no stack is selected"));
	assert_int_equal(events_command("html", "/nonexistent", NULL), 1);
	assert_string_equal(events_out, "");
}

/* What stands in the n-th picture, from 0, as it is before base64. */
static char *read_picture(unsigned int n)
{
	static const char begin[] = "base64,";
	const char *at = events_out;
	unsigned char *svg;
	size_t end = 0;

	for (unsigned int i = 0; i <= n; i++) {
		at = strstr(at, begin);
		assert_non_null(at);
		at += strlen(begin);
	}
	svg = calloc(1, strcspn(at, "\"") + 1);
	for (uint32_t group = 0, i = 0; at[i] != '"' && at[i] != '='; i++) {
		const char *const digits =
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

		group = group << 6 | (uint32_t)(strchr(digits, at[i]) - digits);
		if (i % 4)
			svg[end++] = (unsigned char)(group >> (6 - 2 * (i % 4)));
	}
	return (char *)svg;
}

/* Threads without work would fill the picture of waits. */
static void test_idle(void **state)
{
	char *svg;

	events_write(EVENTS_START("1")
			     EVENTS_WAIT("1", "during", "web", "3", "200000000",
					 EVENTS_BLOCKED("lock", "false"), EVENTS_USER("take"))
				     EVENTS_WAIT("1", "during", "web", "90", "900000000",
						 EVENTS_BLOCKED("idle", "true"), EVENTS_USER("nap"))
					     EVENTS_END("1"));
	assert_int_equal(events_command("html", events_file, NULL), 0);
	svg = read_picture(0);
	assert_non_null(strstr(svg, "<title>take\n"));
	assert_null(strstr(svg, "nap"));
	assert_non_null(strstr(svg, ">3 off-CPU samples, "));
	free(svg);
}

/* Each session has its own pictures, and the stalls of all of them are above. */
static void test_all(void **state)
{
	char *svg;

	events_write(EVENTS_START("1") EVENTS_STACK("1", "during", "web", "4", "100000000",
						    EVENTS_USER("one")) EVENTS_END("1")
			     EVENTS_START("2") EVENTS_STACK("2", "during", "web", "5", "100000000",
							    EVENTS_USER("two")) EVENTS_END("2"));
	assert_int_equal(events_command("html", "--all", events_file, NULL), 0);
	has("2 sessions; what stalled, the longest first:");
	assert_null(strstr(events_out, "----"));
	for (unsigned int i = 0; i < 2; i++) {
		svg = read_picture(i);
		assert_non_null(strstr(svg, i ? ">5 samples, " : ">4 samples, "));
		assert_non_null(strstr(svg, i ? "<title>two\n" : "<title>one\n"));
		assert_null(strstr(svg, i ? "<title>one\n" : "<title>two\n"));
		free(svg);
	}
}

static char *text;
static size_t bytes;

static FILE *begin(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &bytes);
}

static void put(const char *from, const char *wanted)
{
	FILE *out = begin();

	html_text_put(from, strlen(from), out);
	fclose(out);
	assert_string_equal(text, wanted);
}

/* Markup is text, styles are closed, all other sequences and controls go. */
static void test_text(void **state)
{
	put("a<b>&\"'c\n", "a&lt;b&gt;&amp;&quot;&#39;c\n");
	put("\x1b[1mhead\x1b[m: x", "<span class=\"c1\">head</span>: x");
	put("\x1b[31mred", "<span class=\"c31\">red</span>");
	put("\x1b[31mred\x1b[32mgreen\x1b[m",
	    "<span class=\"c31\">red</span><span class=\"c32\">green</span>");
	put("\x1b[2J\x1b[123mx\x01\x7f\xc3\xa4", "x\xc3\xa4");
	put("\x1b", "");
	put("\x1b[", "");
	put("\x1b[1;31mx", "x");
}

static void note(void *context)
{
	fputs("HERE\n", context);
}

static void test_sections(void **state)
{
	FILE *out = begin();

	html_text_sections("one\nof\n\n----\n\n\x1b[1mtwo\x1b[m: a b c d\n\n\nthree: b c d\n", 8,
			   "two", note, out, out);
	fclose(out);
	assert_string_equal(
		text,
		"<section class=\"words\">\n<pre>one\nof</pre>\n</section>\n"
		"<section class=\"words\">\n<pre><span class=\"c1\">two</span>: a b c d</pre>\n"
		"</section>\nHERE\n"
		"<section>\n<pre>three: b\n  c d</pre>\n</section>\n");
	out = begin();
	html_text_sections("one: a\n", 80, "two", note, out, out);
	fclose(out);
	assert_string_equal(text,
			    "<section class=\"words\">\n<pre>one: a</pre>\n</section>\nHERE\n");
}

/* RFC 4648, section 10. */
static void test_base64(void **state)
{
	static const char *const known[] = { "",	 "Zg==",     "Zm8=",	"Zm9v",
					     "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };

	for (size_t n = 0; n < sizeof(known) / sizeof(*known); n++) {
		FILE *out = begin();

		html_text_base64("foobar", n, out);
		fclose(out);
		assert_string_equal(text, known[n]);
	}
	free(text);
	text = NULL;
}

UNIT_TESTS(html)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(page),
		TEST(nothing_selected),
		TEST(idle),
		TEST(all),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
