/* SPDX-License-Identifier: BSD-2-Clause */
/* Each case is a child: descriptor 3 and the environment are its own. */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/broker/broker_listen.h"

struct world {
	int type; /* 0: no socket at 3 */
	bool listens;
	const char *pid, *fds; /* pid "self": the child's; NULL: unset */
};

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static int child(const struct world *w)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX }; /* autobind: a name of its own */
	char self[16];
	int fd = -1, r;

	close(3);
	if (w->type) {
		int s = socket(AF_UNIX, w->type, 0);

		dup2(s, 3);
		bind(3, (struct sockaddr *)&address, sizeof(address.sun_family));
		if (w->listens)
			listen(3, 1);
	}
	snprintf(self, sizeof(self), "%d", getpid());
	set("LISTEN_PID", w->pid && *w->pid == 's' ? self : w->pid);
	set("LISTEN_FDS", w->fds);
	r = broker_listen_take(&fd);
	if (r == 0 && (fd != 3 || !(fcntl(3, F_GETFD) & FD_CLOEXEC) || getenv("LISTEN_PID")))
		return 255;
	return -r;
}

static int take(struct world w)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(child(&w));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void takes(void **state)
{
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, true, "self", "1" }), 0);
}

static void not_for_us(void **state)
{
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, true, NULL, NULL }), -ENOENT);
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, true, "1", "1" }), -ENOENT);
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, true, "self", NULL }), -ENOENT);
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, true, NULL, "1" }), -ENOENT);
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, true, "s", "" }), -EPROTOTYPE);
}

static void another_kind(void **state)
{
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, true, "self", "2" }), -EPROTOTYPE);
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, true, "self", "0" }), -EPROTOTYPE);
	assert_int_equal(take((struct world){ SOCK_SEQPACKET, false, "self", "1" }), -EPROTOTYPE);
	assert_int_equal(take((struct world){ SOCK_STREAM, true, "self", "1" }), -EPROTOTYPE);
	assert_int_equal(take((struct world){ 0, false, "self", "1" }), -EPROTOTYPE);
}

UNIT_TESTS(broker_listen)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes),
		cmocka_unit_test(not_for_us),
		cmocka_unit_test(another_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
