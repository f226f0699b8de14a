/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

static int memory_file(const char *data, size_t bytes)
{
	int fd = memfd_create("io_test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, data, bytes), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void reads_files_whole(void **state)
{
	static const size_t sizes[] = { 0, 1, 4094, 4095, 4096, 4097, 8191, 100000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_free_ char *sent = calloc(1, sizes[i] + 1), *data = NULL;
		_cleanup_close_ int fd = -1;
		size_t bytes = 7;

		memset(sent, 'x', sizes[i]);
		fd = memory_file(sent, sizes[i]);
		assert_int_equal(io_read_fd(fd, sizes[i], &data, &bytes), 0);
		assert_int_equal(bytes, sizes[i]);
		assert_string_equal(data, sent);
	}
}

static void holds_the_wall(void **state)
{
	char *data = (char *)state;
	size_t bytes = 7;

	for (size_t max = 0; max < 10; max++) {
		_cleanup_close_ int fd = memory_file("0123456789", 10);

		assert_int_equal(io_read_fd(fd, max, &data, &bytes), -EFBIG);
		assert_ptr_equal(data, (char *)state);
		assert_int_equal(bytes, 7);
	}
}

static void takes_no_wall(void **state)
{
	_cleanup_close_ int fd = memory_file("0123456789", 10);
	_cleanup_free_ char *data = NULL;
	size_t bytes;

	assert_int_equal(io_read_fd(fd, SIZE_MAX, &data, &bytes), 0);
	assert_int_equal(bytes, 10);
}

/* procfs has size 0 for files with content. */
static void reads_procfs(void **state)
{
	_cleanup_free_ char *data = NULL;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/stat", 4096, &data, &bytes), 0);
	assert_true(bytes > 20);
	assert_int_equal(strlen(data), bytes);
}

static void reads_below_a_directory(void **state)
{
	_cleanup_close_ int dir = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *data = NULL;
	size_t bytes;

	assert_int_equal(io_read_file(dir, "comm", 64, &data, &bytes), 0);
	assert_int_equal(data[bytes - 1], '\n');
}

static void returns_the_errors_of_open_and_read(void **state)
{
	char *data = NULL;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, "/nonexistent/x", 64, &data, &bytes), -ENOENT);
	assert_int_equal(io_read_file(AT_FDCWD, "/proc", 64, &data, &bytes), -EISDIR);
	assert_int_equal(io_read_fd(-1, 64, &data, &bytes), -EBADF);
	assert_int_equal(io_write_full(-1, "x", 1), -EBADF);
	assert_null(data);
}

/* A pipe takes 64 KiB at a time: the rest must follow. */
static void writes_all(void **state)
{
	const size_t size = 1u << 20;
	_cleanup_free_ char *sent = malloc(size), *data = NULL;
	int fds[2], status;
	size_t bytes;
	pid_t pid;

	for (size_t i = 0; i < size; i++)
		sent[i] = (char)(i * 31 >> 3);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		_exit(io_write_full(fds[1], sent, size) == 0 ? 0 : 1);
	}
	close(fds[1]);
	assert_int_equal(io_read_fd(fds[0], size, &data, &bytes), 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(bytes, size);
	assert_memory_equal(data, sent, size);
}

UNIT_TESTS(io)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_files_whole),
		cmocka_unit_test(holds_the_wall),
		cmocka_unit_test(takes_no_wall),
		cmocka_unit_test(reads_procfs),
		cmocka_unit_test(reads_below_a_directory),
		cmocka_unit_test(returns_the_errors_of_open_and_read),
		cmocka_unit_test(writes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
