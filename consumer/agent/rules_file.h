/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_file.h: detects changes of the rules file, however it is written or replaced: the file, a
 * link to it, or a directory on the way. inotify watches the directory of the path and that of the
 * file for writes, and each directory and link on the way for its own removal. Each event compares
 * the file that the path leads to. The lock-down removes the right to add a watch: if something on
 * the way was replaced, or without an inotify instance, the path is checked every few seconds. Main
 * thread only.
 */
#ifndef TROCAR_CONSUMER_AGENT_RULES_FILE_H
#define TROCAR_CONSUMER_AGENT_RULES_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* The directory of the path, and that of the file if links lead elsewhere. */
#define RULES_FILE_FOLDERS 2

/* Other directories that may be read: those of links on the way, and the parents of those above. */
#define RULES_FILE_AROUND 6

/*
 * The delay of the next check of a file that is still being written, and of a path without watches.
 */
#define RULES_FILE_WRITTEN_MS 1000
#define RULES_FILE_LOOK_MS    5000

struct rules_file {
	const char *path; /* borrowed */
	int fd;		  /* inotify, -1: not watched */
	int watches[RULES_FILE_FOLDERS];
	char folders[RULES_FILE_FOLDERS][PATH_MAX]; /* "": none */
	char around[RULES_FILE_AROUND][PATH_MAX];   /* an entry may be replaced there; "": none */
	struct stat seen; /* the file at the path at the last call; st_ino 0: nothing */
	bool blind;	  /* a directory or link on the way is not watched */
	bool made;	  /* a new file may still be being written */
	bool absent;	  /* nothing was at the path at the last check */
};

/* Finds the directories, without watching them. `path` is borrowed. */
void rules_file_init(struct rules_file *f, const char *path);

/*
 * Begins to watch. Call before the lock-down, which removes the right to add a watch. If something
 * cannot be watched, it warns, and the path is checked every RULES_FILE_LOOK_MS.
 */
void rules_file_watch(struct rules_file *f);

/*
 * Reads the pending events. Returns whether the path leads to another file than at the last call,
 * or its file was written or replaced. `asked`: compare even without an event. *ret_again_ms: call
 * again after this time with `asked`; 0: at the next event.
 */
bool rules_file_changed(struct rules_file *f, bool asked, uint64_t *ret_again_ms);

/* Closes the descriptor. */
void rules_file_done(struct rules_file *f);

#endif
