/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/jit/perf_map_files.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "consumer/jit/perf_map_read.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

enum state {
	FREE,
	WANTED,	 /* to be opened */
	OPENING, /* the symbolizer's thread opens it without the lock */
	TRIED,	 /* the attempt gave fd or reason */
	LEFT,	 /* to be closed */
};

void perf_map_files_init(struct perf_map_files *f, const char *folder)
{
	*f = (struct perf_map_files){ .folder = folder };
	pthread_mutex_init(&f->lock, NULL);
	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++)
		f->items[i].fd = -1;
}

void perf_map_files_done(struct perf_map_files *f)
{
	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++)
		cleanup_close(&f->items[i].fd);
	pthread_mutex_destroy(&f->lock);
}

void perf_map_files_set_borrow(struct perf_map_files *f, perf_map_files_borrow borrow,
			       void *context)
{
	f->borrow = borrow;
	f->borrow_context = context;
}

void perf_map_files_set_wake(struct perf_map_files *f, perf_map_files_wake wake, void *context)
{
	f->wake = wake;
	f->wake_context = context;
}

static struct perf_map_file *find_file(struct perf_map_files *f, const struct process_key *key)
{
	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++) {
		struct perf_map_file *item = &f->items[i];

		if (item->state != FREE && item->state != LEFT && item->process.tgid == key->tgid &&
		    item->process.start_ns == key->start_ns)
			return item;
	}
	return NULL;
}

static struct perf_map_file *find_state(struct perf_map_files *f, enum state state)
{
	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++)
		if (f->items[i].state == state)
			return &f->items[i];
	return NULL;
}

/*
 * Returns the file of the process that ended first, among the files with a descriptor (`open`) or
 * without one; NULL if there is none.
 */
static struct perf_map_file *find_gone(struct perf_map_files *f, bool open)
{
	struct perf_map_file *first = NULL;

	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++) {
		struct perf_map_file *item = &f->items[i];

		if (item->state == TRIED && item->gone_ns && (item->fd >= 0) == open &&
		    (!first || item->gone_ns < first->gone_ns))
			first = item;
	}
	return first;
}

/*
 * Returns a place for one more file. If all places hold open files, closes the file of the process
 * that ended first, so that a later call finds a place, and returns NULL.
 */
static struct perf_map_file *add_file(struct perf_map_files *f, const struct process_key *process)
{
	struct perf_map_file *item = find_state(f, FREE);

	if (!item)
		item = find_gone(f, false);
	if (item) {
		*item = (struct perf_map_file){ .process = *process, .fd = -1 };
		return item;
	}
	item = find_gone(f, true);
	if (item)
		item->state = LEFT;
	return NULL;
}

/* Returns the file to open now, or NULL. */
static struct perf_map_file *want_file(struct perf_map_files *f, const struct process_key *process)
{
	struct perf_map_file *item = find_file(f, process);

	if (!item)
		return add_file(f, process);
	if (item->state != TRIED || item->fd >= 0 || item->tries >= PERF_MAP_FILES_TRIES ||
	    clock_mono_ns() - item->tried_ns < PERF_MAP_FILES_AGAIN_NS)
		return NULL;
	return item;
}

static void wake_opener(const struct perf_map_files *f)
{
	if (f->wake)
		f->wake(f->wake_context);
}

void perf_map_files_meet(struct perf_map_files *f, const struct process_key *process)
{
	struct perf_map_file *item;

	pthread_mutex_lock(&f->lock);
	item = want_file(f, process);
	if (item)
		item->state = WANTED;
	pthread_mutex_unlock(&f->lock);
	if (item)
		wake_opener(f);
}

void perf_map_files_leave(struct perf_map_files *f, const struct process_key *process)
{
	struct perf_map_file *item;

	pthread_mutex_lock(&f->lock);
	item = find_file(f, process);
	if (item)
		item->gone_ns = clock_mono_ns();
	pthread_mutex_unlock(&f->lock);
	if (item)
		wake_opener(f);
}

bool perf_map_files_knows(struct perf_map_files *f, const struct process_key *process)
{
	bool known;

	pthread_mutex_lock(&f->lock);
	known = find_file(f, process) != NULL;
	pthread_mutex_unlock(&f->lock);
	return known;
}

/* Opens the map in its current state: the host's, else through the broker. */
static enum reason open_now(struct perf_map_files *f, const struct process_key *process,
			    int *ret_fd)
{
	enum reason reason = perf_map_read_open(f->folder, process, ret_fd);

	if (reason == REASON_NONE || reason == REASON_PROCESS_GONE || !f->borrow)
		return reason;
	return f->borrow(f->borrow_context, process, ret_fd) == 0 ? REASON_NONE : reason;
}

/* Keeps a mark, unless the last one equals it; drops the oldest if there are too many. */
static void add_mark(struct perf_map_file *item, const struct perf_map_mark *mark)
{
	size_t kept = MIN((size_t)item->mark_count, (size_t)PERF_MAP_MARKS - 1);

	if (item->mark_count > 0 && item->marks[0].bytes == mark->bytes &&
	    item->marks[0].tail == mark->tail)
		return;
	memmove(item->marks + 1, item->marks, kept * sizeof(*item->marks));
	item->marks[0] = *mark;
	item->mark_count = (uint8_t)(kept + 1);
}

/* Opens one file without the lock, because the main thread may need the lock in the meantime. */
static void serve_one(struct perf_map_files *f, struct perf_map_file *item)
{
	struct process_key process = item->process;
	struct perf_map_mark mark;
	enum reason reason;
	bool marked;
	int fd = -1;

	item->state = OPENING;
	pthread_mutex_unlock(&f->lock);
	reason = open_now(f, &process, &fd);
	marked = fd >= 0 && perf_map_read_mark(fd, &mark);
	pthread_mutex_lock(&f->lock);
	item->fd = fd;
	if (marked)
		add_mark(item, &mark);
	if (reason != REASON_PROCESS_GONE || !item->tries)
		item->reason = reason;
	item->tried_ns = clock_mono_ns();
	item->tries++;
	item->state = TRIED;
}

/* Closes without the lock, because close(2) may wait for a file system. */
static void close_one(struct perf_map_files *f, struct perf_map_file *item)
{
	int fd = item->fd;

	*item = (struct perf_map_file){ .fd = -1 };
	pthread_mutex_unlock(&f->lock);
	cleanup_close(&fd);
	pthread_mutex_lock(&f->lock);
}

static void close_gone(struct perf_map_files *f)
{
	uint64_t now = clock_mono_ns();

	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++) {
		struct perf_map_file *item = &f->items[i];

		if (item->state == TRIED && item->gone_ns &&
		    now - item->gone_ns >= PERF_MAP_FILES_LINGER_NS)
			close_one(f, item);
	}
}

/*
 * Marks the open files. Runs without the lock, because it may have to read a file: only this thread
 * closes a file or gives its place to another.
 */
static void mark_open(struct perf_map_files *f)
{
	f->mark_wanted = false;
	for (size_t i = 0; i < PERF_MAP_FILES_MAX; i++) {
		struct perf_map_file *item = &f->items[i];
		struct perf_map_mark mark;
		int fd = item->state == TRIED ? item->fd : -1;
		bool marked;

		if (fd < 0)
			continue;
		pthread_mutex_unlock(&f->lock);
		marked = perf_map_read_mark(fd, &mark);
		pthread_mutex_lock(&f->lock);
		if (marked)
			add_mark(item, &mark);
	}
}

void perf_map_files_mark(struct perf_map_files *f)
{
	pthread_mutex_lock(&f->lock);
	f->mark_wanted = true;
	pthread_mutex_unlock(&f->lock);
	wake_opener(f);
}

void perf_map_files_serve(struct perf_map_files *f, bool idle)
{
	struct perf_map_file *item;

	pthread_mutex_lock(&f->lock);
	if (f->mark_wanted)
		mark_open(f);
	while ((item = find_state(f, WANTED)))
		serve_one(f, item);
	while ((item = find_state(f, LEFT)))
		close_one(f, item);
	if (idle)
		close_gone(f);
	pthread_mutex_unlock(&f->lock);
}

uint64_t perf_map_files_due_ns(struct perf_map_files *f)
{
	const struct perf_map_file *file, *none;
	uint64_t due = 0;

	pthread_mutex_lock(&f->lock);
	file = find_gone(f, true);
	none = find_gone(f, false);
	if (file)
		due = file->gone_ns;
	if (none && (!due || none->gone_ns < due))
		due = none->gone_ns;
	pthread_mutex_unlock(&f->lock);
	return due ? due + PERF_MAP_FILES_LINGER_NS : 0;
}

size_t perf_map_files_marks(struct perf_map_files *f, const struct process_key *process,
			    struct perf_map_mark marks[PERF_MAP_MARKS])
{
	const struct perf_map_file *item;
	size_t count = 0;

	pthread_mutex_lock(&f->lock);
	item = find_file(f, process);
	if (item) {
		count = item->mark_count;
		memcpy(marks, item->marks, count * sizeof(*marks));
	}
	pthread_mutex_unlock(&f->lock);
	return count;
}

enum reason perf_map_files_open(struct perf_map_files *f, const struct process_key *process,
				int *ret_fd, int *ret_owned)
{
	struct perf_map_file *item;
	enum reason reason;
	int fd = -1;

	reason = open_now(f, process, &fd);
	if (reason == REASON_NONE) {
		*ret_fd = *ret_owned = fd;
		return reason;
	}
	pthread_mutex_lock(&f->lock);
	item = find_file(f, process);
	if (item && item->fd >= 0)
		fd = item->fd;
	else if (item && item->tries && reason == REASON_PROCESS_GONE)
		reason = item->reason;
	pthread_mutex_unlock(&f->lock);
	if (fd < 0)
		return reason;
	*ret_fd = fd;
	return REASON_NONE;
}
