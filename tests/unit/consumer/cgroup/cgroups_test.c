/* SPDX-License-Identifier: BSD-2-Clause */
/* On a tree of directories, and on the real hierarchy. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/output/host.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/consumer/testing/cgroups_testing.h"

static void test_walk(void **state)
{
	uint64_t a = make("/a"), b = make("/a/b"), c = make("/c");

	assert_string_equal(cgroups_path(&cgroups, cgroups.root_id, 0), "/");
	assert_string_equal(look_up(b), "/a/b");
	/* The walk that found it has learnt the others. */
	assert_string_equal(cgroups_path(&cgroups, a, 0), "/a");
	assert_string_equal(cgroups_path(&cgroups, c, 0), "/c");
	assert_null(look_up(0x7fffffffffff));
}

/* A cache that is full is emptied, which is counted. */
static void test_full_cache(void **state)
{
	cgroups.known.max = 3;
	for (uint64_t id = 101; id <= 103; id++)
		cgroups_learn(&cgroups, id, "/one");
	assert_int_equal(cgroups.emptied, 0);
	cgroups_learn(&cgroups, 104, "/more");
	assert_int_equal(cgroups.emptied, 1);
	assert_int_equal(cgroups.known.count, 1);
	assert_true(cgroups_knows(&cgroups, 104));
}

static void test_learn_forget(void **state)
{
	cgroups_learn(&cgroups, 42, "/x");
	cgroups_learn(&cgroups, 42, "/x");
	assert_string_equal(cgroups_path(&cgroups, 42, 0), "/x");
	cgroups_learn(&cgroups, 42, "/renamed");
	assert_string_equal(cgroups_path(&cgroups, 42, 0), "/renamed");
	cgroups_forget(&cgroups, 42);
	cgroups_forget(&cgroups, 42);
	assert_null(cgroups_path(&cgroups, 42, 0));
}

static void is_owned_by(const char *path, uint64_t id, const char *owner)
{
	char found[CGROUP_OWNER_BYTES];

	cgroups_learn(&cgroups, id, path);
	assert_true(cgroups_owner(&cgroups, id, 0, found));
	assert_string_equal(found, owner);
}

/* A tree that was handed over is one owner's, whatever he makes of it; else the first two levels.
 */
static void test_owner(void **state)
{
	char found[CGROUP_OWNER_BYTES];

	if (geteuid() != 0)
		skip();
	is_owned_by("/", cgroups.root_id, "/");
	is_owned_by("/a", make("/a"), "/a");
	is_owned_by("/a/b", make("/a/b"), "/a/b");
	is_owned_by("/a/b/c", make("/a/b/c"), "/a/b");
	make("/a/u");
	make("/a/u/x");
	give("/a/u", 61234);
	is_owned_by("/a/u", 1001, "uid 61234");
	is_owned_by("/a/u/x", 1002, "uid 61234");
	give("/a/u/x", 61235);
	make("/a/u/x/y");
	is_owned_by("/a/u/x/y", 1003, "uid 61234");
	/* Gone: the way is known as far as it goes. */
	is_owned_by("/a/u/gone", 1004, "uid 61234");
	is_owned_by("/gone/away/far", 1005, "/gone/away");
	is_owned_by("/a/../u/x", 1006, "/a/..");
	assert_false(cgroups_owner(&cgroups, 0x7fffffffffff, 0, found));
}

/* What a path names is known with it, follows it, and is not touched when there is no path. */
static void test_container(void **state)
{
	static const char docker[] =
		"/docker/0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e1f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e";
	struct container c, before;

	memset(&c, 0xa5, sizeof(c));
	before = c;
	assert_null(cgroups_container(&cgroups, 42, &c));
	assert_memory_equal(&c, &before, sizeof(c));
	cgroups_learn(&cgroups, 42, docker);
	assert_string_equal(cgroups_container(&cgroups, 42, &c), docker);
	assert_int_equal(c.runtime, RUNTIME_DOCKER);
	assert_int_equal(c.id.at, 8);
	cgroups_learn(&cgroups, 42, "/system.slice/a.service");
	assert_string_equal(cgroups_container(&cgroups, 42, &c), "/system.slice/a.service");
	assert_int_equal(c.runtime, RUNTIME_NONE);
	assert_int_equal(c.unit.bytes, 9);
}

/* A full cache starts anew instead of growing. */
static void test_cache_bound(void **state)
{
	for (uint64_t id = 1; id <= CGROUPS_MAX + 10; id++)
		cgroups_learn(&cgroups, id << 32, "/p");
	assert_true(cgroups.known.count <= 10);
	assert_string_equal(cgroups_path(&cgroups, (uint64_t)(CGROUPS_MAX + 10) << 32, 0), "/p");
}

static void test_id(void **state)
{
	uint64_t a = make("/a"), dots = make("/a/..b"), id;

	put_file("/file", "");
	assert_int_equal(cgroups_id(&cgroups, "/", &id), 0);
	assert_int_equal(id, cgroups.root_id);
	assert_int_equal(cgroups_id(&cgroups, "/a", &id), 0);
	assert_int_equal(id, a);
	assert_int_equal(cgroups_id(&cgroups, "/a/..b", &id), 0);
	assert_int_equal(id, dots);
	assert_int_equal(cgroups_id(&cgroups, "/none", &id), -ENOENT);
	assert_int_equal(cgroups_id(&cgroups, "/file", &id), -ENOTDIR);
	assert_int_equal(id, dots);
}

/* Whatever leads out of the hierarchy is refused, for it comes from a request. */
static void test_traversal(void **state)
{
	static const char *const bad[] = { "/..",    "..",	"../x",	   "/a/..",	"/a/../a",
					   "/a/./b", "/./a",	"/.",	   ".",		"./a",
					   "//..",   "/a//../", "/a/b/..", "/../../etc" };
	uint64_t id = 77;

	make("/a");
	make("/a/b");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (cgroups_id(&cgroups, bad[i], &id) != -EINVAL)
			fail_msg("accepted %s", bad[i]);
	assert_int_equal(id, 77);
}

static void test_read(void **state)
{
	char text[8];

	make("/a");
	put_file("/a/cpu.stat", "usage_usec 5\n");
	put_file("/a/empty", "");
	assert_int_equal(cgroups_read(&cgroups, "/a", "cpu.stat", text, sizeof(text)), 7);
	assert_string_equal(text, "usage_u");
	assert_int_equal(cgroups_read(&cgroups, "/a", "empty", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(cgroups_read(&cgroups, "/a", "none", text, sizeof(text)), -ENOENT);
	assert_int_equal(cgroups_open_file(&cgroups, "/b", "cpu.stat"), -ENOENT);
}

static void test_read_long(void **state)
{
	_cleanup_free_ char *path = calloc(1, 5001);

	assert_non_null(path);
	memset(path, 'a', 5000);
	assert_int_equal(cgroups_open_file(&cgroups, path, "cpu.stat"), -ENAMETOOLONG);
}

static void test_occupied(void **state)
{
	make("/a");
	make("/b");
	put_file("/a/cgroup.procs", "12\n");
	put_file("/b/cgroup.procs", "");
	assert_int_equal(cgroups_occupied(&cgroups, "/a"), 1);
	assert_int_equal(cgroups_occupied(&cgroups, "/b"), 0);
	assert_int_equal(cgroups_occupied(&cgroups, "/gone"), 0);
}

/* With all below it; unknown where the file cannot be read. */
static void test_populated(void **state)
{
	make("/a");
	make("/b");
	put_file("/a/cgroup.events", "populated 1\nfrozen 0\n");
	put_file("/b/cgroup.events", "populated 0\nfrozen 0\n");
	assert_int_equal(cgroups_populated(&cgroups, "/a"), 1);
	assert_int_equal(cgroups_populated(&cgroups, "/b"), 0);
	assert_int_equal(cgroups_populated(&cgroups, "/gone"), 0);
}

/* As an unprivileged reader gets it of the cgroup of the tree. */
static int occupied_for_nobody(const char *path)
{
	int r;

	assert_int_equal(seteuid(65534), 0);
	r = cgroups_occupied(&cgroups, path);
	assert_int_equal(seteuid(0), 0);
	return r;
}

static void set_mode(const char *path, mode_t mode)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s", mount, path);
	assert_int_equal(chmod(name, mode), 0);
}

/* What is closed to us is neither occupied nor empty. */
static void test_occupied_unknown(void **state)
{
	if (geteuid() != 0)
		skip();
	set_mode("", 0755);
	make("/closed");
	put_file("/closed/cgroup.procs", "12\n");
	set_mode("/closed", 0700);
	make("/a");
	put_file("/a/cgroup.procs", "12\n");
	assert_int_equal(occupied_for_nobody("/a"), 1);
	assert_int_equal(occupied_for_nobody("/closed"), -EACCES);
	set_mode("/a/cgroup.procs", 0600);
	assert_int_equal(occupied_for_nobody("/a"), -EACCES);
	assert_int_equal(occupied_for_nobody("/gone"), 0);
}

static bool put_real(const char *directory, const char *file, const char *text)
{
	char name[4200];
	int fd;
	bool put;

	snprintf(name, sizeof(name), "%s/%s", directory, file);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	put = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return put;
}

/* cgroup.procs of a threaded cgroup cannot be read: its threads show it. */
static void test_occupied_threaded(void **state)
{
	char directory[4096 + 64], path[64], pid[16];
	struct cgroups real;
	struct host host;
	pid_t child;

	if (host_read(&host) < 0)
		skip();
	snprintf(path, sizeof(path), "/trocar-unit-%d-threaded", (int)getpid());
	snprintf(directory, sizeof(directory), "%s%s", host.cgroup2, path);
	if (mkdir(directory, 0755) < 0 || !put_real(directory, "cgroup.type", "threaded")) {
		print_message("no threaded cgroup can be made here: %s\n", strerror(errno));
		rmdir(directory);
		skip();
	}
	assert_int_equal(cgroups_open(host.cgroup2, &real), 0);
	assert_int_equal(cgroups_occupied(&real, path), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	snprintf(pid, sizeof(pid), "%d", (int)child);
	assert_true(put_real(directory, "cgroup.procs", pid));
	assert_int_equal(cgroups_read(&real, path, "cgroup.procs", pid, sizeof(pid)), -EOPNOTSUPP);
	assert_int_equal(cgroups_occupied(&real, path), 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 1000 && rmdir(directory) < 0 && errno == EBUSY; i++)
		usleep(1000);
	cgroups_done(&real);
}

/* The real hierarchy: our own cgroup, by /proc and by walk, is the same one. */
static void test_real(void **state)
{
	struct cgroups real;
	char path[4096];
	struct host host;
	uint64_t id;

	if (host_read(&host) < 0)
		skip();
	assert_int_equal(cgroups_open(host.cgroup2, &real), 0);
	assert_int_equal(cgroups_of_pid((uint32_t)getpid(), path, sizeof(path)), 0);
	assert_int_equal(path[0], '/');
	if (cgroups_id(&real, path, &id) == 0) {
		assert_string_equal(cgroups_path(&real, id, 0), path);
		cgroups_forget(&real, id);
		assert_string_equal(cgroups_path(&real, id, (uint32_t)getpid()), path);
		assert_int_equal(cgroups_occupied(&real, path), 1);
	}
	/* A hint of another process is not believed. */
	assert_null(cgroups_path(&real, id + 0x10000000000ULL, (uint32_t)getpid()));
	assert_int_equal(cgroups_of_pid(0x7fffffff, path, sizeof(path)), -ENOENT);
	assert_int_equal(cgroups_of_pid((uint32_t)getpid(), path, 1), -ENAMETOOLONG);
	cgroups_done(&real);
}

static void test_open(void **state)
{
	struct cgroups none;

	assert_int_equal(cgroups_open("/nonexistent/trocar", &none), -ENOENT);
	assert_int_equal(cgroups_open("/proc/self/status", &none), -ENOTDIR);
}

UNIT_TESTS(cgroups)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_cache, setup, teardown),
		cmocka_unit_test_setup_teardown(test_learn_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_container, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_id, setup, teardown),
		cmocka_unit_test_setup_teardown(test_traversal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_occupied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_occupied_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_populated, setup, teardown),
		cmocka_unit_test(test_occupied_threaded),
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
