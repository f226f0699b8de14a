/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_file.h: notices that the rules file has changed. The file may stand behind symbolic links,
 * as a ConfigMap's does: then a link beside it is exchanged, or the file that it leads to is
 * written. inotify watches the folder of the path and the folder of the file itself; what the path
 * leads to is compared at each event. Main thread only.
 */
#ifndef TROCAR_CONSUMER_AGENT_RULES_FILE_H
#define TROCAR_CONSUMER_AGENT_RULES_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

/* The folder of the path, and that of the file where links lead elsewhere. */
#define RULES_FILE_FOLDERS 2

struct rules_file {
	const char *path; /* borrowed */
	int fd;		  /* inotify, -1: not watched */
	int watches[RULES_FILE_FOLDERS];
	char folders[RULES_FILE_FOLDERS][PATH_MAX]; /* "": there is none */
	struct stat seen; /* what the path led to when last asked; st_ino 0: nothing */
};

/* Finds the folders, without a watch on them. `path` is borrowed. */
void rules_file_init(struct rules_file *f, const char *path);

/*
 * Begins to watch. Call before the lock-down, which leaves no right to add a watch. Logs a folder
 * that cannot be watched and goes on. Returns 0 or -errno.
 */
int rules_file_watch(struct rules_file *f);

/*
 * Reads the events that have come; returns whether the path leads to something else than at the
 * last call, or its file was written or replaced.
 */
bool rules_file_changed(struct rules_file *f);

/* Closes the descriptor. */
void rules_file_done(struct rules_file *f);

#endif
