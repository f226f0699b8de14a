/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pins_watch.h: detects that the loader has replaced this consumer's kernel side, or removed it:
 * the maps that the consumer holds stay, but nothing writes to them any more. A replaced pin is
 * another inode at its path. Main thread only.
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
	int fd;		    /* inotify, readable when the pin was moved or removed; -1: none */
	uint64_t looked_ns; /* last check by pins_watch_stands */
};

#define PINS_WATCH_NONE ((struct pins_watch){ .fd = -1 })

/*
 * Records the pin of the set in `dir`, before the pins are opened. If no inotify instance is left,
 * fd stays -1, and only pins_watch_stands detects a change. Returns 0; -errno of stat(2).
 */
int pins_watch_open(struct pins_watch *w, const char *dir);
void pins_watch_done(struct pins_watch *w);

/* Returns whether the pin is still at its path; unless `event` is set, checks at most every 5 s. */
bool pins_watch_stands(struct pins_watch *w, bool event);

#endif
