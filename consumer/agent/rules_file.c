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
#include "shared/tools/clock.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

#define STEPS_MAX 128 /* names and links along the path; the kernel follows 40 links */

/*
 * Editors and deployment tools replace files by rename(2); links may also appear by symlink(2), and
 * finished files by link(2); a mode that forbade reading may change.
 */
#define WRITTEN (IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB)
#define ENDED	(IN_MOVE_SELF | IN_DELETE_SELF)

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

/* A walk along the path, name by name, like the kernel's. */
struct way {
	char at[PATH_MAX];   /* the folder reached so far, "": the root */
	char rest[PATH_MAX]; /* the rest of the path */
	char step[PATH_MAX]; /* the folder or link of the last step */
	bool link;	     /* step is a link */
};

static void begin_way(struct way *w, const char *path)
{
	*w = (struct way){ .at = "" };
	if (path[0] != '/' && !getcwd(w->at, sizeof(w->at)))
		w->at[0] = '\0';
	snprintf(w->rest, sizeof(w->rest), "%s", path);
}

/* Replaces the name of a link by its target. */
static bool follow_link(struct way *w, const char *rest)
{
	char target[PATH_MAX], joined[2 * PATH_MAX];
	ssize_t n = readlink(w->step, target, sizeof(target) - 1);

	if (n < 0)
		return false;
	target[n] = '\0';
	if (target[0] == '/')
		w->at[0] = '\0';
	snprintf(joined, sizeof(joined), "%s/%s", target, rest);
	return (size_t)snprintf(w->rest, sizeof(w->rest), "%s", joined) < sizeof(w->rest);
}

/* Takes one step along the path. Returns false at its end, or if it leads nowhere. */
static bool take_step(struct way *w)
{
	char name[PATH_MAX], rest[PATH_MAX];
	size_t bytes, begin = strspn(w->rest, "/");
	struct stat st;

	bytes = strcspn(w->rest + begin, "/");
	snprintf(name, sizeof(name), "%.*s", (int)bytes, w->rest + begin);
	snprintf(rest, sizeof(rest), "%s", w->rest + begin + bytes);
	if (!bytes)
		return false;
	snprintf(w->rest, sizeof(w->rest), "%s", rest);
	w->link = false;
	w->step[0] = '\0';
	if (!strcmp(name, ".") || !strcmp(name, "..")) {
		if (name[1] && strrchr(w->at, '/'))
			*strrchr(w->at, '/') = '\0';
		return true;
	}
	if ((size_t)snprintf(w->step, sizeof(w->step), "%s/%s", w->at, name) >= sizeof(w->step) ||
	    lstat(w->step, &st) < 0)
		return false;
	w->link = S_ISLNK(st.st_mode);
	if (w->link)
		return follow_link(w, rest);
	snprintf(w->at, sizeof(w->at), "%s", w->step);
	return S_ISDIR(st.st_mode);
}

/* Keeps the folder of a link or folder, once; "/" is not kept: everything is below it. */
static void keep_around(struct rules_file *f, const char *place)
{
	char folder[PATH_MAX];

	find_folder(place, folder);
	for (int i = 0; folder[0] == '/' && folder[1] && i < RULES_FILE_AROUND; i++) {
		if (!f->around[i][0])
			snprintf(f->around[i], PATH_MAX, "%s", folder);
		if (!strcmp(f->around[i], folder))
			return;
	}
}

void rules_file_init(struct rules_file *f, const char *path)
{
	_cleanup_free_ char *real = realpath(path, NULL), *folder = NULL;
	struct way way;

	*f = (struct rules_file){ .path = path, .fd = -1, .watches = { -1, -1 } };
	find_folder(path, f->folders[0]);
	folder = realpath(f->folders[0], NULL);
	if (real)
		find_folder(real, f->folders[1]);
	if (folder && !strcmp(folder, f->folders[1]))
		f->folders[1][0] = '\0';
	for (int i = 0; i < RULES_FILE_FOLDERS; i++)
		keep_around(f, f->folders[i]);
	begin_way(&way, path);
	for (int i = 0; i < STEPS_MAX && take_step(&way); i++)
		if (way.link)
			keep_around(f, way.step);
	f->seen = stat_path(path);
}

/* Folders and links along the path may disappear too: by rename(2) and rmdir(2). */
static void watch_way(struct rules_file *f)
{
	struct way way;

	begin_way(&way, f->path);
	for (int i = 0; i < STEPS_MAX && take_step(&way); i++)
		if (way.step[0] &&
		    inotify_add_watch(f->fd, way.step, ENDED | IN_MASK_ADD | IN_DONT_FOLLOW) < 0)
			f->blind = true;
}

void rules_file_watch(struct rules_file *f)
{
	f->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	f->blind = f->fd < 0;
	if (f->fd < 0) {
		log_warning("%s: not watched: inotify: %s%s, continuing with a check every %d s",
			    f->path, strerror(errno),
			    errno == EMFILE ? " (fs.inotify.max_user_instances)" : "",
			    RULES_FILE_LOOK_MS / 1000);
		return;
	}
	watch_way(f);
	for (int i = 0; i < RULES_FILE_FOLDERS; i++) {
		if (!f->folders[i][0])
			continue;
		f->watches[i] = inotify_add_watch(f->fd, f->folders[i], WRITTEN | IN_MASK_ADD);
		if (f->watches[i] >= 0)
			continue;
		f->blind = true;
		log_warning("%s: cannot be watched: %s, continuing with a check every %d s",
			    f->folders[i], strerror(errno), RULES_FILE_LOOK_MS / 1000);
	}
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* A file that was just made is still being written; a link is complete at once. */
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

/* Whether an event requires a comparison. */
static bool take_events(struct rules_file *f)
{
	_Alignas(struct inotify_event) char buffer[4096];
	bool asks = false;
	ssize_t n;

	while ((n = read(f->fd, buffer, sizeof(buffer))) > 0)
		for (char *p = buffer; p < buffer + n;) {
			const struct inotify_event *e = (const struct inotify_event *)p;

			p += sizeof(*e) + e->len;
			f->blind = f->blind || e->mask & (ENDED | IN_UNMOUNT | IN_Q_OVERFLOW);
			if (e->mask & (IN_CREATE | IN_ATTRIB) && !is_link(f, e))
				f->made = true;
			else
				asks = true;
		}
	return asks;
}

/* Whether its writer has finished: no write for a while, or it was written elsewhere. */
static bool is_settled(const struct stat *st)
{
	uint64_t written_ns =
		(uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec;

	return st->st_nlink > 1 ||
	       clock_real_ns() >= written_ns + RULES_FILE_WRITTEN_MS * NSEC_PER_MSEC;
}

static uint64_t next_look(const struct rules_file *f)
{
	if (f->made)
		return RULES_FILE_WRITTEN_MS;
	return f->blind || f->absent ? RULES_FILE_LOOK_MS : 0;
}

bool rules_file_changed(struct rules_file *f, bool asked, uint64_t *ret_again_ms)
{
	bool was_absent = f->absent, written = f->fd >= 0 && take_events(f);
	struct stat now = stat_path(f->path);

	f->absent = false;
	if (is_same(&now, &f->seen)) {
		f->made = false;
	} else if (!now.st_ino && !was_absent) {
		f->absent = true; /* a new file may be about to appear there */
	} else if (written || (asked && (!f->made || is_settled(&now)))) {
		f->made = false;
		f->seen = now;
		*ret_again_ms = next_look(f);
		return true;
	}
	*ret_again_ms = next_look(f);
	return false;
}

void rules_file_done(struct rules_file *f)
{
	cleanup_close(&f->fd);
	f->fd = -1;
}
