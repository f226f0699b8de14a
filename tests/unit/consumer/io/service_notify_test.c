/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/own_time_testing.h"
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "consumer/io/service_notify.h"
#include "shared/tools/macro.h"

/* What a service manager has: a bound datagram socket. */
struct fixture {
	char dir[32], name[108];
	int fd;
	struct service_notify notify;
};

static void listen_at(struct fixture *f, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t bytes = strlen(name);

	snprintf(f->name, sizeof(f->name), "%s", name);
	memcpy(address.sun_path, name, bytes);
	if (name[0] == '@')
		address.sun_path[0] = 0;
	f->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(f->fd >= 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes +
					  (name[0] != '@'))),
			 0);
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .dir = "/tmp/notify-XXXXXX",
			      .fd = -1,
			      .notify = SERVICE_NOTIFY_NONE };
	*state = &f;
	return mkdtemp(f.dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	service_notify_close(&f->notify);
	if (f->fd >= 0)
		close(f->fd);
	if (f->name[0] == '/')
		unlink(f->name);
	return rmdir(f->dir);
}

static void listen_in_dir(struct fixture *f)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/socket", f->dir);
	listen_at(f, name);
}

/* The one datagram that waits; "" for none. */
static const char *heard(struct fixture *f)
{
	static char text[4096];
	ssize_t n = recv(f->fd, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	return text;
}

static void test_nobody(void **state)
{
	struct fixture *f = *state;

	f->notify.fd = 77;
	assert_int_equal(service_notify_open(NULL, "60000000", NULL, &f->notify), 0);
	assert_int_equal(f->notify.fd, -1);
	assert_int_equal(f->notify.watchdog_ns, 0);
	assert_int_equal(service_notify_say(&f->notify, "READY=1", "x"), 0);
	assert_int_equal(service_notify_open("", NULL, NULL, &f->notify), 0);
	assert_int_equal(f->notify.fd, -1);
}

static void test_path(void **state)
{
	struct fixture *f = *state;

	listen_in_dir(f);
	assert_int_equal(service_notify_open(f->name, NULL, NULL, &f->notify), 0);
	assert_int_equal(f->notify.watchdog_ns, 0);
	assert_int_equal(service_notify_say(&f->notify, "READY=1", "%d rules", 3), 0);
	assert_string_equal(heard(f), "READY=1\nSTATUS=3 rules");
	assert_string_equal(heard(f), "");
}

static void test_abstract(void **state)
{
	struct fixture *f = *state;
	char name[64];

	snprintf(name, sizeof(name), "@trocar-notify-test-%d", getpid());
	listen_at(f, name);
	assert_int_equal(service_notify_open(name, NULL, NULL, &f->notify), 0);
	assert_int_equal(service_notify_say(&f->notify, "STOPPING=1", "ending"), 0);
	assert_string_equal(heard(f), "STOPPING=1\nSTATUS=ending");
}

/* A status that was made of foreign words must not become an assignment of its own. */
static void test_breaks(void **state)
{
	struct fixture *f = *state;

	listen_in_dir(f);
	assert_int_equal(service_notify_open(f->name, NULL, NULL, &f->notify), 0);
	assert_int_equal(service_notify_say(&f->notify, "READY=1", "%s", "a\nMAINPID=1\rb"), 0);
	assert_string_equal(heard(f), "READY=1\nSTATUS=a MAINPID=1 b");
}

static void test_long(void **state)
{
	struct fixture *f = *state;
	char words[2 * SERVICE_NOTIFY_BYTES];
	const char *text;

	memset(words, 'x', sizeof(words));
	words[sizeof(words) - 1] = 0;
	listen_in_dir(f);
	assert_int_equal(service_notify_open(f->name, NULL, NULL, &f->notify), 0);
	assert_int_equal(service_notify_say(&f->notify, "READY=1", "%s", words), 0);
	text = heard(f);
	assert_int_equal(strlen(text), SERVICE_NOTIFY_BYTES - 1);
	assert_int_equal(strncmp(text, "READY=1\nSTATUS=x", 16), 0);
	assert_int_equal(service_notify_say(&f->notify, words, "x"), -EMSGSIZE);
	assert_string_equal(heard(f), "");
}

static void test_watchdog(void **state)
{
	struct fixture *f = *state;
	char self[16], other[16];

	listen_in_dir(f);
	snprintf(self, sizeof(self), "%d", getpid());
	snprintf(other, sizeof(other), "%d", getpid() + 1);
	assert_int_equal(service_notify_open(f->name, "180000000", self, &f->notify), 0);
	assert_int_equal(f->notify.watchdog_ns, 180 * NSEC_PER_SEC);
	service_notify_close(&f->notify);
	assert_int_equal(service_notify_open(f->name, "180000000", NULL, &f->notify), 0);
	assert_int_equal(f->notify.watchdog_ns, 180 * NSEC_PER_SEC);
	service_notify_close(&f->notify);
	assert_int_equal(service_notify_open(f->name, "180000000", other, &f->notify), 0);
	assert_int_equal(f->notify.watchdog_ns, 0);
}

static void test_refused(void **state)
{
	struct fixture *f = *state;
	char gone[64], longer[256];
	struct {
		const char *name, *usec, *pid;
		int r;
	} rows[] = {
		{ "vsock:2:1234", NULL, NULL, -EAFNOSUPPORT },
		{ "relative", NULL, NULL, -EAFNOSUPPORT },
		{ "@", NULL, NULL, -EINVAL },
		{ "/", NULL, NULL, -EINVAL },
		{ longer, NULL, NULL, -EINVAL },
		{ gone, NULL, NULL, -ENOENT },
		{ gone, "-1", NULL, -EINVAL },
		{ gone, "0", NULL, -EINVAL },
		{ gone, "18446744073709551615", NULL, -EINVAL },
		{ gone, "1000000", "me", -EINVAL },
	};

	memset(longer, '/', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	snprintf(gone, sizeof(gone), "%s/gone", f->dir);
	f->notify.fd = -7;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(
			service_notify_open(rows[i].name, rows[i].usec, rows[i].pid, &f->notify),
			rows[i].r);
		assert_int_equal(f->notify.fd, -7);
	}
}

/* The drain must not hang on a service manager that does. */
static void test_stuck(void **state)
{
	struct fixture *f = *state;
	uint64_t before_ns;
	int r = 0;

	listen_in_dir(f);
	assert_int_equal(service_notify_open(f->name, NULL, NULL, &f->notify), 0);
	before_ns = own_time_ns();
	for (int i = 0; i < 100000 && r == 0; i++)
		r = service_notify_say(&f->notify, "WATCHDOG=1", "%d", i);
	assert_int_equal(r, -EAGAIN);
	assert_true(own_time_ns() - before_ns < 100 * SERVICE_NOTIFY_WAIT_MS * NSEC_PER_MSEC);
	assert_string_equal(heard(f), "WATCHDOG=1\nSTATUS=0");
	assert_int_equal(service_notify_say(&f->notify, "WATCHDOG=1", "again"), 0);
}

static void test_gone(void **state)
{
	struct fixture *f = *state;

	listen_in_dir(f);
	assert_int_equal(service_notify_open(f->name, NULL, NULL, &f->notify), 0);
	close(f->fd);
	f->fd = -1;
	assert_int_equal(service_notify_say(&f->notify, "WATCHDOG=1", "x"), -ECONNREFUSED);
}

UNIT_TESTS(service_notify)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abstract, setup, teardown),
		cmocka_unit_test_setup_teardown(test_breaks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watchdog, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stuck, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
