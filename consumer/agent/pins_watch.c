/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/agent/pins_watch.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define LOOK_EVERY_NS (5 * NSEC_PER_SEC)
#define EVENTS	      (IN_MOVE_SELF | IN_DELETE_SELF | IN_ATTRIB)

int pins_watch_open(struct pins_watch *w, const char *dir)
{
	*w = PINS_WATCH_NONE;
	snprintf(w->path, sizeof(w->path), "%s/control", dir);
	if (stat(w->path, &w->pin) < 0)
		return -errno;
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd >= 0 && inotify_add_watch(w->fd, w->path, EVENTS) < 0)
		pins_watch_done(w);
	return 0;
}

void pins_watch_done(struct pins_watch *w)
{
	cleanup_close(&w->fd);
	w->fd = -1;
}

bool pins_watch_stands(struct pins_watch *w, bool event)
{
	uint64_t now_ns = clock_mono_ns();
	char events[4096];
	struct stat now;

	if (!event && w->looked_ns && now_ns - w->looked_ns < LOOK_EVERY_NS)
		return true;
	w->looked_ns = now_ns;
	while (event && read(w->fd, events, sizeof(events)) > 0)
		;
	return stat(w->path, &now) == 0 && now.st_dev == w->pin.st_dev &&
	       now.st_ino == w->pin.st_ino;
}
