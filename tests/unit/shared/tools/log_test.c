/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/log.h"

static int caught = -1, real = -1;

/* Turns stderr into a file in memory. */
static void catch (void)
{
	caught = memfd_create("log_test", MFD_CLOEXEC);
	real = dup(STDERR_FILENO);
	assert_true(caught >= 0 && real >= 0);
	assert_int_equal(dup2(caught, STDERR_FILENO), STDERR_FILENO);
}

/* Restores stderr and returns the output; the caller frees. */
static char *release(void)
{
	char *data = NULL;
	size_t bytes;

	dup2(real, STDERR_FILENO);
	close(real);
	lseek(caught, 0, SEEK_SET);
	assert_int_equal(io_read_fd(caught, 1 << 20, &data, &bytes), 0);
	close(caught);
	return data;
}

static void writes_name_and_message(void **state)
{
	_cleanup_free_ char *text = NULL;

	catch ();
	log_open("trocar-test");
	log_error("one %d", 1);
	log_warning("two");
	log_info("three");
	text = release();
	assert_string_equal(text, "trocar-test: one 1\ntrocar-test: two\ntrocar-test: three\n");
}

static void marks_priorities_for_the_journal(void **state)
{
	_cleanup_free_ char *text = NULL;

	catch ();
	log_open("t");
	log_journal(true);
	log_error("a");
	log_warning("b");
	log_info("c");
	log_journal(false);
	text = release();
	assert_string_equal(text, "<3>t: a\n<4>t: b\n<6>t: c\n");
}

/* A comm may hold any byte: it must not forge a line. */
static void one_message_is_one_line(void **state)
{
	_cleanup_free_ char *text = NULL;

	catch ();
	log_open("t");
	log_info("%s", "a\n<0>b\x1b[2J\x7f\tc\n");
	/* CSI in UTF-8 and as a byte, an override of the order of reading, and a letter. */
	log_info("%s", "\xc2\x9b"
		       "2J\x9b"
		       "1m\xe2\x80\xae\xc3\xa9\xe2\x80");
	text = release();
	assert_string_equal(text, "t: a <0>b?[2J? c \nt: ??2J?1m???\xc3\xa9??\n");
}

static void long_messages_stay_whole(void **state)
{
	static const size_t sizes[] = { 2000, 2043, 2044, 2045, 2046, 2048, 100000 };

	log_open("t");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_free_ char *message = malloc(sizes[i] + 1), *text = NULL;

		memset(message, 'x', sizes[i]);
		message[sizes[i]] = '\0';
		catch ();
		log_info("%s", message);
		text = release();
		assert_int_equal(strlen(text), sizes[i] + strlen("t: \n"));
		assert_memory_equal(text + 3, message, sizes[i]);
		assert_int_equal(text[strlen(text) - 1], '\n');
	}
}

static void keeps_errno(void **state)
{
	_cleanup_free_ char *text = NULL;

	catch ();
	close(STDERR_FILENO);
	errno = EXDEV;
	log_error("nobody hears");
	assert_int_equal(errno, EXDEV);
	text = release();
	assert_string_equal(text, "");
}

UNIT_TESTS(log)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_name_and_message),
		cmocka_unit_test(marks_priorities_for_the_journal),
		cmocka_unit_test(one_message_is_one_line),
		cmocka_unit_test(long_messages_stay_whole),
		cmocka_unit_test(keeps_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
