/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pins_watch.h: notices that the loader has put another kernel side in the place of this
 * consumer's, or has taken it away: the maps that the consumer holds stay, and nothing writes to
 * them any more. A replaced pin is another inode at its path. Main thread only.
 */
#ifndef TROCAR_CONSUMER_AGENT_PINS_WATCH_H
#define TROCAR_CONSUMER_AGENT_PINS_WATCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct pins_watch {
	char path[PATH_MAX]; /* of the pin `control` */
	struct stat pin;
	int fd;		    /* inotify, readable when the pin has moved or gone; -1: none */
	uint64_t looked_ns; /* by pins_watch_stands */
};

#define PINS_WATCH_NONE ((struct pins_watch){ .fd = -1 })

/*
 * Notes the pin of the set in `dir`, before the pins are opened. Without an inotify instance left
 * fd stays -1, and only pins_watch_stands finds out. 0; -errno of stat(2).
 */
int pins_watch_open(struct pins_watch *w, const char *dir);
void pins_watch_done(struct pins_watch *w);

/* Whether the pin still stands at its path; looks at most every 5 s, where `event` is false. */
bool pins_watch_stands(struct pins_watch *w, bool event);

#endif
