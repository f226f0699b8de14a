/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shared/files/regular.h"
#include "shared/tools/cleanup.h"
#include "tests/bpf/held_file.h"
#include "tests/unit/swap_testing.h"

static char folder[] = "/tmp/regular_test.XXXXXX";

static int setup(void **state)
{
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void put(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_int_equal(write(fd, "12345", 5), 5);
	close(fd);
}

/* As the callers do: a descriptor, or the error of the first of the two. */
static int open_regular(const char *path, bool follow)
{
	_cleanup_close_ int held_fd = -1;
	struct stat st = { .st_size = 77 };

	held_fd = regular_hold(AT_FDCWD, path, follow, &st);
	if (held_fd < 0) {
		assert_int_equal(st.st_size, 77);
		return held_fd;
	}
	assert_int_equal(st.st_size, 5);
	return regular_open(held_fd);
}

static void opens_a_held_file(void **state)
{
	_cleanup_close_ int held_fd = -1, fd = -1;
	struct stat st;
	char text[8];

	put("file");
	held_fd = regular_hold(AT_FDCWD, "file", false, &st);
	assert_true(held_fd >= 0);
	/* Whatever has its name by now. */
	assert_int_equal(unlink("file"), 0);
	assert_int_equal(mkfifo("file", 0666), 0);
	fd = regular_open(held_fd);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_int_equal(write(fd, text, 1), -1);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(held_fd, F_GETFD) & FD_CLOEXEC);
	unlink("file");
}

static void refuses_all_else(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int link_fd;

	assert_int_equal(open_regular("nothing", true), -ENOENT);
	assert_int_equal(mkfifo("fifo", 0666), 0);
	assert_int_equal(open_regular("fifo", true), -EINVAL);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(open_regular("socket", true), -EINVAL);
	assert_int_equal(open_regular("/dev/null", true), -EINVAL);
	assert_int_equal(open_regular(".", true), -EINVAL);
	put("file");
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(open_regular("link", false), -EINVAL);
	link_fd = open_regular("link", true);
	assert_true(link_fd >= 0);
	close(link_fd);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(open_regular("loop", true), -ELOOP);
	unlink("fifo");
	unlink("socket");
	unlink("link");
	unlink("loop");
	unlink("file");
}

static void needs_the_permission(void **state)
{
	uid_t uid = geteuid();
	int fd;

	put("secret");
	assert_int_equal(chmod("secret", 0), 0);
	if (uid == 0) {
		assert_int_equal(chmod(folder, 0755), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	fd = open_regular("secret", false);
	if (uid == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(fd, -EACCES);
	unlink("secret");
}

/* Between the look and the open a user swaps the file for a FIFO or a device. */
static void opens_no_swapped_device(void **state)
{
	size_t opened = 0, refused = 0;
	struct swap swap;

	put("file");
	if (!swap_start(&swap, "file")) {
		unlink("file");
		skip();
	}
	while (swap_lasts(&swap)) {
		int fd = open_regular("file", true);

		opened += fd >= 0;
		refused += fd == -EINVAL;
		if (fd >= 0)
			close(fd);
	}
	assert_int_equal(swap_stop(&swap), 0);
	unlink("file");
	/* Both were met: the race was played. */
	assert_true(opened > 0 && refused > 0);
}

/* As regular_hold where the file is local: the same file, the same refusals. */
static void holds_local_files(void **state)
{
	static const struct {
		const char *name;
		int r;
	} rows[] = {
		{ "file", 0 },
		{ "link", -EINVAL },
		{ "nothing", -ENOENT },
		{ "no/such/way", -ENOENT },
		{ "file/below", -ENOTDIR },
		{ ".", -EINVAL },
	};
	char path[128], long_name[5000];
	struct stat st, real;

	put("file");
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(stat("file", &real), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s", folder, rows[i].name);
		fd = regular_hold_local(path, &st);
		assert_int_equal(fd < 0 ? fd : 0, rows[i].r);
		if (fd < 0)
			continue;
		assert_int_equal(st.st_ino, real.st_ino);
		close(fd);
	}
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[0] = '/';
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(regular_hold_local(long_name, &st), -ENAMETOOLONG);
	unlink("link");
	unlink("file");
}

/* In a process of its own: what hangs there can be ended. The result of regular_hold_local. */
static int hold_apart(const char *path)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		struct stat st;
		int r = regular_hold_local(path, &st);

		_exit(r < 0 ? -r : 0);
	}
	for (int i = 0; i < 300 && waitpid(pid, &status, WNOHANG) == 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	if (status == -1) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return -ETIMEDOUT;
	}
	return -WEXITSTATUS(status);
}

/* A file system with a stopped server: neither a known file is asked for, nor an unknown one. */
static void waits_for_no_server(void **state)
{
	struct held_file held = { .server = -1 };
	int given, other;
	char path[128];
	struct stat st;

	if (!held_file_begin(&held)) {
		print_message("no FUSE file system can be mounted here\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/%s", held.dir, HELD_FILE_NAME);
	assert_int_equal(stat(path, &st), 0);
	kill(held.server, SIGSTOP);
	given = hold_apart(path);
	snprintf(path, sizeof(path), "%s/other", held.dir);
	other = hold_apart(path);
	kill(held.server, SIGCONT);
	held_file_end(&held);
	assert_int_equal(given, -EREMOTE);
	assert_int_equal(other, -EREMOTE);
}

UNIT_TESTS(regular)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_a_held_file),	cmocka_unit_test(refuses_all_else),
		cmocka_unit_test(needs_the_permission), cmocka_unit_test(opens_no_swapped_device),
		cmocka_unit_test(holds_local_files),	cmocka_unit_test(waits_for_no_server),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
