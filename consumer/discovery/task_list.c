/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/task_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"

#define STAT_BYTES	   4096
#define FLAG_KERNEL_THREAD 0x00200000 /* PF_KTHREAD of include/linux/sched.h */

int task_list_open(const struct pinned_maps *pins, uint32_t trie, struct task_list *ret_list)
{
	int fd = open(pins->tasks_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_list = (struct task_list){
		.control = pins->control, .trie = trie, .open = true, .fd = fd
	};
	return 0;
}

void task_list_close(struct task_list *l)
{
	if (l->open)
		close(l->fd);
	l->open = false;
}

/*
 * Reads once more. Returns 1, 0 at the end, or -errno. Sets the word each time: another list may be
 * read in between.
 */
static int read_more(struct task_list *l)
{
	ssize_t n;

	memmove(l->buffer, l->buffer + l->at, l->have - l->at);
	l->have -= l->at;
	l->at = 0;
	l->control->scan_trie = l->trie;
	do
		n = read(l->fd, l->buffer + l->have, sizeof(l->buffer) - l->have);
	while (n < 0 && (errno == EINTR || errno == EAGAIN));
	l->control->scan_trie = l->control->active;
	if (n <= 0)
		return n < 0 ? -errno : 0;
	l->have += (size_t)n;
	return 1;
}

/* Takes the next record, also an empty one. Returns 1, 0 after the last one, or -errno. */
static int next_record(struct task_list *l, struct task_record *ret_task)
{
	while (l->have - l->at < sizeof(*ret_task)) {
		int r = read_more(l);

		if (r <= 0)
			return r;
	}
	memcpy(ret_task, l->buffer + l->at, sizeof(*ret_task));
	l->at += sizeof(*ret_task);
	return 1;
}

int task_list_next(struct task_list *l, uint64_t until_ns, struct task_record *ret_task)
{
	struct task_record task;
	int r;

	while ((r = next_record(l, &task)) > 0) {
		if (task.tgid) {
			task.comm[sizeof(task.comm) - 1] = 0;
			*ret_task = task;
			return 1;
		}
		if (l->at == l->have && clock_mono_ns() >= until_ns)
			return -EAGAIN;
	}
	return r;
}

enum task_list_unlisted task_list_unlisted(uint32_t pid)
{
	_cleanup_free_ char *text = NULL;
	char path[32];
	const char *at;
	size_t bytes;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (io_read_file(AT_FDCWD, path, STAT_BYTES, &text, &bytes) < 0)
		return TASK_LIST_GONE;
	/* proc(5): the process chooses the name in brackets; the flags are six words after it. */
	at = strrchr(text, ')');
	for (int i = 0; at && i < 7; i++)
		at = strchr(at + 1, ' ');
	return at && strtoul(at, NULL, 10) & FLAG_KERNEL_THREAD ? TASK_LIST_KERNEL
								: TASK_LIST_HIDDEN;
}
