/* SPDX-License-Identifier: BSD-2-Clause */
/* look_path_fixture.h: a process that waits for a file, and the path in a look's report. */
#ifndef TROCAR_TESTS_BPF_LOOK_PATH_FIXTURE_H
#define TROCAR_TESTS_BPF_LOOK_PATH_FIXTURE_H

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "look_fixture.h"

#define LINK_BYTES 4096

static char base[64];

/* The process's actions before its wait, and its name for the awaited file. */
static struct scene {
	int (*open)(void); /* returns the awaited file */
	char link[LINK_BYTES];
	int failed; /* errno of the failed call */
} * scene;

static inline int fail_with_errno(void)
{
	scene->failed = errno;
	return -1;
}

/* Waits for a lock of a folder that another description of it has: for good. */
static inline void wait_for_folder(int fd, int again)
{
	if (flock(again, LOCK_EX) < 0)
		_exit(2);
	for (;;)
		flock(fd, LOCK_EX);
}

/* Waits for a lock of a file that a child of ours has: for good. */
static inline void wait_for_lock(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC) < 0)
		_exit(3);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The child of the last scene may have the lock until it has died. */
		if (fcntl(fd, F_SETLKW, &lock) == 0 && write(ready[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(4);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		_exit(5);
	for (;;)
		fcntl(fd, F_SETLKW, &lock);
}

static inline void wait_for_file(void *unused)
{
	int fd = scene->open(), again;
	char path[64];

	(void)unused;
	if (fd < 0)
		_exit(1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* Without /proc there is none. */
	if (readlink(path, scene->link, sizeof(scene->link) - 1) < 0)
		scene->link[0] = '\0';
	again = openat(fd, ".", O_RDONLY | O_DIRECTORY);
	if (again >= 0)
		wait_for_folder(fd, again);
	wait_for_lock(fd);
}

static struct fixture fixture;

static inline int set_up(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/trocar_look_path_%d", getpid());
	mkdir(base, 0755);
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	fixture = begin_looks("sleep");
	return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static inline int tear_down(void **state)
{
	(void)state;
	end(&fixture);
	nftw(base, remove_one, 64, FTW_DEPTH | FTW_PHYS);
	return 0;
}

/* Returns a look's report of a process that waits for the file of `open`. */
static inline struct look_on look_at(int (*open)(void))
{
	struct seen_look l;

	*scene = (struct scene){ .open = open };
	harness_kill(fixture.pid);
	fixture.pid = harness_start(wait_for_file, NULL, fixture.dir);
	for (int i = 0; i < 200; i++) {
		read_asleep(fixture.h, fixture.pid, &l);
		if (l.record.syscall == SYS_flock || l.record.syscall == SYS_fcntl)
			break;
		harness_sleep_ms(10);
	}
	assert_int_equal(scene->failed, 0);
	assert_int_equal(l.record.on.kind, LOOK_ON_FILE);
	return l.record.on;
}

/* Nothing stands behind the text: what was read of other files does not leave. */
static inline void assert_clean(const struct look_on *on)
{
	for (size_t i = strnlen(on->path, sizeof(on->path)); i < sizeof(on->path); i++)
		assert_int_equal(on->path[i], 0);
}

static inline int make_dirs(const char *path)
{
	char all[LINK_BYTES];

	snprintf(all, sizeof(all), "%s", path);
	for (char *slash = all + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(all, 0755);
	}
	return 0;
}

/* Opens a file below the base; makes it, and the folders above it. */
static inline int open_at(const char *path)
{
	char all[LINK_BYTES];
	int fd;

	snprintf(all, sizeof(all), "%s/%s", base, path);
	make_dirs(all);
	fd = open(all, O_RDWR | O_CREAT, 0644);
	return fd < 0 ? fail_with_errno() : fd;
}

#endif
