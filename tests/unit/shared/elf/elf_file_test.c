/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "shared/elf/elf_file.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/swap_testing.h"

static char folder[] = "/tmp/file_test.XXXXXX";

static int setup(void **state)
{
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

/* Opens folder/name as elf_file_open's caller would, with its lstat(2). */
static enum reason open_as_mapped(const char *name, uint64_t add_device, uint64_t add_inode)
{
	struct elf_image image = { .fd = -1 };
	struct file_identity identity;
	char path[64];
	struct stat st = { 0 };
	enum reason reason;
	bool vague;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (lstat(path, &st) < 0)
		st.st_ino = 1;
	identity = elf_file_identity(&st);
	identity.device += add_device;
	identity.inode += add_inode;
	reason = elf_file_open(path, &identity, &image, &vague);
	if (reason == REASON_NONE) {
		assert_int_equal(image.bytes, st.st_size);
		assert_true(fcntl(image.fd, F_GETFD) & FD_CLOEXEC);
		close(image.fd);
	} else {
		assert_int_equal(image.fd, -1);
	}
	return reason;
}

static void test_regular(void **state)
{
	_cleanup_close_ int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "12345", 5), 5);
	assert_int_equal(open_as_mapped("file", 0, 0), REASON_NONE);
	assert_int_equal(open_as_mapped("file", 0, 1), REASON_OTHER_FILE);
	assert_int_equal(open_as_mapped("file", 1, 0), REASON_OTHER_FILE);
	/* Its length proves nothing about the place of its code and its tables. */
	assert_int_equal(ftruncate(fd, (off_t)5 << 30), 0);
	assert_int_equal(open_as_mapped("file", 0, 0), REASON_NONE);
	unlink("file");
}

/* Opens the file at `path` as the one of `identity`. Returns whether only a build-id can decide. */
static bool is_vague(const char *path, const struct file_identity *identity)
{
	struct elf_image image;
	bool vague, adopted;

	assert_int_equal(elf_file_open(path, identity, &image, &vague), REASON_NONE);
	assert_int_equal(elf_file_adopt(image.fd, identity, &image, &adopted), REASON_NONE);
	assert_int_equal(vague, adopted);
	close(image.fd);
	return vague;
}

/* A file is the mapped one while it has not been written since. */
static void test_written_since(void **state)
{
	_cleanup_close_ int fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	const struct timespec then[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct file_identity identity;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "%s/file", folder);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "12345", 5), 5);
	assert_int_equal(fstat(fd, &st), 0);
	identity = elf_file_identity(&st);
	assert_false(is_vague(path, &identity));
	assert_int_equal(fchmod(fd, 0755), 0);
	assert_false(is_vague(path, &identity));
	assert_int_equal(futimens(fd, then), 0);
	assert_true(is_vague(path, &identity));
	assert_int_equal(fstat(fd, &st), 0);
	identity = elf_file_identity(&st);
	assert_int_equal(write(fd, "6", 1), 1);
	assert_int_equal(futimens(fd, then), 0);
	assert_true(is_vague(path, &identity));
	unlink("file");
}

static void test_not_regular(void **state)
{
	assert_int_equal(mkfifo("fifo", 0644), 0);
	assert_int_equal(open_as_mapped("fifo", 0, 0), REASON_NOT_REGULAR);
	unlink("fifo");
	assert_int_equal(mkdir("dir", 0755), 0);
	assert_int_equal(open_as_mapped("dir", 0, 0), REASON_NOT_REGULAR);
	rmdir("dir");
	assert_int_equal(symlink("/bin/sh", "link"), 0);
	assert_int_equal(open_as_mapped("link", 0, 0), REASON_NOT_REGULAR);
	unlink("link");
}

static void test_missing(void **state)
{
	const struct file_identity identity = { .inode = 1 };
	struct elf_image image;
	bool vague;

	assert_int_equal(open_as_mapped("nothing", 0, 0), REASON_NO_FILE);
	assert_int_equal(elf_file_open("relative", &identity, &image, &vague), REASON_NO_FILE);
	assert_int_equal(elf_file_open("", &identity, &image, &vague), REASON_NO_FILE);
	assert_int_equal(elf_file_open("[unknown]", &identity, &image, &vague), REASON_NO_FILE);
}

static void test_no_permission(void **state)
{
	_cleanup_close_ int fd = open("secret", O_CREAT | O_WRONLY | O_CLOEXEC, 0000);
	uid_t uid = geteuid();

	assert_true(fd >= 0);
	if (uid == 0) {
		assert_int_equal(chmod(folder, 0755), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	assert_int_equal(open_as_mapped("secret", 0, 0), REASON_NO_PERMISSION);
	if (uid == 0)
		assert_int_equal(seteuid(0), 0);
	unlink("secret");
}

/* A hostile program swaps its file for a FIFO or a device between the look and the open. */
static void test_swapped(void **state)
{
	size_t opened = 0, refused = 0;
	char path[64];
	struct swap swap;
	int fd;

	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	if (!swap_start(&swap, path)) {
		unlink(path);
		skip();
	}
	while (swap_lasts(&swap)) {
		struct elf_image image;
		enum reason reason = elf_file_open_any(path, opened % 2, &image);

		refused += reason == REASON_NOT_REGULAR;
		opened += reason == REASON_NONE;
		if (reason == REASON_NONE)
			close(image.fd);
		reason = open_as_mapped("file", 0, 0);
		refused += reason == REASON_NOT_REGULAR;
	}
	assert_int_equal(swap_stop(&swap), 0);
	unlink(path);
	assert_true(opened > 0 && refused > 0);
}

UNIT_TESTS(elf_file)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_regular),	      cmocka_unit_test(test_written_since),
		cmocka_unit_test(test_not_regular),   cmocka_unit_test(test_missing),
		cmocka_unit_test(test_no_permission), cmocka_unit_test(test_swapped),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
