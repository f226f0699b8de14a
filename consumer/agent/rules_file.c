/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/agent/rules_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/log.h"

/* Editors and deployment tools replace files by rename(2); links also come by symlink(2). */
#define EVENTS (IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE)

/* Writes the folder of `path`; "." for a bare name. */
static void find_folder(const char *path, char folder[PATH_MAX])
{
	char *slash;

	snprintf(folder, PATH_MAX, "%s", path);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	else
		snprintf(folder, PATH_MAX, ".");
}

static struct stat stat_path(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st : (struct stat){ 0 };
}

void rules_file_init(struct rules_file *f, const char *path)
{
	_cleanup_free_ char *real = realpath(path, NULL), *folder = NULL;

	*f = (struct rules_file){ .path = path, .fd = -1, .watches = { -1, -1 } };
	find_folder(path, f->folders[0]);
	folder = realpath(f->folders[0], NULL);
	if (real)
		find_folder(real, f->folders[1]);
	if (folder && !strcmp(folder, f->folders[1]))
		f->folders[1][0] = '\0';
	f->seen = stat_path(path);
}

int rules_file_watch(struct rules_file *f)
{
	f->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->fd < 0)
		return -errno;
	for (int i = 0; i < RULES_FILE_FOLDERS; i++) {
		if (!f->folders[i][0])
			continue;
		f->watches[i] = inotify_add_watch(f->fd, f->folders[i], EVENTS);
		if (f->watches[i] < 0)
			log_warning("%s: cannot be watched: %s, continuing without reload",
				    f->folders[i], strerror(errno));
	}
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* A file that was just made is still being written; a link is whole at once. */
static bool is_link(const struct rules_file *f, const struct inotify_event *e)
{
	char path[2 * PATH_MAX];
	struct stat st;

	for (int i = 0; e->len && i < RULES_FILE_FOLDERS; i++) {
		if (f->watches[i] != e->wd)
			continue;
		snprintf(path, sizeof(path), "%s/%s", f->folders[i], e->name);
		return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	}
	return false;
}

bool rules_file_changed(struct rules_file *f)
{
	_Alignas(struct inotify_event) char buffer[4096];
	bool asks = false;
	struct stat now;
	ssize_t n;

	while ((n = read(f->fd, buffer, sizeof(buffer))) > 0)
		for (char *p = buffer; p < buffer + n;) {
			const struct inotify_event *e = (const struct inotify_event *)p;

			asks = asks || !(e->mask & IN_CREATE) || is_link(f, e);
			p += sizeof(*e) + e->len;
		}
	if (!asks)
		return false;
	now = stat_path(f->path);
	if (is_same(&now, &f->seen))
		return false;
	f->seen = now;
	return true;
}

void rules_file_done(struct rules_file *f)
{
	cleanup_close(&f->fd);
}
