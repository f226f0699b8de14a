/* SPDX-License-Identifier: BSD-2-Clause */
/* A pin that is replaced, renamed and removed; plain files stand for pins. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/agent/pins_watch.h"

static char dir[64], pin[96], other[96];

static void make(const char *path)
{
	close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/pins_watch_test.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(pin, sizeof(pin), "%s/control", dir);
	snprintf(other, sizeof(other), "%s/new", dir);
	make(pin);
	return 0;
}

static int teardown(void **state)
{
	unlink(pin);
	unlink(other);
	return rmdir(dir);
}

static bool is_told(const struct pins_watch *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };

	return poll(&p, 1, 1000) == 1;
}

static void test_replaced(void **state)
{
	struct pins_watch w;

	assert_int_equal(pins_watch_open(&w, dir), 0);
	assert_true(w.fd >= 0);
	assert_true(pins_watch_stands(&w, false));
	make(other);
	assert_int_equal(renameat2(AT_FDCWD, other, AT_FDCWD, pin, RENAME_EXCHANGE), 0);
	assert_true(is_told(&w));
	assert_true(pins_watch_stands(&w, false)); /* it looked just now */
	assert_false(pins_watch_stands(&w, true));
	pins_watch_done(&w);
	assert_int_equal(w.fd, -1);
}

static void test_removed(void **state)
{
	struct pins_watch w;

	assert_int_equal(pins_watch_open(&w, dir), 0);
	assert_int_equal(unlink(pin), 0);
	assert_true(is_told(&w));
	assert_false(pins_watch_stands(&w, true));
	pins_watch_done(&w);
}

/* What changes nothing ends nothing. */
static void test_touched(void **state)
{
	struct pins_watch w;

	assert_int_equal(pins_watch_open(&w, dir), 0);
	assert_int_equal(chmod(pin, 0640), 0);
	assert_true(is_told(&w));
	assert_true(pins_watch_stands(&w, true));
	pins_watch_done(&w);
}

static void test_not_loaded(void **state)
{
	struct pins_watch w;

	assert_int_equal(pins_watch_open(&w, "/nowhere"), -ENOENT);
	assert_int_equal(w.fd, -1);
	pins_watch_done(&w);
}

UNIT_TESTS(pins_watch)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_touched, setup, teardown),
		cmocka_unit_test(test_not_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
