/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * swap_testing.h: the attack on a program that checks a path before it opens it: a thread that puts
 * a FIFO and a device, each in turn, in the place of a regular file, as fast as it can. The kernel
 * reports whether one of them was ever opened (inotify(7), IN_OPEN on the two inodes).
 */
#ifndef TROCAR_TESTS_UNIT_SWAP_TESTING_H
#define TROCAR_TESTS_UNIT_SWAP_TESTING_H

#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define SWAP_SECONDS 2

struct swap {
	char path[256], fifo[272], device[272];
	int inotify_fd;
	pthread_t thread;
	atomic_bool stop;
	time_t end;
};

static inline void *swap_run(void *context)
{
	struct swap *s = context;

	while (!atomic_load(&s->stop)) {
		/* Twice each: the regular file is back at its path. */
		for (int i = 0; i < 2; i++)
			renameat2(AT_FDCWD, s->path, AT_FDCWD, s->fifo, RENAME_EXCHANGE);
		for (int i = 0; i < 2; i++)
			renameat2(AT_FDCWD, s->path, AT_FDCWD, s->device, RENAME_EXCHANGE);
	}
	return NULL;
}

/*
 * Begins the swaps at `path`, where a regular file is. False where this machine does not let us:
 * devices are root's, and not every file system exchanges names.
 */
static inline bool swap_start(struct swap *s, const char *path)
{
	*s = (struct swap){ .inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC) };
	snprintf(s->path, sizeof(s->path), "%s", path);
	snprintf(s->fifo, sizeof(s->fifo), "%s.fifo", path);
	snprintf(s->device, sizeof(s->device), "%s.device", path);
	/* /dev/null by its number: an open of it does no harm, and is seen. */
	if (s->inotify_fd < 0 || mkfifo(s->fifo, 0666) < 0 ||
	    mknod(s->device, S_IFCHR | 0666, makedev(1, 3)) < 0 ||
	    renameat2(AT_FDCWD, s->path, AT_FDCWD, s->fifo, RENAME_EXCHANGE) < 0 ||
	    renameat2(AT_FDCWD, s->path, AT_FDCWD, s->fifo, RENAME_EXCHANGE) < 0) {
		print_message("no file can change places with a device here: %s\n",
			      strerror(errno));
		unlink(s->fifo);
		unlink(s->device);
		return false;
	}
	assert_true(inotify_add_watch(s->inotify_fd, s->fifo, IN_OPEN) >= 0);
	assert_true(inotify_add_watch(s->inotify_fd, s->device, IN_OPEN) >= 0);
	s->end = time(NULL) + SWAP_SECONDS;
	assert_int_equal(pthread_create(&s->thread, NULL, swap_run, s), 0);
	return true;
}

/* Whether the attack goes on. */
static inline bool swap_lasts(const struct swap *s)
{
	return time(NULL) <= s->end;
}

/* Ends it; how often the FIFO or the device was opened. */
static inline size_t swap_stop(struct swap *s)
{
	char events[4096];
	size_t opened = 0;
	ssize_t n;

	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
	/* Events that are alike and follow each other are one (inotify(7)). */
	while ((n = read(s->inotify_fd, events, sizeof(events))) > 0)
		opened += (size_t)n / sizeof(struct inotify_event);
	close(s->inotify_fd);
	unlink(s->fifo);
	unlink(s->device);
	return opened;
}

#endif
