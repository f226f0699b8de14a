/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_file.h: notices that the rules file has changed, in whatever way it is written or replaced:
 * the file, a link to it, or a folder on the way. inotify watches the folder of the path and that
 * of the file for writes, and each folder and link on the way for its own end. What the path leads
 * to is compared at each event. The lock-down leaves no right to add a watch: when something on the
 * way was replaced, or where there is no inotify instance, the path is looked at every few seconds.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_AGENT_RULES_FILE_H
#define TROCAR_CONSUMER_AGENT_RULES_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The folder of the path, and that of the file where links lead elsewhere. */
#define RULES_FILE_FOLDERS 2

/* What else may be read: where links on the way lie, and the folders around those above. */
#define RULES_FILE_AROUND 6

/* How soon a file that is still being written is looked at again, and a path without watches. */
#define RULES_FILE_WRITTEN_MS 1000
#define RULES_FILE_LOOK_MS    5000

struct rules_file {
	const char *path; /* borrowed */
	int fd;		  /* inotify, -1: not watched */
	int watches[RULES_FILE_FOLDERS];
	char folders[RULES_FILE_FOLDERS][PATH_MAX]; /* "": there is none */
	char around[RULES_FILE_AROUND][PATH_MAX];   /* in which one may be replaced; "": none */
	struct stat seen; /* what the path led to when last asked; st_ino 0: nothing */
	bool blind;	  /* something on the way is not watched */
	bool made;	  /* a file was made that may still be being written */
	bool absent;	  /* the path led to nothing at the last look */
};

/* Finds the folders, without a watch on them. `path` is borrowed. */
void rules_file_init(struct rules_file *f, const char *path);

/*
 * Begins to watch. Call before the lock-down, which leaves no right to add a watch. Where something
 * cannot be watched it warns, and the path is looked at every RULES_FILE_LOOK_MS.
 */
void rules_file_watch(struct rules_file *f);

/*
 * Reads the events that have come. Returns whether the path leads to something else than at the
 * last call, or its file was written or replaced. `asked`: it is to be compared without an event,
 * too. *ret_again_ms: call again after so long, asked; 0: at the next event.
 */
bool rules_file_changed(struct rules_file *f, bool asked, uint64_t *ret_again_ms);

/* Closes the descriptor. */
void rules_file_done(struct rules_file *f);

#endif
