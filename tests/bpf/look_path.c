/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * look_path.c: the path that `looks` reports for an awaited file: as the thread would name it
 * itself, through mounts and in its own root, whatever becomes of names and mounts.
 */
#include <sched.h>
#include <sys/mount.h>

#include "look_path_fixture.h"
#include "shared/tools/macro.h"

HARNESS_LOADS("looks", "ranges*");

static void assert_path(const struct look_on *on, const char *path, const char *point)
{
	assert_int_equal(on->path_end, LOOK_PATH_WHOLE);
	assert_string_equal(on->path, path);
	assert_int_equal(on->path_cut, 0);
	assert_int_equal(on->point_bytes, strlen(point));
	assert_memory_equal(on->path, point, strlen(point));
	assert_clean(on);
}

static int mount_at(const char *source, const char *path, const char *type, unsigned long flags,
		    const char *options)
{
	char all[LINK_BYTES];

	snprintf(all, sizeof(all), "%s/%s/", base, path);
	make_dirs(all);
	return mount(source, all, type, flags, options) < 0 ? fail_with_errno() : 0;
}

/* In a namespace of mounts that is gone with the process. */
static int enter_namespace(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return fail_with_errno();
	return 0;
}

static int open_plain(void)
{
	return open_at("one/two/file");
}

static void files_have_paths(void **state)
{
	struct look_on on = look_at(open_plain);
	struct stat st;
	char path[128];

	snprintf(path, sizeof(path), "%s/one/two/file", base);
	assert_string_equal(scene->link, path);
	assert_int_equal(on.path_end, LOOK_PATH_WHOLE);
	assert_string_equal(on.path, path);
	assert_string_equal(on.name, "file");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(on.inode, st.st_ino);
	assert_int_equal(on.deleted, 0);
	assert_true(on.fs[0]);
	assert_clean(&on);
}

static int open_root(void)
{
	return open("/", O_RDONLY | O_DIRECTORY);
}

static void the_root_has_a_path(void **state)
{
	struct look_on on = look_at(open_root);

	assert_path(&on, "/", "");
}

static int open_on_tmpfs(void)
{
	if (enter_namespace() < 0 || mount_at("x", "mnt", "tmpfs", 0, NULL) < 0 ||
	    mount_at("x", "mnt/in/side", "tmpfs", 0, NULL) < 0)
		return -1;
	return open_at("mnt/in/side/file");
}

/* Two mounts, which only the process has. */
static void mounts_are_crossed(void **state)
{
	struct look_on on = look_at(open_on_tmpfs);
	char path[128], point[128];

	snprintf(path, sizeof(path), "%s/mnt/in/side/file", base);
	snprintf(point, sizeof(point), "%s/mnt/in/side", base);
	assert_path(&on, path, point);
	assert_string_equal(on.fs, "tmpfs");
	assert_string_equal(scene->link, path);
}

static int open_bound(void)
{
	char from[128];

	snprintf(from, sizeof(from), "%s/one", base);
	if (enter_namespace() < 0 || mount_at(from, "bound", NULL, MS_BIND, NULL) < 0)
		return -1;
	return open_at("bound/two/file");
}

/* The same file, by the name that it has through a mount of a part of its file system. */
static void binds_have_their_own_names(void **state)
{
	struct look_on plain = look_at(open_plain), on = look_at(open_bound);
	char path[128], point[128];

	snprintf(path, sizeof(path), "%s/bound/two/file", base);
	snprintf(point, sizeof(point), "%s/bound", base);
	assert_path(&on, path, point);
	assert_int_equal(on.inode, plain.inode);
	assert_int_equal(on.device, plain.device);
}

static int open_mount(void)
{
	char path[128];
	int fd;

	if (enter_namespace() < 0 || mount_at("x", "mnt", "tmpfs", 0, NULL) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/mnt", base);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	return fd < 0 ? fail_with_errno() : fd;
}

static void a_mount_point_is_its_own(void **state)
{
	struct look_on on = look_at(open_mount);
	char path[128];

	snprintf(path, sizeof(path), "%s/mnt", base);
	assert_path(&on, path, path);
}

static int open_overlay(void)
{
	char options[512];

	if (enter_namespace() < 0 || mount_at("x", "mnt", "tmpfs", 0, NULL) < 0)
		return -1;
	open_at("mnt/lower/etc/file");
	open_at("mnt/upper/x");
	open_at("mnt/own/x");
	snprintf(options, sizeof(options),
		 "lowerdir=%s/mnt/lower,upperdir=%s/mnt/upper,workdir=%s/mnt/own", base, base,
		 base);
	if (mount_at("overlay", "merged", "overlay", 0, options) < 0)
		return -1;
	return open_at("merged/etc/file");
}

/* As in a container: the path in the overlay, and that it is one. */
static void overlays_are_told(void **state)
{
	struct look_on on = look_at(open_overlay);
	char path[128], point[128];

	snprintf(path, sizeof(path), "%s/merged/etc/file", base);
	snprintf(point, sizeof(point), "%s/merged", base);
	assert_path(&on, path, point);
	assert_string_equal(on.fs, "overlay");
}

static int open_in_root(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/one", base);
	if (chroot(path) < 0 || chdir("/") < 0)
		return fail_with_errno();
	fd = open("/two/file", O_RDWR);
	return fd < 0 ? fail_with_errno() : fd;
}

static void another_root_is_respected(void **state)
{
	struct look_on on;

	look_at(open_plain);
	on = look_at(open_in_root);
	assert_path(&on, "/two/file", "");
}

static int open_deleted(void)
{
	char path[128];
	int fd = open_at("one/gone");

	snprintf(path, sizeof(path), "%s/one/gone", base);
	unlink(path);
	return fd;
}

static void deleted_files_are_told(void **state)
{
	struct look_on on = look_at(open_deleted);
	char path[128];

	snprintf(path, sizeof(path), "%s/one/gone", base);
	assert_int_equal(on.path_end, LOOK_PATH_WHOLE);
	assert_string_equal(on.path, path);
	assert_int_equal(on.deleted, 1);
}

static int open_taken_off(void)
{
	char path[128];
	int fd = open_on_tmpfs();

	snprintf(path, sizeof(path), "%s/mnt", base);
	if (umount2(path, MNT_DETACH) < 0)
		return fail_with_errno();
	return fd;
}

/* The path within the rest, which is not reported as whole. */
static void unmounted_files_are_told(void **state)
{
	struct look_on on = look_at(open_taken_off);

	assert_int_equal(on.path_end, LOOK_PATH_DETACHED);
	assert_true(!strcmp(on.path, "/file") || !strcmp(on.path, "/in/side/file"));
	assert_string_equal(on.fs, "tmpfs");
}

static int open_memfd(void)
{
	int fd = memfd_create("cache", 0);

	return fd < 0 ? fail_with_errno() : fd;
}

static void what_has_no_path_has_none(void **state)
{
	struct look_on on = look_at(open_memfd);

	assert_int_equal(on.path_end, LOOK_PATH_DETACHED);
	assert_string_equal(on.path, "");
	assert_string_equal(on.name, "memfd:cache");
	assert_int_equal(on.deleted, 0);
	assert_clean(&on);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_have_paths),
		cmocka_unit_test(the_root_has_a_path),
		cmocka_unit_test(mounts_are_crossed),
		cmocka_unit_test(binds_have_their_own_names),
		cmocka_unit_test(a_mount_point_is_its_own),
		cmocka_unit_test(overlays_are_told),
		cmocka_unit_test(another_root_is_respected),
		cmocka_unit_test(deleted_files_are_told),
		cmocka_unit_test(unmounted_files_are_told),
		cmocka_unit_test(what_has_no_path_has_none),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
